"""One browser's socket as the load generator keeps it: deltas are counted and not read, pings are answered."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict, deque
from typing import Any, Self, cast
from uuid import uuid4

from testing.bench.websocket import FrameReader, Opcode, frame_bytes, upgrade_request

Frame = dict[str, Any]

WAIT_SECONDS = 30.0
DELTA_START = b'{"type":"delta"'


class Viewer(asyncio.Protocol):
    """A socket in one room: `await Viewer(port, room_id, cookie).open()`."""

    def __init__(self, port: int, room_id: str, cookie: str = "") -> None:
        self.port = port
        self.room_id = room_id
        self.cookie = cookie
        self.delta_count = 0
        self.byte_count = 0
        self._reader: FrameReader | None = None
        self._failure: Exception | None = None
        self._frames: defaultdict[str, deque[Frame]] = defaultdict(deque)
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def open(self) -> Self:
        """Connected, and greeted by `hello`."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, "127.0.0.1", self.port)
        await self.wait("hello")
        return self

    async def ask(self, model: str, text: str = "") -> str:
        """Send a prompt; the inference that answers it."""
        self.send({"type": "send", "client_id": str(uuid4()), "text": text or str(uuid4()), "model": model})
        return str((await self.wait("start"))["inference_id"])

    async def stop(self, inference_id: str) -> str:
        """The outcome."""
        self.send({"type": "stop", "inference_id": inference_id})
        return str((await self.wait("stop_result"))["outcome"])

    async def ping(self) -> float:
        """How many seconds the answer takes."""
        began_at = time.monotonic()
        self.send({"type": "ping", "n": 0})
        await self.wait("pong")
        return time.monotonic() - began_at

    async def wait(self, frame_type: str) -> Frame:
        """The next frame of this type. Raises TimeoutError, and ConnectionError when the socket has failed."""
        if self._failure is not None:
            raise self._failure
        if not self._frames[frame_type]:
            arrived = self._waiting[frame_type] = asyncio.get_running_loop().create_future()
            await self._in_time(arrived, frame_type)
        return self._frames[frame_type].popleft()

    def send(self, frame: Frame) -> None:
        self._transport.write(frame_bytes(json.dumps(frame).encode(), is_client=True))

    def close(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(upgrade_request(f"/ws/rooms/{self.room_id}/", port=self.port, cookie=self.cookie))

    def data_received(self, data: bytes) -> None:
        if self._reader is None:
            head, _, data = data.partition(b"\r\n\r\n")
            if b" 101 " not in head:
                self._fail(ConnectionError(head.decode("latin-1")))
                return
            self._reader = FrameReader()
        self.byte_count += len(data)
        for opcode, payload in self._reader.feed(data):
            self._take(opcode, payload)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._failure is None:
            self._fail(ConnectionError(f"port {self.port} has cut the connection"))

    def _take(self, opcode: int, payload: bytes) -> None:
        if payload.startswith(DELTA_START):
            self.delta_count += 1
        elif opcode == Opcode.TEXT:
            self._take_frame(json.loads(payload))
        elif opcode == Opcode.CLOSE:
            self._fail(
                ConnectionError(f"port {self.port} has closed the socket with {int.from_bytes(payload[:2], 'big')}")
            )
        elif opcode == Opcode.PING:
            self._transport.write(frame_bytes(payload, opcode=Opcode.PONG, is_client=True))

    def _take_frame(self, frame: Frame) -> None:
        if frame["type"] == "ping":
            self.send({"type": "pong", "n": frame["n"]})
            return
        if frame["type"] == "error":
            self._fail(ConnectionError(frame["detail"]))
            return
        self._frames[frame["type"]].append(frame)
        arrived = self._waiting.pop(frame["type"], None)
        if arrived is not None and not arrived.done():
            arrived.set_result(None)

    async def _in_time(self, arrived: asyncio.Future[None], frame_type: str) -> None:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await arrived
        except TimeoutError:
            raise TimeoutError(f"no {frame_type} from port {self.port} in {WAIT_SECONDS:g} s") from None

    def _fail(self, error: Exception) -> None:
        self._failure = error
        for arrived in self._waiting.values():
            if not arrived.done():
                arrived.set_exception(error)
        self._waiting.clear()
