"""The journal of a worker's inferences in Django's database: `inference.journal.Journal`, implemented."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from django.db import DataError, connection

from chat import endings
from chat.database import pulse, rows
from chat.models import Inference
from inference.clock import DatabaseClock
from inference.journal import LIVE, Ending, Heartbeat, Progress, Record, Result
from inference.stop import StopSignal

logger = logging.getLogger(__name__)


class DjangoJournal:
    """Each method is a short call in a database thread."""

    def __init__(self) -> None:
        self._heard_at: datetime | None = None
        """When this worker's last heartbeat was taken, by the database's clock."""
        self._clock = DatabaseClock()

    async def checkpoint(self, batch: Sequence[Progress]) -> None:
        try:
            await pulse.run(Inference.objects.checkpoint, batch)
        except DataError as error:
            if len(batch) == 1:
                logger.error("inference %s can't be checkpointed: %s", batch[0].inference_id, error)
                return
            # One text that the database refuses must not hold up the others.
            for progress in batch:
                await self.checkpoint([progress])

    async def heartbeat(self, worker_id: UUID, inference_ids: Sequence[UUID]) -> Heartbeat:
        heartbeat, self._heard_at = await pulse.run(_heartbeat, worker_id, inference_ids, self._clock)
        return heartbeat

    async def finish(self, result: Result) -> Ending | None:
        return await rows.run(endings.finish, result)

    async def read(self, inference_id: UUID) -> Record | None:
        return await rows.run(read, inference_id)

    async def reap(self) -> Sequence[Ending]:
        return await pulse.run(endings.reap, self._heard_at)

    def database_time(self) -> float | None:
        return self._clock.now()


def read(inference_id: UUID) -> Record | None:
    """What the row of an inference says."""
    inference = Inference.objects.filter(pk=inference_id).first()
    return None if inference is None else record_of(inference)


def record_of(inference: Inference) -> Record:
    """A row as the inference package knows it."""
    return Record(
        inference_id=inference.pk,
        runs=inference.runs,
        position=inference.position,
        ending=None if inference.status in LIVE else endings.ending_of(inference),
    )


def _heartbeat(worker_id: UUID, inference_ids: Sequence[UUID], clock: DatabaseClock) -> tuple[Heartbeat, datetime]:
    heard_at = datetime.fromtimestamp(clock.set(_database_time), UTC)
    # Asked even when idle: it is how a worker knows that the database hears it. Only what really runs here is kept
    # alive: a prompt whose transaction outlived its caller's patience has a row, and no runner.
    found = dict(Inference.objects.owned_by(worker_id).values_list("pk", "stop_requested_at"))
    running = [inference_id for inference_id in inference_ids if inference_id in found]
    Inference.objects.filter(pk__in=running).beat()
    heartbeat = Heartbeat(
        stops=_signals([inference_id for inference_id in running if found[inference_id]]),
        lost=[inference_id for inference_id in inference_ids if inference_id not in found],
    )
    return heartbeat, heard_at


def _signals(inference_ids: Sequence[UUID]) -> list[StopSignal]:
    stopped = Inference.objects.filter(pk__in=inference_ids).defer("parts") if inference_ids else ()
    return [signal_of(inference) for inference in stopped]


def _database_time() -> float:
    if connection.vendor == "sqlite":
        # Its clock is this machine's, and its CURRENT_TIMESTAMP has whole seconds.
        return time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_TIMESTAMP")
        (now,) = cursor.fetchone()
    return float(now.timestamp())


def signal_of(inference: Inference) -> StopSignal:
    """The stop that is recorded in a row."""
    return StopSignal(
        inference_id=inference.pk,
        topic=inference.topic,
        position=inference.stop_position,
        user_id=inference.stopped_by_id,
        source=inference.stop_source,
        recorded_at=inference.stop_requested_at.timestamp() if inference.stop_requested_at else None,
    )
