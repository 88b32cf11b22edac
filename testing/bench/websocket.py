"""RFC 6455 at its barest, for load: whole frames in and out, nothing checked. Both ends of the measurements use it."""

from __future__ import annotations

import base64
import hashlib
import struct
from enum import IntEnum

ACCEPT_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
KEY = base64.b64encode(b"sixteen bytes !!")
MASKED = 0x80
FINAL = 0x80


class Opcode(IntEnum):
    """Section 11.8."""

    TEXT = 1
    CLOSE = 8
    PING = 9
    PONG = 10


def frame_bytes(payload: bytes, *, opcode: Opcode = Opcode.TEXT, is_client: bool = False) -> bytes:
    """One frame. A client has to mask what it sends; a key of zeros leaves it as it is."""
    mask = MASKED if is_client else 0
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", FINAL | opcode, mask | size)
    elif size < 65_536:
        head = struct.pack("!BBH", FINAL | opcode, mask | 126, size)
    else:
        head = struct.pack("!BBQ", FINAL | opcode, mask | 127, size)
    return head + (b"\0\0\0\0" if is_client else b"") + payload


class FrameReader:
    """Bytes in, whole frames out. Expects frames that are not fragmented, and masks of zero."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The opcodes and payloads that `data` completes."""
        self._buffer = buffer = self._buffer + data if self._buffer else data
        frames, at = [], 0
        while (bounds := _bounds(buffer, at)) is not None:
            start, end = bounds
            frames.append((buffer[at] & 0x0F, buffer[start:end]))
            at = end
        self._buffer = buffer[at:]
        return frames


def _bounds(buffer: bytes, at: int) -> tuple[int, int] | None:
    """Where the payload of the frame at `at` begins and ends; None while it is not whole."""
    if len(buffer) < at + 2:
        return None
    size, start = buffer[at + 1] & 0x7F, at + 2
    if size > 125:
        width = 2 if size == 126 else 8
        size, start = int.from_bytes(buffer[start : start + width], "big"), start + width
    if buffer[at + 1] & MASKED:
        start += 4
    end = start + size
    return (start, end) if len(buffer) >= end else None


def upgrade_request(path: str, *, port: int, cookie: str) -> bytes:
    """What a browser sends to open a socket, from the same origin."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {KEY.decode()}",
        "Sec-WebSocket-Version: 13",
        f"Origin: http://127.0.0.1:{port}",
        f"Cookie: {cookie}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def upgrade_response(head: bytes) -> bytes:
    """What a server answers to that."""
    key = next(
        line.split(b":")[1].strip() for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")
    )
    accept = base64.b64encode(hashlib.sha1(key + ACCEPT_GUID, usedforsecurity=False).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )
