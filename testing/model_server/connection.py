"""One HTTP/1.1 connection to the scripted model server, written by hand so that it can misbehave byte by byte."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl, urlsplit

HEAD_END = b"\r\n\r\n"
LINGER_ZERO = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request; `query` holds the last value of each parameter."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    client_port: int


class Connection(asyncio.Protocol):
    """Parses requests and runs one answer at a time, which is cancelled the moment the client goes."""

    def __init__(self, answer: Callable[[Connection, Request], Coroutine[None, None, None]]) -> None:
        self._answer = answer
        self._input = bytearray()
        self._task: asyncio.Task[None] | None = None
        self.on_lost: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._input += data
        self._take_next()

    def eof_received(self) -> None:
        self._lose()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()

    def send_head(self, status: int, headers: dict[str, str]) -> None:
        """Start an answer whose body comes in pieces (`send_piece`, `end_body`)."""
        self._write_head(status, {"Transfer-Encoding": "chunked", **headers})

    def send_piece(self, data: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_body(self) -> None:
        self._transport.write(b"0\r\n\r\n")

    def send_json(self, status: int, value: object, headers: dict[str, str] | None = None) -> None:
        """A whole answer."""
        body = json.dumps(value).encode()
        self._write_head(
            status, {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
        )
        self._transport.write(body)

    def fin(self) -> None:
        self._transport.close()

    def reset(self) -> None:
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
        self._transport.abort()

    def _write_head(self, status: int, headers: dict[str, str]) -> None:
        phrase = HTTPStatus(status).phrase
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        self._transport.write("\r\n".join(lines).encode() + HEAD_END)

    def _take_next(self) -> None:
        if self._task is not None:
            return
        request = _parse(self._input, self._transport.get_extra_info("peername")[1])
        if request is None:
            return
        self._task = asyncio.get_running_loop().create_task(self._answer(self, request))
        self._task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self.on_lost = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._transport.abort()
            raise error
        if not self._transport.is_closing():
            self._take_next()

    def _lose(self) -> None:
        # The journal is told here, not in the answer's task: a task cancelled before its first step runs no `finally`.
        if self.on_lost is not None:
            self.on_lost()
        if self._task is not None:
            self._task.cancel()


def _parse(data: bytearray, client_port: int) -> Request | None:
    """Take one whole request off the front of `data`, if it is there."""
    head_end = data.find(HEAD_END)
    if head_end < 0:
        return None
    first, *lines = data[:head_end].decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body_start = head_end + len(HEAD_END)
    body_end = body_start + int(headers.get("content-length", "0"))
    if len(data) < body_end:
        return None
    method, target, _ = first.split(" ", 2)
    url = urlsplit(target)
    body = bytes(data[body_start:body_end])
    del data[:body_end]
    return Request(method, url.path, dict(parse_qsl(url.query)), headers, body, client_port)
