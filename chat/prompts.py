"""Taking a prompt: one transaction writes the prompt, the reply to come and its inference. In a database thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from chat.history import turns_for
from chat.limits import refusal_of_prompt
from chat.models import Inference, Message, Room
from inference.engine import Completion
from inference.journal import LIVE, Status
from inference.runner import Job

TITLE_FROM_PROMPT_CHARACTERS = 60


class PromptError(Exception):
    """The prompt can't be taken; `code` is one of the protocol's error codes."""

    def __init__(self, code: str, detail: str, *, is_stopping: bool = False, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.is_stopping = is_stopping
        """A reply that is in the way has been told to stop."""
        self.retry_after = retry_after
        """For `rate_limited`: seconds."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Who asks, where, and under which client-made id."""

    user: User
    room_id: UUID
    client_id: UUID
    worker_id: UUID
    model: str
    """Empty for the room's own, or else the default."""
    default_model: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of an ask. `job` is None when it was taken before; `prompt` is None for another reply to one."""

    room: Room
    prompt: Message | None
    reply: Message | None
    inference: Inference | None
    job: Job | None
    has_new_title: bool = False
    left_out: int = 0
    """How many of the oldest messages the model is not sent."""


def send(ask: Ask, text: str, parent_id: UUID | None, *, has_parent: bool) -> Taken:
    """Take a prompt. Without a parent named it follows the newest message. Raises PromptError."""
    return _once(ask, partial(_send, ask, text, parent_id, has_parent=has_parent))


def regenerate(ask: Ask, message_id: UUID) -> Taken:
    """Ask for another reply to the same prompt. Raises PromptError."""
    return _once(ask, partial(_reply_again, ask, message_id, is_continued=False))


def proceed(ask: Ask, message_id: UUID) -> Taken:
    """The protocol's `continue`: a reply that begins with the text of this one and goes on. Raises PromptError."""
    return _once(ask, partial(_reply_again, ask, message_id, is_continued=True))


def _once(ask: Ask, take: Callable[[], Taken]) -> Taken:
    try:
        with transaction.atomic():
            return _taken_before(ask) or take()
    except IntegrityError:
        refusal = _busy(is_stopping=False)
    except PromptError as error:
        refusal = error
    # Two frames at the same time: what is in the way may have come of this very client_id.
    taken = _taken_before(ask)
    if taken is None:
        raise refusal
    return taken


def _send(ask: Ask, text: str, parent_id: UUID | None, *, has_parent: bool) -> Taken:
    room = _writable_room(ask)
    parent = _parent(room, parent_id) if has_parent else room.messages.order_by("-created_at").first()
    _refuse_busy(room)
    _refuse_too_many(ask)
    if parent is not None:
        # The lock that a late stop takes too: either it cuts first, or it sees this prompt and lets the reply be.
        parent = Message.objects.select_for_update().filter(pk=parent.pk).first()
        if parent is None:
            raise _no_room()  # deleted a moment ago
    prompt = Message.objects.create(
        room=room,
        parent=parent,
        role=Message.Role.USER,
        author=ask.user,
        text=text,
        status=Message.Status.SENT,
        client_id=ask.client_id,
    )
    has_new_title = _touch(room, text)
    return _begin(ask, room, prompt, reply=Message(), prompt=prompt, has_new_title=has_new_title)


def _reply_again(ask: Ask, message_id: UUID, *, is_continued: bool) -> Taken:
    room = _writable_room(ask)
    replies = room.messages.filter(role=Message.Role.ASSISTANT).select_related("parent")
    earlier = replies.filter(pk=message_id).first()
    if earlier is None or earlier.parent is None:
        raise PromptError("not_found", "There is no such reply in this room.")
    _refuse_busy(room)
    _refuse_too_many(ask)
    kept = earlier.text if is_continued else ""
    _touch(room, "")
    reply = Message(author=ask.user, client_id=ask.client_id)
    return _begin(ask, room, earlier.parent, reply=reply, kept=kept)


def _begin(
    ask: Ask,
    room: Room,
    parent: Message,
    *,
    reply: Message,
    prompt: Message | None = None,
    kept: str = "",
    has_new_title: bool = False,
) -> Taken:
    reply.room, reply.parent, reply.role, reply.status = room, parent, Message.Role.ASSISTANT, Message.Status.PENDING
    reply.save(force_insert=True)
    inference = Inference.objects.create(
        room=room,
        message=reply,
        model=ask.model or room.model or ask.default_model,
        status=Status.PENDING,
        worker=ask.worker_id,
        kept=len(kept),
        position=len(kept),
        generated_position=len(kept),
        parts=[["content", kept]] if kept else [],
    )
    turns, left_out = turns_for(room, parent, kept=kept)
    job = Job(
        inference_id=inference.pk,
        message_id=reply.pk,
        topic=room.topic,
        completion=Completion(model=inference.model, turns=turns),
        kept=kept,
    )
    return Taken(
        room=room,
        prompt=prompt,
        reply=reply,
        inference=inference,
        job=job,
        has_new_title=has_new_title,
        left_out=left_out,
    )


def _taken_before(ask: Ask) -> Taken | None:
    """A resent `client_id` gets its original rows again."""
    sent = Message.objects.filter(room=ask.room_id, author=ask.user, client_id=ask.client_id)
    message = sent.select_related("author").first()
    if message is None:
        return None
    room = _writable_room(ask)
    is_prompt = message.role == Message.Role.USER
    reply = message.children.order_by("created_at").first() if is_prompt else message
    inference = Inference.objects.filter(message=reply, status__in=LIVE).first()
    return Taken(room=room, prompt=message if is_prompt else None, reply=reply, inference=inference, job=None)


def _writable_room(ask: Ask) -> Room:
    room = Room.objects.writable_by(ask.user).filter(pk=ask.room_id).first()
    if room is None:
        raise _no_room()
    return room


def _no_room() -> PromptError:
    return PromptError("not_found", "There is no such room, or it is not yours to write in.")


def _refuse_too_many(ask: Ask) -> None:
    refusal = refusal_of_prompt(ask.user)
    if refusal is not None:
        raise PromptError(
            "rate_limited", refusal.detail, is_stopping=refusal.is_stopping, retry_after=refusal.retry_after
        )


def _parent(room: Room, parent_id: UUID | None) -> Message | None:
    if parent_id is None:
        return None
    parent = room.messages.filter(pk=parent_id).first()
    if parent is None:
        raise PromptError("not_found", "There is no such message in this room.")
    return parent


def _refuse_busy(room: Room) -> None:
    live = Inference.objects.live().filter(room=room).defer("parts").first()
    if live is not None:
        raise _busy(is_stopping=live.stop_requested_at is not None)


def _busy(*, is_stopping: bool) -> PromptError:
    return PromptError("busy", "A reply is still being written in this room.", is_stopping=is_stopping)


def _touch(room: Room, text: str) -> bool:
    """Bring the room to the top of its members' lists; the first prompt gives it a title. True when it did."""
    has_new_title = bool(text) and not room.title
    if has_new_title:
        room.title = " ".join(text.split())[:TITLE_FROM_PROMPT_CHARACTERS]
    room.updated_at = timezone.now()
    if not Room.objects.filter(pk=room.pk).update(title=room.title, updated_at=room.updated_at):
        raise _no_room()  # deleted a moment ago
    return has_new_title
