"""What the benchmark compares with does what its name says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from time import process_time

import pytest

from testing.bench.load import ENDLESS, REFERENCE, begin, end, open_viewers
from testing.bench.servers import Polling, Relay, Upstream, relay_rooms
from testing.bench.table import Table, percentile
from testing.bench.viewer import Viewer
from testing.bench.websocket import FrameReader, frame_bytes
from testing.process_usage import cpu_seconds, resident_bytes
from testing.server_process import wait_until
from testing.services import RedisServer

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as started:
        yield started


async def wait_until_idle(upstream: Upstream) -> None:
    await asyncio.to_thread(wait_until, lambda: upstream.journal()["live_count"] == 0, "no upstream is open")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_the_relay_shows_all_80_chunks_of_the_reference_reply(upstream: Upstream, loop: str) -> None:
    with Relay(upstream.port, loop) as relay:
        [viewer] = await open_viewers(relay_rooms(relay, 1))
        await viewer.ask(REFERENCE)
        assert (await viewer.wait("end"))["status"] == "completed"
        assert viewer.delta_count == 80
        viewer.close()


async def test_a_stop_at_the_relay_closes_the_upstream(upstream: Upstream) -> None:
    with Relay(upstream.port, "uvloop") as relay:
        await end(await begin(await open_viewers(relay_rooms(relay, 3)), ENDLESS))
        await wait_until_idle(upstream)


async def test_polling_hears_a_stop_that_another_process_took_and_asks_once_a_chunk(
    upstream: Upstream, redis_server: RedisServer
) -> None:
    arguments = upstream.port, redis_server.url
    with Polling(*arguments) as owner, Polling(*arguments) as other:
        asker = await Viewer(owner.port, "1").open()
        stopper = await Viewer(other.port, "1").open()
        inference_id = await asker.ask(ENDLESS, "stop me")
        await stopper.stop(inference_id)
        assert (await asker.wait("end"))["status"] == "stopped"
        await wait_until_idle(upstream)
        assert upstream.journal()["closed_at"].keys() >= {"stop me"}
        assert redis_server.commandstats()["get"] == asker.delta_count + 1


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_frames_of_every_length_come_out_as_they_went_in_however_the_bytes_are_cut(size: int) -> None:
    reader = FrameReader()
    data = frame_bytes(b"x" * size, is_client=True) + frame_bytes(b"next")
    middle = len(data) // 2
    frames = reader.feed(data[:middle]) + reader.feed(data[middle:])
    assert [payload for _, payload in frames] == [b"x" * size, b"next"]


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, percent) for percent in (50, 95, 99, 100)] == [50, 95, 99, 100]
    assert percentile([7.0], 50) == 7


def test_the_kernel_counts_what_this_process_uses() -> None:
    began_at = cpu_seconds(os.getpid())
    while process_time() < 0.1 or cpu_seconds(os.getpid()) == began_at:
        pass
    assert cpu_seconds(os.getpid()) == pytest.approx(process_time(), abs=0.1)
    assert resident_bytes(os.getpid()) > 1_000_000


def test_a_table_is_markdown() -> None:
    table = Table("Title", ["one", "two"])
    table.add(1, "long cell")
    assert str(table) == "## Title\n\n| one | two       |\n| --- | --------- |\n| 1   | long cell |\n"
