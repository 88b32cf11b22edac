"""Replies as server-sent events, with the frames of the wire protocol; or waited for to their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.http import StreamingHttpResponse

from chat import runtime
from chat.api.callers import Caller
from chat.api.errors import ApiError, not_found
from chat.api.reading import visible_inference
from chat.database import rows
from chat.frames import Frame, FrameError, encode
from chat.view import View
from inference.journal import JournalError
from inference.worker import Worker

KEEP_ALIVE_SECONDS = 15.0
STREAM_RETRY_SECONDS = 5
RECHECK_SECONDS = 4.0
"""How often the rows are asked whether the caller may still read: tokens, sessions and memberships end meanwhile."""


def event_response(
    caller: Caller, inference_id: UUID, position: int, *, first: Sequence[Frame] = ()
) -> StreamingHttpResponse:
    """`first`, then what comes after `position`, up to the `end`. A client that leaves ends nothing."""
    response = StreamingHttpResponse(
        _events(caller, inference_id, position, first), content_type="text/event-stream; charset=utf-8"
    )
    response.headers["Cache-Control"] = "no-store"
    # For nginx, which would keep the events back to send them in lumps.
    response.headers["X-Accel-Buffering"] = "no"
    return response


def refuse_too_many(caller: Caller) -> None:
    """Raises FrameError `rate_limited` when the person has as many streams open in this process as sockets may be."""
    if settings.LIMITS and runtime.current().streams[caller.user.pk] >= settings.MAX_SOCKETS_PER_PERSON:
        detail = "You have as many event streams open at once as one may. Close one."
        raise FrameError("rate_limited", detail, retry_after=STREAM_RETRY_SECONDS)


async def wait_for_end(inference_id: UUID) -> None:
    """Return when the reply has ended and is saved. Raises JournalError, and ApiError `restarting`."""
    worker = runtime.current().worker
    reply = await worker.watch(inference_id)
    if reply is None:
        return
    changed, clock = asyncio.Event(), _Clock()
    reply.add_reader(changed.set)
    try:
        while reply.ending is None:
            changed.clear()
            if not await clock.wait(changed):
                _refuse_draining(worker)
    finally:
        reply.discard_reader(changed.set)


async def _events(caller: Caller, inference_id: UUID, position: int, first: Sequence[Frame]) -> AsyncIterator[str]:
    streams = runtime.current().streams
    streams[caller.user.pk] += 1
    try:
        for frame in first:
            yield _event(frame)
        async with aclosing(_follow(caller, inference_id, position)) as texts:
            async for text in texts:
                yield text
    except (ApiError, JournalError) as error:
        refusal = error if isinstance(error, ApiError) else ApiError("unavailable", "The database can't be reached.")
        ids = {"inference_id": str(inference_id)}
        yield _event({"type": "error", "code": refusal.code, "detail": refusal.detail, **ids})
    finally:
        streams[caller.user.pk] -= 1
        if not streams[caller.user.pk]:
            del streams[caller.user.pk]


async def _follow(caller: Caller, inference_id: UUID, position: int) -> AsyncGenerator[str]:
    worker = runtime.current().worker
    reply = await worker.watch(inference_id)
    if reply is None:
        raise not_found("inference")
    view = View(reply, position)
    changed, clock = asyncio.Event(), _Clock()
    reply.add_reader(changed.set)
    try:
        while view.told is None:
            changed.clear()
            while (frame := await view.next_frame()) is not None:
                clock.sent()
                yield _event(frame)
            if view.told is None and not await clock.wait(changed):
                _refuse_draining(worker)
                await rows.run(_check, caller, inference_id)
                if clock.is_quiet:
                    clock.sent()
                    yield ": still here\n\n"
    finally:
        reply.discard_reader(changed.set)


def _refuse_draining(worker: Worker) -> None:
    """As sockets are closed then: the client comes back to another worker, and goes on where it was."""
    if worker.is_draining:
        raise ApiError("restarting", "The server restarts; follow the reply again, or send the same client_id.")


class _Clock:
    """When the caller is to be checked again, and when a quiet connection needs a sign of life."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._sent_at = self._loop.time()
        self._check_at = self._sent_at + RECHECK_SECONDS

    @property
    def is_quiet(self) -> bool:
        return self._loop.time() - self._sent_at >= KEEP_ALIVE_SECONDS

    def sent(self) -> None:
        self._sent_at = self._loop.time()

    async def wait(self, changed: asyncio.Event) -> bool:
        """Wait for a change; False when it is time for a check."""
        try:
            async with asyncio.timeout_at(self._check_at):
                await changed.wait()
        except TimeoutError:
            pass
        if self._loop.time() < self._check_at:
            return True
        self._check_at = self._loop.time() + RECHECK_SECONDS
        return False


def _check(caller: Caller, inference_id: UUID) -> None:
    user: User | None = caller.find_again()
    if user is None:
        raise ApiError("not_signed_in", "The token or session has ended.")
    visible_inference(user, inference_id)


def _event(frame: Frame) -> str:
    """One server-sent event; the id of a delta is its position, from which a client can go on."""
    lines = [f"event: {frame['type']}", f"data: {encode(frame).decode()}"]
    if frame["type"] == "delta":
        lines.insert(0, f"id: {frame['position']}")
    return "\n".join(lines) + "\n\n"
