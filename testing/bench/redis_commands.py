"""Section `redis`: how many commands a reply and a stop cost at the reference load, 80 chunks in 10 s.

For the design that reads a flag at every chunk, and for the site with nobody, one and three viewers elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from testing.bench.load import REFERENCE, REFERENCE_SECONDS, Live, Place, begin, close, each, open_viewers
from testing.bench.servers import WORKERS, Ground, Polling, UvloopWorker, relay_rooms, start_three
from testing.bench.table import Table
from testing.process_usage import cpu_seconds

LIVE_REPLIES = 100
FOLLOWED_REPLIES = 20
"""Fewer, since each of them costs its owner and its followers work."""
STOPPED_REPLIES = 3
IDLE_SECONDS = 20.0
CONNECTING = {"subscribe", "unsubscribe", "hello", "select", "auth"}


@dataclass(frozen=True)
class Usage:
    """What Redis did meanwhile."""

    commands: int
    cpu_seconds: float


class RedisMeter:
    """Commands since its start, without those of connecting, subscribing and measuring."""

    def __init__(self, ground: Ground) -> None:
        self._redis = ground.redis
        self._redis.reset_stats()
        self._cpu = cpu_seconds(self._redis.process.pid)

    def read(self) -> Usage:
        calls = self._redis.commandstats()
        commands = sum(n for name, n in calls.items() if name not in CONNECTING and not name.startswith("client"))
        return Usage(commands, cpu_seconds(self._redis.process.pid) - self._cpu)


async def run(ground: Ground) -> Table:
    columns = ["design", "replies", "viewers elsewhere", "stopped", "commands per reply", "commands/min at 100 live"]
    table = Table("Redis commands, replies of 80 chunks in 10 s", [*columns, "Redis CPU ms per reply"])
    with ExitStack() as servers:
        polling = start_three(servers, lambda: Polling(ground.upstream.port, ground.redis.url))
        workers = start_three(servers, lambda: ground.worker(UvloopWorker))
        idle = await _idle_per_second(ground)
        flags = [relay_rooms(server, LIVE_REPLIES) for server in polling]
        rooms = [ground.rooms(worker, LIVE_REPLIES) for worker in workers]
        for name, places, replies, followers, stopped in (
            ("a flag read at every chunk", flags, LIVE_REPLIES, 0, 0),
            ("a flag read at every chunk", flags, LIVE_REPLIES, 0, STOPPED_REPLIES),
            ("ours", rooms, LIVE_REPLIES, 0, 0),
            ("ours", rooms, LIVE_REPLIES, 0, STOPPED_REPLIES),
            ("ours", rooms, FOLLOWED_REPLIES, 1, 0),
            ("ours", rooms, FOLLOWED_REPLIES, 3, 0),
        ):
            usage, seconds = await _use(ground, places, replies, followers=followers, stopped=stopped)
            commands = (usage.commands - idle * seconds) / replies
            per_minute = commands * LIVE_REPLIES * 60 / REFERENCE_SECONDS
            cpu_ms = usage.cpu_seconds * 1000 / replies
            table.add(name, replies, followers, stopped, f"{commands:.2f}", f"{per_minute:.0f}", f"{cpu_ms:.2f}")
    stops = STOPPED_REPLIES * 60 / REFERENCE_SECONDS
    table.notes += [
        f"Idle, a worker sends {idle * 60 / WORKERS:.1f} commands a minute (its watchdog), which are taken off above.",
        f"At 100 live replies of which 3 % are stopped there are {stops:.0f} stops a minute.",
    ]
    return table


async def _idle_per_second(ground: Ground) -> float:
    meter = RedisMeter(ground)
    await asyncio.sleep(IDLE_SECONDS)
    return meter.read().commands / IDLE_SECONDS


async def _use(
    ground: Ground, places: Sequence[Sequence[Place]], replies: int, *, followers: int, stopped: int
) -> tuple[Usage, float]:
    """Let so many replies run to their end, all asked for at the first worker; what Redis did, and for how long."""
    askers = await open_viewers(places[0][:replies])
    elsewhere = [places[1 + number % 2][:replies] for number in range(followers)]
    watching = await open_viewers(place for viewers in elsewhere for place in viewers)
    loop, meter = asyncio.get_running_loop(), RedisMeter(ground)
    began_at = loop.time()
    live = await begin(askers, REFERENCE)
    stopping = await open_viewers(places[1][:stopped])
    for stopper, reply in zip(stopping, live, strict=False):
        await stopper.stop(reply.inference_id)
    await each(live, _ended)
    used = meter.read(), loop.time() - began_at
    close([*askers, *watching, *stopping])
    return used


async def _ended(reply: Live) -> None:
    await reply.viewer.wait("end")
