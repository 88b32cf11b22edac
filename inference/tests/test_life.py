"""What is told of an inference's life: to metrics and logs, by its owner, each thing once."""

from __future__ import annotations

import pytest

from chat.database import rows
from chat.models import Inference
from inference.journal import Status
from inference.life import Checkpointed, Ended, FirstChunk, HeardBy, Life, Moment, Started, Stopped
from inference.runner import Job
from inference.tests.test_worker import Process, changed, holds, poured, processes, signal_for

pytestmark = pytest.mark.django_db(transaction=True)


def life_of(process: Process, job: Job) -> list[Moment]:
    return [moment for moment in process.moments if getattr(moment, "inference_id", None) == job.inference_id]


async def ended(process: Process, job: Job) -> Ended:
    """What is told at the end, once it is told."""
    await holds(lambda: isinstance(life_of(process, job)[-1], Ended))
    end = life_of(process, job)[-1]
    assert isinstance(end, Ended)
    return end


async def test_a_whole_reply_has_one_start_one_first_chunk_and_one_end() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        for text in "Hello":
            await poured(owner, job, text)
        owner.engine.pour("!", is_last=True)
        end = await ended(owner, job)
        assert [type(moment) for moment in life_of(owner, job)] == [Started, FirstChunk, Ended]
        assert (end.chunk_count, end.generated, end.overrun, end.stop) == (6, 6, 0, None)
        assert end.ending is not None and end.ending.status is Status.COMPLETED


async def test_a_stop_is_told_once_with_how_fast_it_was_and_what_was_generated_beyond_it() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hello")
        for position in (2, 3):
            await owner.worker.stop(signal_for(job, position))
        end = await ended(owner, job)
        assert [type(moment) for moment in life_of(owner, job)] == [Started, FirstChunk, Stopped, Ended]
        assert end.overrun == 3
        assert end.stop is not None
        assert 0 <= end.stop.close_seconds <= end.seconds
        assert 0 < end.stop.save_seconds <= end.seconds


async def test_the_owner_tells_of_a_stop_from_another_worker_and_that_worker_tells_nothing() -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        await poured(owner, job, "Hello")
        await other.worker.stop(signal_for(job, 3))
        await ended(owner, job)
        (stopped,) = (moment for moment in life_of(owner, job) if isinstance(moment, Stopped))
        assert (stopped.by, stopped.source) == (HeardBy.EVENT, "page")
        assert life_of(other, job) == []


async def test_a_stop_whose_event_was_lost_is_told_as_found_in_the_row() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        reply = await poured(owner, job, "Hello")
        await rows.run(Inference.objects.record_stop, signal_for(job, 2))
        await changed(reply, lambda: reply.ending)
        (stopped,) = (moment for moment in life_of(owner, job) if isinstance(moment, Stopped))
        assert stopped.by is HeardBy.ROW
        assert stopped.seconds is not None and stopped.seconds < 5


async def test_a_checkpoint_tells_how_long_it_took_and_how_old_the_text_was() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hello")
        await holds(lambda: any(isinstance(moment, Checkpointed) for moment in owner.moments))
        (told,) = (moment for moment in owner.moments if isinstance(moment, Checkpointed))
        assert 0 < told.seconds <= told.lag_seconds


def test_a_listener_that_fails_keeps_nobody_from_hearing() -> None:
    heard: list[Moment] = []

    def fail(moment: Moment) -> None:
        raise ValueError

    Life(fail, heard.append).tell(Checkpointed(0.1, lag_seconds=1.0))
    assert len(heard) == 1
