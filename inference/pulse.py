"""What a worker does once a second: say it is alive, learn of recorded stops, save partial texts, end the dead's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from uuid import UUID

from inference.journal import Ending, Journal, JournalError, Progress
from inference.life import BeatFailed, Checkpointed, HeardBy, Life, Reaped
from inference.runner import Runner

logger = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
TRUST_SECONDS = 10.0
"""A worker reaps only when its own heartbeat has succeeded for so long: an outage makes nobody dead."""


class Pulse:
    """A loop for each, so that a text that can't be saved does not stop the heartbeats."""

    def __init__(
        self,
        worker_id: UUID,
        *,
        live: Mapping[UUID, Runner],
        journal: Journal,
        life: Life,
        on_reaped: Callable[[Ending], Awaitable[None]],
    ) -> None:
        self._worker_id = worker_id
        self._live = live
        self._journal = journal
        self._life = life
        self._on_reaped = on_reaped
        self._healthy_since: float | None = None
        self._saved: dict[UUID, int] = {}
        self._saved_at = time.monotonic()

    def loops(self) -> tuple[Coroutine[None, None, None], ...]:
        """The loops to run until they are cancelled."""
        return self._every_beat(self.beat), self._every_beat(self.checkpoint), self._every_beat(self.reap)

    async def beat(self) -> None:
        """Refresh the heartbeats; act on recorded stops and on inferences that were ended by somebody else."""
        try:
            heartbeat = await self._journal.heartbeat(self._worker_id, list(self._live))
        except Exception:
            # Whatever it was: who can't say that it is alive can't know who is dead.
            self._healthy_since = None
            raise
        self._healthy_since = self._healthy_since or time.monotonic()
        for signal in heartbeat.stops:
            if runner := self._live.get(signal.inference_id):
                runner.stop(signal, HeardBy.ROW)
        for inference_id in heartbeat.lost:
            if runner := self._live.get(inference_id):
                runner.interrupt()

    async def checkpoint(self) -> None:
        """Save the texts that have grown since the last checkpoint, all in one statement."""
        began_at = time.monotonic()
        batch = [runner.progress() for runner in self._live.values() if self._has_grown(runner)]
        if batch:
            await self._journal.checkpoint(batch)
            now = time.monotonic()
            self._life.tell(Checkpointed(now - began_at, lag_seconds=now - self._saved_at))
        self._saved_at = began_at
        self._remember(batch)

    async def reap(self) -> None:
        """End the inferences of dead owners, if this worker can be sure of its own connection to the database."""
        if self._healthy_since is None or time.monotonic() - self._healthy_since < TRUST_SECONDS:
            return
        for ending in await self._journal.reap():
            logger.warning("inference %s ended as %s: its owner is dead", ending.inference_id, ending.status)
            self._life.tell(Reaped(ending))
            await self._on_reaped(ending)

    def _has_grown(self, runner: Runner) -> bool:
        return runner.reply.generated_position > self._saved.get(runner.job.inference_id, 0)

    def _remember(self, batch: list[Progress]) -> None:
        self._saved.update((progress.inference_id, progress.position) for progress in batch)
        for inference_id in self._saved.keys() - self._live.keys():
            del self._saved[inference_id]

    async def _every_beat(self, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await act()
            except JournalError as error:
                logger.warning("%s: %s", act.__name__, error)
                self._life.tell(BeatFailed(act.__name__))
            except Exception:
                logger.exception("%s", act.__name__)
                self._life.tell(BeatFailed(act.__name__))
            await asyncio.sleep(BEAT_SECONDS)
