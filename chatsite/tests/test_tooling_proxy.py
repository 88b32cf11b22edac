"""The proxies spread connections and make faults as their names say; an echo server stands behind them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from testing.proxy import FaultProxy, RoundRobinProxy, TcpProxy
from testing.server_process import free_port, wait_until

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says its own port, then repeats whatever it gets."""
    writer.write(f"{writer.get_extra_info('sockname')[1]}\n".encode())
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        return
    finally:
        writer.close()


@pytest.fixture
async def echo_port() -> AsyncIterator[int]:
    server = await asyncio.start_server(echo, "127.0.0.1", free_port())
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.fixture
def proxy(echo_port: int) -> Iterator[FaultProxy]:
    with FaultProxy(echo_port) as faulty:
        yield faulty


class Dialler:
    """Opens connections through a proxy and closes them at the end of the test."""

    def __init__(self) -> None:
        self.writers: list[asyncio.StreamWriter] = []

    async def __call__(self, proxy: TcpProxy, *, greeted: bool = True) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        self.writers.append(writer)
        if greeted:
            await asyncio.wait_for(reader.readline(), 5)
        return reader, writer


@pytest.fixture
async def dial() -> AsyncIterator[Dialler]:
    dialler = Dialler()
    yield dialler
    for writer in dialler.writers:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def ask(stream: Stream, data: bytes = b"hello", *, timeout_seconds: float = 5) -> bytes:
    reader, writer = stream
    writer.write(data)
    return await asyncio.wait_for(reader.readexactly(len(data)), timeout_seconds)


async def backend_of(proxy: TcpProxy) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    line = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    return int(line)


async def forgotten(proxy: TcpProxy) -> None:
    await asyncio.to_thread(wait_until, lambda: proxy.connection_count == 0, "the proxy has closed both ends")


async def test_connections_go_to_the_backends_in_turn() -> None:
    servers = [await asyncio.start_server(echo, "127.0.0.1", free_port()) for _ in range(3)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    with RoundRobinProxy(ports) as proxy:
        seen = [await backend_of(proxy) for _ in range(6)]
        assert sorted(seen[:3]) == sorted(ports)
        assert seen[:3] == seen[3:]
    for server in servers:
        server.close()


async def test_a_dead_backend_is_skipped(echo_port: int) -> None:
    with RoundRobinProxy([free_port(), echo_port]) as proxy:
        assert [await backend_of(proxy) for _ in range(4)] == [echo_port] * 4


async def test_without_a_backend_the_connection_is_reset(dial: Dialler) -> None:
    # It may come before the connect is seen to be done.
    with RoundRobinProxy([free_port()]) as proxy, pytest.raises(ConnectionResetError):
        reader, _ = await dial(proxy, greeted=False)
        await reader.read(1)


async def test_what_is_stalled_arrives_after_the_stall(proxy: FaultProxy, dial: Dialler) -> None:
    stream = await dial(proxy)
    proxy.stall()
    with pytest.raises(TimeoutError):
        await ask(stream, timeout_seconds=0.2)
    proxy.resume()
    assert await asyncio.wait_for(stream[0].readexactly(5), 5) == b"hello"


async def test_a_stall_can_spare_new_connections(proxy: FaultProxy, dial: Dialler) -> None:
    """As when one connection is half-open and dialling again would help."""
    old = await dial(proxy)
    proxy.stall(new_connections=False)
    assert await ask(await dial(proxy)) == b"hello"
    with pytest.raises(TimeoutError):
        await ask(old, timeout_seconds=0.2)


async def test_a_delay_holds_each_piece_back(proxy: FaultProxy, dial: Dialler) -> None:
    stream = await dial(proxy)
    proxy.delay_seconds = 0.1
    before = time.monotonic()
    await ask(stream)
    assert time.monotonic() - before >= 0.2  # there and back


async def test_the_rate_is_bounded(proxy: FaultProxy, dial: Dialler) -> None:
    stream = await dial(proxy)
    proxy.bytes_per_second = 100_000
    before = time.monotonic()
    await ask(stream, b"x" * 50_000)
    assert time.monotonic() - before >= 0.3


async def test_reset_all_resets_and_close_all_ends_in_order(proxy: FaultProxy, dial: Dialler) -> None:
    first = await dial(proxy)
    proxy.reset_all()
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(first[0].read(1), 5)
    second = await dial(proxy)
    proxy.close_all()
    assert await asyncio.wait_for(second[0].read(1), 5) == b""


async def test_the_cut_comes_after_exactly_so_many_bytes(proxy: FaultProxy, dial: Dialler) -> None:
    proxy.cut_after_bytes = 10
    reader, writer = await dial(proxy, greeted=False)
    writer.write(b"x" * 100)
    assert len(await asyncio.wait_for(reader.readexactly(10), 5)) == 10
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(reader.read(1), 5)


async def test_refused_connections_leave_open_ones_alone(proxy: FaultProxy, dial: Dialler) -> None:
    stream = await dial(proxy)
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        await dial(proxy)
    assert await ask(stream) == b"hello"
    proxy.accept()
    assert await ask(await dial(proxy)) == b"hello"


async def test_half_a_close_passes_and_then_the_connection_is_forgotten(proxy: FaultProxy, dial: Dialler) -> None:
    reader, writer = await dial(proxy)
    writer.write(b"last words")
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 5) == b"last words"
    await forgotten(proxy)


async def test_a_client_that_is_gone_is_told_to_the_server(proxy: FaultProxy, dial: Dialler) -> None:
    stream = await dial(proxy)
    assert proxy.connection_count == 1
    stream[1].transport.abort()
    await forgotten(proxy)
