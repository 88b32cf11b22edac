"""Stop from the admin: the same path as from a page, entered by another permission."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, User

from chat import runtime
from chat.models import Inference
from chat.stops import Outcome, Stop, StopResult, stop

SENTENCES = {
    Outcome.STOPPED: "Stopped at {position} characters.",
    Outcome.ALREADY_STOPPED: "Somebody had stopped it at {position} characters.",
    Outcome.CUT_AFTER_FINISH: "It had finished, and was cut back to {position} characters.",
    Outcome.ALREADY_FINISHED: "It had already ended, and nothing was cut.",
    Outcome.RECORDED: "The stop is written down; the reply will end in a moment.",
    Outcome.UNAVAILABLE: "The stop could not be written down. Try again.",
    Outcome.NOT_FOUND: "You may not stop it, or it is gone.",
}


def stop_all(user: User | AnonymousUser, inference_ids: Sequence[UUID]) -> list[StopResult]:
    """Stop these wherever they run, each where its owner stands. From a view's thread; waits a few seconds at most."""
    if not isinstance(user, User):
        return [StopResult(Outcome.NOT_FOUND) for _ in inference_ids]
    return async_to_sync(_stop_all)(user, inference_ids)


def sentence(result: StopResult) -> str:
    """What came of a stop, for the admin who asked."""
    return SENTENCES[result.outcome].format(position=result.position)


async def _stop_all(user: User, inference_ids: Sequence[UUID]) -> list[StopResult]:
    # In the event loop of this process, where its worker runs.
    worker = runtime.current().worker
    source = Inference.StopSource.ADMIN.value
    presses = [Stop(user=user, inference_id=each, position=None, source=source) for each in inference_ids]
    return await asyncio.gather(*(worker.spawn(stop(worker, press)) for press in presses))
