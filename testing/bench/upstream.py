"""`python -m testing.bench.upstream PORT`: a model server made for load, 8 chunks a second and reply, one write each.

The model's name says how many chunks a reply has: `paced-80`; `paced-0` goes on until the client closes.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from typing import cast

import uvloop

from testing.model_server.script import chunk_bytes

CHUNK_SECONDS = 0.125
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
BACKLOG = 2000


def _piece(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


CHUNK = _piece(chunk_bytes("paced", {"content": " water"}))
END = _piece(chunk_bytes("paced", {}, finish_reason="stop") + b"data: [DONE]\n\n") + b"0\r\n\r\n"


class Journal:
    """What all connections have done. `closed_at` is by the prompt: when the client was seen to close."""

    def __init__(self) -> None:
        self.chunk_count = 0
        self.live_count = 0
        self.closed_at: dict[str, float] = {}


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection; requests come one after the other."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._input = b""
        self._prompt = ""
        self._left = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._input += data
        head, separator, body = self._input.partition(b"\r\n\r\n")
        if separator and len(body) >= _content_length(head):
            self._input = b""
            self._answer(head.split(b" ", 2)[1], body)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._journal.closed_at[self._prompt] = time.monotonic()
            self._end_reply()

    def _answer(self, path: bytes, body: bytes) -> None:
        if path == b"/_journal":
            self._send_json(vars(self._journal))
            return
        request = json.loads(body)
        self._prompt = request["messages"][-1]["content"]
        self._left = int(request["model"].rpartition("-")[2]) or -1
        self._journal.live_count += 1
        self._transport.write(HEAD)
        # Replies start at any phase, so that the load does not come in beats.
        self._due_at = self._loop.time() + random.random() * CHUNK_SECONDS
        self._timer = self._loop.call_at(self._due_at, self._send_chunk)

    def _send_chunk(self) -> None:
        self._transport.write(CHUNK)
        self._journal.chunk_count += 1
        self._left -= 1
        if self._left == 0:
            self._transport.write(END)
            self._end_reply()
            return
        self._due_at += CHUNK_SECONDS
        self._timer = self._loop.call_at(self._due_at, self._send_chunk)

    def _end_reply(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._timer = None
        self._journal.live_count -= 1

    def _send_json(self, value: object) -> None:
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


async def serve(port: int) -> None:
    journal = Journal()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(journal), "127.0.0.1", port, backlog=BACKLOG
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
