"""Taking prompts from one socket: checked here, written by `chat.prompts`, run by the worker, told to the room."""

from __future__ import annotations

import asyncio
from uuid import UUID

from django.conf import settings

from chat import prompts
from chat.access import Visit
from chat.database import rows
from chat.frames import Continue, Frame, FrameError, Regenerate, Send, message_frame, room_frame, start_frame
from chat.prompts import Ask, PromptError, Taken
from chat.runtime import Runtime
from inference.journal import JournalError
from inference.text import clean

WAIT_FOR_STOP_SECONDS = 2.0
"""How long a prompt right behind a stop waits for the reply to end, instead of `busy`."""
LOOK_AGAIN_SECONDS = 0.25

Prompt = Send | Regenerate | Continue


class Asking:
    """The prompts of one socket, one at a time."""

    def __init__(self, runtime: Runtime, visit: Visit) -> None:
        self.ended = asyncio.Event()
        """Set by the socket whenever a reply of the room has ended."""
        self._runtime = runtime
        self._visit = visit

    async def ask(self, frame: Prompt) -> list[Frame]:
        """Take a prompt. Returns what only the asker is to be told: the rows of one that was taken before.

        Raises FrameError with the client's id.
        """
        taken = await self.take(frame)
        return [] if taken.job is not None else frames_of(taken, frame.client_id)

    async def take(self, frame: Prompt) -> Taken:
        """Take a prompt, which the room is told of; one that was taken before gives its rows. Raises FrameError."""
        client_id = str(frame.client_id)
        if isinstance(frame, Send):
            _check_text(frame)
        if self._runtime.worker.is_draining:
            raise FrameError("restarting", "The server restarts; ask again in a moment.", client_id=client_id)
        try:
            return await self._take(frame)
        except JournalError:
            raise FrameError("unavailable", "The database can't be reached; try again.", client_id=client_id) from None

    async def _take(self, frame: Prompt) -> Taken:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + WAIT_FOR_STOP_SECONDS
        while True:
            self.ended.clear()
            try:
                # The worker's task: a socket that closes now must not leave rows without an owner.
                taking = self._runtime.worker.take(self._begin(frame), expected=(PromptError, JournalError))
                return await asyncio.shield(taking)
            except PromptError as error:
                if not error.is_stopping or loop.time() > give_up_at:
                    raise _refusal(error, frame) from None
            await self._wait_for_end()

    async def _begin(self, frame: Prompt) -> Taken:
        ask = await self._ask_of(frame)
        taken = await rows.run(_write, ask, frame)
        if taken.job is not None:
            self._runtime.worker.start(taken.job)
            await self._runtime.news.publish(taken.room.topic, frames_of(taken, frame.client_id))
        return taken

    async def _ask_of(self, frame: Prompt) -> Ask:
        user = self._visit.user
        return Ask(
            user=user,
            room_id=self._visit.room.pk,
            client_id=frame.client_id,
            worker_id=self._runtime.worker.worker_id,
            model=clean(getattr(frame, "model", None) or ""),
            default_model=await self._runtime.default_model(),
        )

    async def _wait_for_end(self) -> None:
        try:
            async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                await self.ended.wait()
        except TimeoutError:
            return


def frames_of(taken: Taken, client_id: UUID) -> list[Frame]:
    """What the room is told of a prompt that was taken."""
    told: list[Frame] = []
    if taken.prompt is not None:
        told.append(message_frame(taken.prompt))
    elif taken.inference is None and taken.reply is not None:
        # Another reply that was asked for before, and that has ended since.
        told.append(message_frame(taken.reply))
    if taken.inference is not None and taken.reply is not None:
        told.append(start_frame(taken.inference, taken.reply, client_id))
    if taken.has_new_title or taken.left_out:
        told.append(room_frame(taken.room, left_out=taken.left_out))
    return told


def _check_text(frame: Send) -> None:
    client_id = str(frame.client_id)
    if not clean(frame.text).strip():
        raise FrameError("empty", "The prompt is empty.", client_id=client_id)
    if len(frame.text) > settings.MAX_PROMPT_CHARACTERS:
        detail = f"The prompt has {len(frame.text):,} characters; at most {settings.MAX_PROMPT_CHARACTERS:,} are taken."
        raise FrameError("too_long", detail, client_id=client_id)
    if frame.model and settings.CHAT_MODELS and frame.model not in settings.CHAT_MODELS:
        raise FrameError("not_found", "There is no such model.", client_id=client_id)


def _refusal(error: PromptError, frame: Prompt) -> FrameError:
    ids: dict[str, object] = {"client_id": str(frame.client_id)}
    if error.retry_after is not None:
        ids["retry_after"] = error.retry_after
    return FrameError(error.code, error.detail, **ids)


def _write(ask: Ask, frame: Prompt) -> Taken:
    match frame:
        case Send():
            return prompts.send(ask, clean(frame.text), frame.parent_id, has_parent=frame.has_parent)
        case Regenerate():
            return prompts.regenerate(ask, frame.message_id)
        case Continue():
            return prompts.proceed(ask, frame.message_id)
