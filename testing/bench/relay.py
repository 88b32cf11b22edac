"""The least that can stream a model's reply to a browser: one asyncio protocol on each side, no framework, no rows.

It is the floor that the site's cost is measured against, and speaks as much of the wire protocol as load needs.
`python -m testing.bench.relay PORT UPSTREAM_PORT asyncio|uvloop`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any, cast
from uuid import uuid4

import uvloop

from testing.bench.websocket import FrameReader, Opcode, frame_bytes, upgrade_response

Frame = dict[str, Any]

BACKLOG = 2000
DONE = b"[DONE]"


class EventReader:
    """The body of a chunked HTTP response, as payloads of server-sent events."""

    def __init__(self) -> None:
        self._input = b""
        self._has_head = False

    def feed(self, data: bytes) -> list[bytes]:
        self._input += data
        if not self._has_head:
            _, separator, rest = self._input.partition(b"\r\n\r\n")
            if not separator:
                return []
            self._input, self._has_head = rest, True
        return self._events()

    def _events(self) -> list[bytes]:
        events: list[bytes] = []
        while (line_end := self._input.find(b"\r\n")) > 0:
            end = line_end + 2 + int(self._input[:line_end], 16)
            if len(self._input) < end + 2:
                break
            events += [event[6:] for event in self._input[line_end + 2 : end].split(b"\n\n") if event]
            self._input = self._input[end + 2 :]
        return events


class Answer(asyncio.Protocol):
    """The model server's side of one reply."""

    def __init__(self, socket: Socket, prompt: Frame) -> None:
        self.socket = socket
        self.inference_id = str(uuid4())
        self.prompt = prompt
        self._events = EventReader()
        self._position = 0
        self._is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        messages = [{"role": "user", "content": self.prompt["text"]}]
        body = json.dumps({"model": self.prompt["model"], "messages": messages, "stream": True}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: model\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)

    def data_received(self, data: bytes) -> None:
        for payload in self._events.feed(data):
            self.take(payload)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end("failed")

    def take(self, payload: bytes) -> None:
        """One event has come."""
        self.show(payload)

    def show(self, payload: bytes) -> None:
        """Pass its text on."""
        if payload == DONE:
            self.end("completed")
            return
        text = json.loads(payload)["choices"][0]["delta"].get("content")
        if not text:
            return
        start, self._position = self._position, self._position + len(text)
        frame = {"type": "delta", "inference_id": self.inference_id, "part": "content"}
        self.socket.send({**frame, "from": start, "position": self._position, "text": text})

    def end(self, status: str) -> None:
        """Close the connection to the model server, and say how it ended."""
        if not self._is_over:
            self._is_over = True
            self.transport.abort()
            self.socket.send({"type": "end", "inference_id": self.inference_id, "status": status})


class Socket(asyncio.Protocol):
    """The browser's side."""

    answer_type: type[Answer] = Answer

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._frames = FrameReader()
        self._is_open = False
        self._answers: dict[str, Answer] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            self._is_open = True
            self._transport.write(upgrade_response(data))
            self.send({"type": "hello", "live": []})
            return
        for opcode, payload in self._frames.feed(data):
            if opcode == Opcode.TEXT:
                self._take(json.loads(payload))

    def send(self, frame: Frame) -> None:
        text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
        self._transport.write(frame_bytes(text.encode()))

    def spawn(self, work: Any) -> None:
        """Run something that belongs to this socket."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self, inference_id: str) -> None:
        """Somebody has pressed Stop."""
        if inference_id in self._answers:
            self._answers[inference_id].end("stopped")
        self.send({"type": "stop_result", "inference_id": inference_id, "outcome": "stopped"})

    def _take(self, frame: Frame) -> None:
        match frame["type"]:
            case "send":
                self.spawn(self._start(frame))
            case "stop":
                self.stop(frame["inference_id"])
            case "ping":
                self.send({"type": "pong", "n": frame["n"]})

    async def _start(self, frame: Frame) -> None:
        answer = self.answer_type(self, frame)
        self._answers[answer.inference_id] = answer
        self.send({"type": "start", "inference_id": answer.inference_id, "client_id": frame["client_id"]})
        await asyncio.get_running_loop().create_connection(lambda: answer, "127.0.0.1", self._upstream_port)


async def serve(port: int, make_socket: Callable[[], Socket]) -> None:
    server = await asyncio.get_running_loop().create_server(make_socket, "127.0.0.1", port, backlog=BACKLOG)
    await server.serve_forever()


if __name__ == "__main__":
    _, own_port, upstream_port, loop = sys.argv
    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(int(own_port), lambda: Socket(int(upstream_port))))
