"""What breaks in a storm, one thing after another, and the diary of it: the checks look up what was broken when."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from testing.storm.stage import Stage
from testing.workers import Worker

CALM_SECONDS = (2.0, 5.0)
HASTY_SECONDS = (0.2, 1.0)
LINGER_SECONDS = 5.0
"""After Redis or the database is back, so long until everybody has noticed (CASES: within 5 s)."""
HALF_OPEN_SECONDS = 10.0
"""How long a half-open connection may go unnoticed."""
PAUSE_OF_SLOW_OWNER_SECONDS = 12.0
START_SECONDS = 120.0
"""On a machine that is busy with the storm."""
FOREVER = float("inf")


@dataclass
class Fault:
    """One thing that was broken, from when to when (`time.monotonic()`), and which worker if it was one."""

    kind: str
    began_at: float
    ended_at: float = FOREVER
    worker: Worker | None = None
    died_at: float = FOREVER

    @property
    def subject(self) -> str:
        return self.kind.split()[0]

    def overlaps(self, start: float, end: float) -> bool:
        lingers = HALF_OPEN_SECONDS if self.kind == "redis half-open" else LINGER_SECONDS
        return self.began_at <= end and start <= self.ended_at + lingers


class Weather:
    """Breaks things on a stage until cancelled; `calm_down` puts everything right again."""

    def __init__(self, stage: Stage, dice: random.Random, *, is_hasty: bool = False) -> None:
        self.diary: list[Fault] = []
        self._stage = stage
        self._dice = dice
        self._calm_seconds = HASTY_SECONDS if is_hasty else CALM_SECONDS
        self._kinds: dict[str, Callable[[Fault], Awaitable[None]]] = {
            "worker killed": self._kill_worker,
            "worker terminated": self._terminate_worker,
            "worker paused": self._pause_worker,
            "redis restarted": self._restart_redis,
            "redis paused": self._pause_redis,
            "redis half-open": self._half_open_redis,
            "redis reset": self._reset_redis,
            "postgres paused": self._pause_postgres,
            "postgres restarted": self._restart_postgres,
            "postgres reset": self._reset_postgres,
            "postgres slow": self._slow_postgres,
        }

    async def run(self) -> None:
        """Each kind once, in random order, then again."""
        while True:
            kinds = list(self._kinds)
            self._dice.shuffle(kinds)
            for kind in kinds:
                await asyncio.sleep(self._dice.uniform(*self._calm_seconds))
                await self._break(kind)

    def calm_down(self) -> None:
        """Everything runs and flows again."""
        self._stage.redis_proxy.resume()
        self._stage.postgres_proxy.delay_seconds = 0.0
        self._stage.postgres.resume()
        self._stage.redis.resume()
        for server in (self._stage.postgres, self._stage.redis, *self._stage.workers):
            server.resume()
            server.start(timeout_seconds=START_SECONDS)
        for fault in self.diary:
            fault.ended_at = min(fault.ended_at, time.monotonic())

    def between(self, start: float, end: float, *subjects: str) -> list[Fault]:
        """What was broken, or had not settled yet, at some moment between these two."""
        return [fault for fault in self.diary if fault.subject in subjects and fault.overlaps(start, end)]

    def touched(self, worker: Worker | None, start: float, end: float, *kinds: str) -> list[Fault]:
        """What was done to a worker meanwhile; to any worker if it is not known which one it was."""
        return [
            fault
            for fault in self.diary
            if fault.kind in kinds
            and (worker is None or fault.worker is worker)
            and fault.began_at <= end
            and start <= fault.ended_at
        ]

    async def _break(self, kind: str) -> None:
        fault = Fault(kind, time.monotonic())
        self.diary.append(fault)
        try:
            await self._kinds[kind](fault)
        finally:
            fault.ended_at = time.monotonic()

    async def _kill_worker(self, fault: Fault) -> None:
        fault.worker = self._stage.any_worker()
        await asyncio.to_thread(fault.worker.kill)
        fault.died_at = time.monotonic()
        await self._for_some_seconds(0, 3)
        await asyncio.to_thread(fault.worker.start, timeout_seconds=START_SECONDS)

    async def _terminate_worker(self, fault: Fault) -> None:
        fault.worker = self._stage.any_worker()
        fault.worker.terminate()
        await asyncio.to_thread(fault.worker.wait, fault.worker.drain_seconds + 15)
        fault.died_at = time.monotonic()
        await asyncio.to_thread(fault.worker.start, timeout_seconds=START_SECONDS)

    async def _pause_worker(self, fault: Fault) -> None:
        fault.worker = self._stage.any_worker()
        fault.worker.pause()
        await asyncio.sleep(PAUSE_OF_SLOW_OWNER_SECONDS)
        fault.worker.resume()

    async def _restart_redis(self, _: Fault) -> None:
        await asyncio.to_thread(self._stage.redis.stop)
        await self._for_some_seconds(0, 4)
        await asyncio.to_thread(self._stage.redis.start)

    async def _pause_redis(self, _: Fault) -> None:
        self._stage.redis.pause()
        await self._for_some_seconds(1, 6)
        self._stage.redis.resume()

    async def _half_open_redis(self, _: Fault) -> None:
        self._stage.redis_proxy.stall(new_connections=False)
        await asyncio.sleep(HALF_OPEN_SECONDS)
        self._stage.redis_proxy.resume()

    async def _reset_redis(self, _: Fault) -> None:
        self._stage.redis_proxy.reset_all()

    async def _pause_postgres(self, _: Fault) -> None:
        self._stage.postgres.pause()
        await self._for_some_seconds(1, 5)
        self._stage.postgres.resume()

    async def _restart_postgres(self, _: Fault) -> None:
        await asyncio.to_thread(self._stage.postgres.stop)
        await self._for_some_seconds(0, 3)
        await asyncio.to_thread(self._stage.postgres.start)

    async def _reset_postgres(self, _: Fault) -> None:
        self._stage.postgres_proxy.reset_all()

    async def _slow_postgres(self, _: Fault) -> None:
        self._stage.postgres_proxy.delay_seconds = 0.15
        await self._for_some_seconds(3, 6)
        self._stage.postgres_proxy.delay_seconds = 0.0

    async def _for_some_seconds(self, least: float, most: float) -> None:
        await asyncio.sleep(self._dice.uniform(least, most))
