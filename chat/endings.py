"""How inferences end in the rows: by their owner, for a dead owner, and cut back after the end.

All of it runs in a database thread. Each function is one transaction that locks the inference's row, so that of two
who want to end it one is first and the other learns what is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from chat.models import Inference, Message
from chat.models.inference import InferenceQuerySet, parts_of
from inference.engine import Part
from inference.journal import LIVE, Ending, Result, Run, Status
from inference.reply import cut_runs, text_of
from inference.stop import StopSignal

CHARACTERS_PER_TOKEN = 4
"""For the usage of replies whose model did not tell it."""


@dataclass(frozen=True, slots=True)
class _End:
    """What is to be written: a status and the text it ends with."""

    status: Status
    runs: list[Run]
    position: int


@transaction.atomic
def finish(result: Result) -> Ending | None:
    """End an inference as its owner wishes, or as a recorded stop says; return what is true then.

    When somebody else has ended it meanwhile, a longer text of the owner is still taken where nothing was built on the
    shorter one (DESIGN section 4, last transition).
    """
    inference = _lock(Inference.objects.all(), result.progress.inference_id)
    if inference is None:
        return None
    is_live = inference.status in LIVE
    if is_live or _may_lengthen(inference, result):
        if result.stop is not None and inference.stop_requested_at is None:
            # Heard over the channel layer while the database was away.
            _record(inference, result.stop)
        end = _wanted(inference, result)
        if is_live and end.status is Status.INTERRUPTED:
            inference.stop_source = Inference.StopSource.SHUTDOWN
        _write(inference, end, result)
    elif result.stop is not None:
        # The stop came while the owner was saving the whole reply.
        return cut_after_finish(result.stop) or ending_of(inference)
    return ending_of(inference)


def reap(as_of: datetime | None = None) -> list[Ending]:
    """End the inferences of dead owners: as stopped where a stop is recorded, else as interrupted.

    `as_of` is when this worker itself was last heard of, by the database's clock: a call that an outage holds up is
    carried out after it, when the heartbeats of all are old.
    """
    dead = list(Inference.objects.of_dead_owners(as_of).values_list("pk", flat=True))
    endings = [_reap_one(inference_id, as_of) for inference_id in dead]
    return [ending for ending in endings if ending is not None]


@transaction.atomic
def _reap_one(inference_id: UUID, as_of: datetime | None) -> Ending | None:
    inference = _lock(Inference.objects.of_dead_owners(as_of), inference_id)
    if inference is None:
        return None
    if inference.stop_requested_at is None:
        _write(inference, _End(Status.INTERRUPTED, inference.runs, inference.position))
    else:
        _write(inference, _stopped(inference, inference.runs, inference.position))
    return ending_of(inference)


@transaction.atomic
def cut_after_finish(signal: StopSignal) -> Ending | None:
    """Cut a reply that has just completed back to what the person had seen; None when that is no longer possible."""
    inference = _lock(Inference.objects.just_completed(), signal.inference_id)
    if inference is None or inference.message.children.exists():
        return None
    if signal.position is None or max(signal.position, inference.kept) >= inference.position:
        return None
    _record(inference, signal)
    _write(inference, _stopped(inference, inference.runs, inference.position))
    return ending_of(inference)


def ending_of(inference: Inference) -> Ending:
    """The ending that the row tells."""
    return Ending(
        inference_id=inference.pk,
        message_id=inference.message_id,
        topic=inference.topic,
        status=Status(inference.status),
        position=inference.position,
        finish_reason=inference.finish_reason or None,
        error_code=inference.error_code or None,
    )


def _lock(among: InferenceQuerySet, inference_id: UUID) -> Inference | None:
    # The reply's message too: it is what the sender of the next prompt locks as its parent.
    locked = among.select_related("message").select_for_update(of=("self", "message"))
    return locked.filter(pk=inference_id).first()


def _wanted(inference: Inference, result: Result) -> _End:
    runs, position = list(result.progress.runs), result.progress.position
    if inference.stop_requested_at is None:
        return _End(result.status, runs, position)
    if inference.stop_position is None and result.stop is not None:
        # The person named no position: it is where the owner stood when it heard.
        inference.stop_position = result.stop.position
    return _stopped(inference, runs, position)


def _stopped(inference: Inference, runs: list[Run], end: int) -> _End:
    asked = end if inference.stop_position is None else inference.stop_position
    position = max(min(inference.kept, end), min(asked, end))
    return _End(Status.STOPPED, cut_runs(runs, position), position)


def _may_lengthen(inference: Inference, result: Result) -> bool:
    return (
        inference.status == Status.INTERRUPTED
        and inference.stop_requested_at is None
        and result.progress.position >= inference.position
        and not inference.message.children.exists()
        and not Inference.objects.filter(room=inference.room_id, started_at__gt=inference.started_at).exists()
    )


def _record(inference: Inference, signal: StopSignal) -> None:
    inference.stop_requested_at = Now()
    inference.stopped_by_id = signal.user_id
    inference.stop_source = signal.source
    inference.stop_position = signal.position


def _write(inference: Inference, end: _End, result: Result | None = None) -> None:
    inference.status = end.status
    inference.parts = parts_of(end.runs)
    inference.position = end.position
    inference.finished_at = Now()
    inference.finish_reason = ""
    inference.error_code = ""
    if result is not None:
        _write_result(inference, result, end)
    inference.save(
        update_fields=[
            *("status", "parts", "position", "finished_at", "finish_reason", "error_code", "generated_position"),
            *("stop_requested_at", "stopped_by", "stop_source", "stop_position"),
            *("first_chunk_at", "chunk_count", "usage"),
        ]
    )
    Message.objects.filter(pk=inference.message_id).update(status=end.status, text=text_of(end.runs, Part.CONTENT))


def _write_result(inference: Inference, result: Result, end: _End) -> None:
    progress = result.progress
    if end.status is not Status.STOPPED:
        inference.finish_reason = result.finish_reason or ""
        inference.error_code = result.error_code or ""
    inference.generated_position = progress.position
    inference.chunk_count = progress.chunk_count
    inference.usage = _usage(result)
    if inference.first_chunk_at is None and progress.first_chunk_seconds is not None:
        inference.first_chunk_at = inference.started_at + timedelta(seconds=progress.first_chunk_seconds)


def _usage(result: Result) -> dict[str, int | bool]:
    if result.usage is not None:
        prompt, completion = result.usage.prompt_tokens, result.usage.completion_tokens
        return {"prompt_tokens": prompt, "completion_tokens": completion, "is_estimated": False}
    completion = -(-(result.progress.position - result.floor) // CHARACTERS_PER_TOKEN)
    return {"completion_tokens": completion, "is_estimated": True}
