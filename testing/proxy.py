"""TCP proxies for the tests: one spreads connections over workers by round robin, one misbehaves as networks do.

Each runs its own event loop in its own thread, so it serves sync and async tests alike; its methods may be called
from any thread and return when what they say is done.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from testing.server_process import free_port

T = TypeVar("T")

CALL_TIMEOUT_SECONDS = 10.0
CHUNK_BYTES = 16_384
# SO_LINGER on, with zero seconds: closing the socket sends RST and throws away what is still to be sent.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(eq=False)
class Side:
    """One end of a connection that goes through the proxy."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def reset(self) -> None:
        raw = self.writer.get_extra_info("socket")
        with suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.writer.transport.abort()


@dataclass(eq=False)
class Connection:
    """A client and the server it was given. While `flows` is not set, nothing passes between them."""

    client: Side
    server: Side
    flows: asyncio.Event = field(default_factory=asyncio.Event)
    bytes_to_client: int = 0

    def reset(self) -> None:
        self.client.reset()
        self.server.reset()

    def close(self) -> None:
        self.client.writer.close()
        self.server.writer.close()


class TcpProxy:
    """Listens on a port of 127.0.0.1 while it is started. A subclass says where a connection goes."""

    def __init__(self, *, port: int | None = None) -> None:
        self.port = port or free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.port}", daemon=True)
        self._listener: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._handlers: set[asyncio.Task[Any]] = set()
        self._new_connections_flow = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def start(self) -> Self:
        self._thread.start()
        self._call(self._listen())
        return self

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def connect(self) -> Side:
        """Opens the connection to the server; raises `OSError` when there is none."""
        raise NotImplementedError

    async def forward(self, connection: Connection, data: bytes, *, to: Side) -> None:
        to.writer.write(data)
        await to.writer.drain()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT_SECONDS)

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(self._handle, "127.0.0.1", self.port)

    async def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _end(self) -> None:
        await self._stop_listening()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        try:
            await self._serve(Side(reader, writer))
        except asyncio.CancelledError:
            pass  # only `_end` cancels, and it waits; asyncio would log it as an error of the handler
        finally:
            self._handlers.discard(handler)

    async def _serve(self, client: Side) -> None:
        try:
            server = await self.connect()
        except OSError:
            client.reset()
            return
        connection = Connection(client, server)
        if self._new_connections_flow:
            connection.flows.set()
        self._connections.add(connection)
        try:
            await self._pump_both_ways(connection)
        finally:
            connection.close()
            self._connections.discard(connection)

    async def _pump_both_ways(self, connection: Connection) -> None:
        client, server = connection.client, connection.server
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(connection, client, server))
                group.create_task(self._pump(connection, server, client))
        except* OSError:
            connection.reset()

    async def _pump(self, connection: Connection, source: Side, target: Side) -> None:
        while data := await source.reader.read(CHUNK_BYTES):
            await connection.flows.wait()
            await self.forward(connection, data, to=target)
        await connection.flows.wait()
        # Half a close is passed on as half a close: the other direction may still have something to say.
        target.writer.write_eof()


class RoundRobinProxy(TcpProxy):
    """Gives each connection to the next backend in turn, and to the one after it when that one refuses."""

    def __init__(self, backend_ports: Sequence[int], *, port: int | None = None) -> None:
        super().__init__(port=port)
        self._backend_ports = list(backend_ports)
        self._turn = 0

    def set_backends(self, ports: Sequence[int]) -> None:
        """For connections from now on."""
        self._backend_ports = list(ports)

    async def connect(self) -> Side:
        ports = self._backend_ports
        self._turn += 1
        for step in range(len(ports)):
            with suppress(OSError):
                return Side(*await asyncio.open_connection("127.0.0.1", ports[(self._turn + step) % len(ports)]))
        raise ConnectionRefusedError("no backend takes connections")


class FaultProxy(TcpProxy):
    """Passes everything on to one port until it is told to misbehave; the attributes count at once.

    `delay_seconds` and `jitter_seconds` (up to that much more, at random) before each piece, `bytes_per_second` for
    each direction, `cut_after_bytes` from the server to one client, then RST.
    """

    def __init__(self, target_port: int, *, port: int | None = None) -> None:
        super().__init__(port=port)
        self.target_port = target_port
        self.delay_seconds = 0.0
        self.jitter_seconds = 0.0
        self.bytes_per_second: float | None = None
        self.cut_after_bytes: int | None = None

    def stall(self, *, new_connections: bool = True) -> None:
        """Half-open: connections stay up and carry nothing, neither bytes nor their end.

        With `new_connections=False` only those that are open now.
        """
        self._call(self._set_flow(False, new_connections=not new_connections))

    def resume(self) -> None:
        self._call(self._set_flow(True, new_connections=True))

    def reset_all(self) -> None:
        """RST to both ends of every open connection, which are sent when this returns."""
        self._call(self._each(Connection.reset))
        self._call(asyncio.sleep(0))

    def close_all(self) -> None:
        """FIN to both ends of every open connection."""
        self._call(self._each(Connection.close))

    def refuse(self) -> None:
        """No new connections, as when the server is down; open ones live on."""
        self._call(self._stop_listening())

    def accept(self) -> None:
        self._call(self._listen())

    async def connect(self) -> Side:
        return Side(*await asyncio.open_connection("127.0.0.1", self.target_port))

    async def forward(self, connection: Connection, data: bytes, *, to: Side) -> None:
        if self.delay_seconds or self.jitter_seconds:
            await asyncio.sleep(self.delay_seconds + random.random() * self.jitter_seconds)
        if to is connection.client:
            data = self._up_to_the_cut(connection, data)
        await super().forward(connection, data, to=to)
        if self.bytes_per_second:
            await asyncio.sleep(len(data) / self.bytes_per_second)
        if self._is_cut(connection):
            # asyncio has given what fits to the kernel by now; a reset would throw away only the rest.
            connection.reset()

    def _up_to_the_cut(self, connection: Connection, data: bytes) -> bytes:
        if self.cut_after_bytes is not None:
            data = data[: max(0, self.cut_after_bytes - connection.bytes_to_client)]
        connection.bytes_to_client += len(data)
        return data

    def _is_cut(self, connection: Connection) -> bool:
        return self.cut_after_bytes is not None and connection.bytes_to_client >= self.cut_after_bytes

    async def _set_flow(self, flows: bool, *, new_connections: bool) -> None:
        self._new_connections_flow = new_connections
        for connection in self._connections:
            (connection.flows.set if flows else connection.flows.clear)()

    async def _each(self, act: Callable[[Connection], None]) -> None:
        for connection in list(self._connections):
            act(connection)
