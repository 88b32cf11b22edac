"""The stop path of DESIGN section 5, for the socket and the API: may this person, write it down, tell the owner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from django.contrib.auth.models import User

from chat import endings
from chat.database import rows
from chat.journal import read, signal_of
from chat.models import Inference, Room
from inference.ids import about
from inference.journal import LIVE, Ending, JournalError, Status
from inference.life import Pressed
from inference.stop import StopSignal
from inference.worker import Worker

RECORD_SECONDS = 1.0
"""A database that is slower than this does not hold a stop up."""
AWAIT_END_SECONDS = 0.5
AWAIT_END_LOOKS = 60
MAX_POSITION = 2**31 - 1
"""What the column can hold; a position past the end is clamped to the end anyway."""


class Outcome(StrEnum):
    """What is told to whoever pressed Stop (DESIGN section 5)."""

    STOPPED = "stopped"
    ALREADY_STOPPED = "already_stopped"
    CUT_AFTER_FINISH = "cut_after_finish"
    ALREADY_FINISHED = "already_finished"
    RECORDED = "recorded"
    UNAVAILABLE = "unavailable"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class Stop:
    """One press. `room_id` is that of the asking socket; None for the API, which names only the inference."""

    user: User
    inference_id: UUID
    position: int | None
    source: str
    """One of Inference.StopSource; `admin` goes by another permission than the others."""
    room_id: UUID | None = None
    may_go_unrecorded: bool = False
    """Whether the socket is known to be its writer's, so that the owner may be told while the database is away."""
    pressed_at: float = field(default_factory=time.monotonic, compare=False)
    """When it reached this process, by its monotonic clock."""


@dataclass(frozen=True, slots=True)
class StopResult:
    """The outcome, the position that counts (None where there is none), and the ending where it is known."""

    outcome: Outcome
    position: int | None = None
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The stop that stands in the row, and whether it is this one; or how the inference had ended before it."""

    signal: StopSignal
    is_first: bool
    ending: Ending | None
    seconds: float | None = None
    """From the press until it was written down; None for a press that was not."""


async def stop(worker: Worker, press: Stop) -> StopResult:
    """Stop an inference wherever it runs. Never raises; what could not be done is an outcome."""
    with about(press.inference_id):
        try:
            recorded = await rows.run_within(RECORD_SECONDS, _record, press, worker.database_time)
        except JournalError:
            recorded, result = None, await _stop_unrecorded(worker, press)
        else:
            result = await _carry_out(worker, press, recorded)
        worker.life.tell(
            Pressed(
                press.inference_id,
                source=press.source,
                outcome=str(result.outcome),
                record_seconds=recorded.seconds if recorded else None,
                seconds=time.monotonic() - press.pressed_at,
            )
        )
        return result


async def _carry_out(worker: Worker, press: Stop, recorded: _Recorded | None) -> StopResult:
    if recorded is None:
        return StopResult(Outcome.NOT_FOUND)
    if recorded.ending is not None:
        return await _stop_ended(worker, recorded.signal, recorded.ending)
    answer = await worker.stop(recorded.signal)
    ending = answer.ending or await _ending_by_the_row(worker, press.inference_id)
    if ending is not None:
        return _result(ending, is_first=recorded.is_first)
    worker.spawn(_await_end(worker, press.inference_id))
    return StopResult(Outcome.RECORDED, recorded.signal.position)


def _record(press: Stop, database_time: Callable[[], float | None]) -> _Recorded | None:
    is_admin = press.source == Inference.StopSource.ADMIN
    rooms = Room.objects.overseen_by(press.user) if is_admin else Room.objects.writable_by(press.user)
    inferences = Inference.objects.filter(pk=press.inference_id, room__in=rooms).defer("parts")
    if press.room_id is not None:
        inferences = inferences.filter(room=press.room_id)
    inference = inferences.first()
    if inference is None:
        return None
    signal = _signal(press, inference.topic)
    if inference.status in LIVE and Inference.objects.record_stop(signal):
        seconds = time.monotonic() - press.pressed_at
        return _Recorded(replace(signal, recorded_at=database_time()), is_first=True, ending=None, seconds=seconds)
    inference = inferences.first()
    if inference is None:
        return None  # deleted with its room, meanwhile
    if inference.status in LIVE:
        return _Recorded(signal_of(inference), is_first=False, ending=None)
    return _Recorded(signal, is_first=False, ending=endings.ending_of(inference))


def _signal(press: Stop, topic: str) -> StopSignal:
    position = None if press.position is None else min(press.position, MAX_POSITION)
    return StopSignal(press.inference_id, topic, position, press.user.pk, press.source)


async def _stop_ended(worker: Worker, signal: StopSignal, ending: Ending) -> StopResult:
    """The model was faster than the stop: cut the reply back to what this screen had shown, if that is still right."""
    if ending.status is not Status.COMPLETED:
        return _result(ending, is_first=False)
    try:
        cut = await rows.run(endings.cut_after_finish, signal)
        # Where nothing was to be cut any more, an earlier stop may have done it meanwhile.
        record = None if cut else await rows.run(read, signal.inference_id)
    except JournalError:
        return StopResult(Outcome.UNAVAILABLE)
    if cut is not None:
        worker.spawn(worker.announce(cut))
        return StopResult(Outcome.CUT_AFTER_FINISH, cut.position, cut)
    return _result(record.ending if record and record.ending else ending, is_first=False)


async def _stop_unrecorded(worker: Worker, press: Stop) -> StopResult:
    """The database is away: a socket that is in the room may still tell the owner, which saves later."""
    if press.room_id is None or not press.may_go_unrecorded:
        return StopResult(Outcome.UNAVAILABLE)
    signal = _signal(press, Room(pk=press.room_id).topic)
    answer = await worker.stop(signal)
    if answer.ending is not None and answer.ending.status is Status.STOPPED:
        return _result(answer.ending, is_first=press.position in {None, answer.ending.position})
    if answer.ending is not None:
        return await _stop_ended(worker, signal, answer.ending)
    return StopResult(Outcome.RECORDED, signal.position) if answer.is_heard else StopResult(Outcome.UNAVAILABLE)


async def _ending_by_the_row(worker: Worker, inference_id: UUID) -> Ending | None:
    """No answer from the owner: if it is dead, the stop is completed here; then what the row says is true."""
    try:
        await worker.reap()
        record = await rows.run(read, inference_id)
    except JournalError:
        return None
    return record.ending if record else None


async def _await_end(worker: Worker, inference_id: UUID) -> None:
    """The owner will stop, but its `end` may be lost on the way here: look at the row until it is there."""
    for _ in range(AWAIT_END_LOOKS):
        await asyncio.sleep(AWAIT_END_SECONDS)
        ending = await _ending_by_the_row(worker, inference_id)
        if ending is not None:
            await worker.announce(ending)
            return


def _result(ending: Ending, *, is_first: bool) -> StopResult:
    if ending.status is not Status.STOPPED:
        return StopResult(Outcome.ALREADY_FINISHED, ending.position, ending)
    return StopResult(Outcome.STOPPED if is_first else Outcome.ALREADY_STOPPED, ending.position, ending)
