"""Sections `cpu` and `lag`: one server process with so many live replies, beside the relay under the same load."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product

from testing.bench.load import ENDLESS, Place, begin, close, end, open_viewers
from testing.bench.servers import Ground, Relay, UvloopWorker, relay_rooms
from testing.bench.table import Table, percentiles_ms, spread
from testing.bench.viewer import Viewer
from testing.process_usage import cpu_seconds
from testing.server_process import ServerProcess
from testing.workers import Worker

LOADS = (20, 200, 500)
ROUNDS = 2
SETTLE_SECONDS = 1.5
WINDOW_SECONDS = 5.0
PINGS_SECONDS = 3.0
PING_PAUSE_SECONDS = 0.05
DEAD_OWNER_SECONDS = 20.0


@dataclass(frozen=True)
class Window:
    """What one server did in a few steady seconds under one load."""

    seconds: float
    chunk_count: int
    delta_count: int
    cpu_seconds: float
    ping_seconds: list[float]

    @property
    def cpu_microseconds_per_chunk(self) -> float:
        return self.cpu_seconds / self.chunk_count * 1e6


@dataclass(frozen=True)
class Contestant:
    """A server that is measured; the site's are compared with the relay on the same event loop."""

    name: str
    loop: str
    server: ServerProcess

    def __str__(self) -> str:
        return f"{self.name} on {self.loop}"

    def places(self, ground: Ground, count: int) -> list[Place]:
        if isinstance(self.server, Worker):
            return ground.rooms(self.server, count)
        assert isinstance(self.server, Relay)
        return relay_rooms(self.server, count)


Windows = dict[tuple[int, str, str], list[Window]]


class Steady:
    """Measures once, for both sections."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._windows: Windows = {}
        self._overloads: list[str] = []

    async def cpu(self) -> Table:
        windows = await self._measure()
        columns = ["live replies", "server", "loop", "chunks/s", "frames per chunk", "CPU µs per chunk", "× relay"]
        table = Table("CPU per chunk, end to end, one process", columns)
        for (load, name, loop), rounds in windows.items():
            floor = _cost(windows.get((load, "relay", loop), []))
            chunks = sum(window.chunk_count for window in rounds)
            table.add(
                load,
                name,
                loop,
                f"{chunks / sum(window.seconds for window in rounds):.0f}",
                f"{sum(window.delta_count for window in rounds) / chunks:.2f}",
                spread([window.cpu_microseconds_per_chunk for window in rounds]),
                f"{_cost(rounds) / floor:.1f}",
            )
        table.notes += self._overloads
        return table

    async def lag(self) -> Table:
        columns = ["live replies", "server", "loop", "p50 ms", "p95 ms", "p99 ms"]
        table = Table("Event loop lag: a ping frame answered on a socket that shows nothing", columns)
        for (load, name, loop), rounds in (await self._measure()).items():
            table.add(load, name, loop, *percentiles_ms([lag for window in rounds for lag in window.ping_seconds]))
        table.notes.append(
            "The load generator's own lag is in all of them alike; the relay's rows show how much it is."
        )
        return table

    async def _measure(self) -> Windows:
        if self._windows:
            return self._windows
        with ExitStack() as servers:
            contestants = [
                Contestant("relay", "asyncio", servers.enter_context(Relay(self._ground.upstream.port, "asyncio"))),
                Contestant("site", "asyncio", servers.enter_context(self._ground.worker())),
                Contestant("relay", "uvloop", servers.enter_context(Relay(self._ground.upstream.port, "uvloop"))),
                Contestant("site", "uvloop", servers.enter_context(self._ground.worker(UvloopWorker))),
            ]
            # In turns: the machine's mood then changes for all of them.
            for load, _, contestant in product(LOADS, range(ROUNDS), contestants):
                sys.stderr.write(f"  {load} live replies at the {contestant}\n")
                try:
                    window = await _window(self._ground, contestant, load)
                except (ConnectionError, TimeoutError) as error:
                    self._overloads.append(f"{load} live replies were too many for {contestant}: {error}")
                    await _start_again(contestant.server)
                    continue
                self._windows.setdefault((load, contestant.name, contestant.loop), []).append(window)
        return self._windows


async def _window(ground: Ground, contestant: Contestant, load: int) -> Window:
    places = contestant.places(ground, load + 1)
    *viewers, quiet = await open_viewers(places)
    replies = await begin(viewers, ENDLESS)
    await asyncio.sleep(SETTLE_SECONDS)
    pid, journal = contestant.server.process.pid, ground.upstream.journal
    began_at, chunks, cpu = time.monotonic(), journal()["chunk_count"], cpu_seconds(pid)
    deltas = sum(viewer.delta_count for viewer in viewers)
    await asyncio.sleep(WINDOW_SECONDS)
    window = Window(
        seconds=time.monotonic() - began_at,
        chunk_count=journal()["chunk_count"] - chunks,
        delta_count=sum(viewer.delta_count for viewer in viewers) - deltas,
        cpu_seconds=cpu_seconds(pid) - cpu,
        # Last, and so in none of the figures above: they cost the server as much as chunks do.
        ping_seconds=await _pings(quiet),
    )
    close([quiet])
    await end(replies)
    return window


async def _pings(quiet: Viewer) -> list[float]:
    seconds = []
    ends_at = time.monotonic() + PINGS_SECONDS
    while time.monotonic() < ends_at:
        seconds.append(await quiet.ping())
        await asyncio.sleep(PING_PAUSE_SECONDS)
    return seconds


async def _start_again(server: ServerProcess) -> None:
    """Its replies are still live in the rows until another worker finds that their owner is dead."""
    server.kill()
    server.start()
    await asyncio.sleep(DEAD_OWNER_SECONDS)


def _cost(rounds: Sequence[Window]) -> float:
    chunks = sum(window.chunk_count for window in rounds)
    return sum(window.cpu_seconds for window in rounds) / chunks if chunks else math.nan
