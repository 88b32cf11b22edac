"""What the API reads from the rows, always through what the caller may see. In a database thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet

from chat.api.errors import not_found
from chat.api.shapes import ErrorDetail, InferenceOut, MessageOut, MessagePage, RoomOut, RoomPage, StopOut
from chat.frames import ERROR_SENTENCES, message_frame
from chat.models import Inference, Message, Room
from inference.engine import Part
from inference.journal import LIVE, Status
from inference.reply import text_of

M = TypeVar("M", bound=Model)


def visible_room(user: User, room_id: UUID) -> Room:
    """Raises ApiError `not_found`."""
    room = Room.objects.visible_to(user).filter(pk=room_id).with_role().first()
    if room is None:
        raise not_found("room")
    return room


def visible_inference(user: User, inference_id: UUID) -> Inference:
    """Without its text. Raises ApiError `not_found`."""
    rooms = Room.objects.visible_to(user)
    inference = Inference.objects.filter(pk=inference_id, room__in=rooms).defer("parts").first()
    if inference is None:
        raise not_found("inference")
    return inference


def room_page(user: User, after: UUID | None, limit: int) -> RoomPage:
    """The rooms of a person, the last used first."""
    rooms = Room.objects.visible_to(user).with_role().defer("system_prompt")
    if after is not None:
        last = visible_room(user, after)
        rooms = rooms.filter(Q(updated_at__lt=last.updated_at) | Q(updated_at=last.updated_at, pk__lt=last.pk))
    page, following = _page(rooms.order_by("-updated_at", "-pk"), limit)
    return RoomPage(rooms=[room_out(room) for room in page], next=following)


def room_out(room: Room) -> RoomOut:
    """A room that `visible_room` or `room_page` has read."""
    return RoomOut.from_orm(room)


def message_page(user: User, room_id: UUID, after: UUID | None, limit: int) -> MessagePage:
    """The messages of a room, the oldest first."""
    room = visible_room(user, room_id)
    messages = room.messages.select_related("author", "inference").defer("inference__parts")
    if after is not None:
        last = room.messages.filter(pk=after).only("created_at").first()
        if last is None:
            raise not_found("message")
        messages = messages.filter(Q(created_at__gt=last.created_at) | Q(created_at=last.created_at, pk__gt=last.pk))
    page, following = _page(messages.order_by("created_at", "pk"), limit)
    return MessagePage(messages=[message_out(message) for message in page], next=following)


def message_out(message: Message) -> MessageOut:
    """A message; a live reply has the text of its last checkpoint."""
    inference: Inference | None = getattr(message, "inference", None)
    if inference is not None and inference.status in LIVE:
        if "parts" in inference.get_deferred_fields():
            return message_out(_whole(message))
        message.status, message.text = inference.status, text_of(inference.runs, Part.CONTENT)
    return MessageOut(**message_frame(message)["message"], inference_id=inference.pk if inference else None)


def visible_reply(user: User, inference_id: UUID) -> Inference:
    """An inference with its text and its message. Raises ApiError `not_found`."""
    visible = Inference.objects.filter(pk=inference_id, room__in=Room.objects.visible_to(user))
    row = visible.select_related("stopped_by", "message__author").first()
    if row is None:
        raise not_found("inference")
    return row


def inference_out(row: Inference) -> InferenceOut:
    """The state of an inference that `visible_reply` has read."""
    code = row.error_code
    return InferenceOut(
        inference_id=row.pk,
        message_id=row.message_id,
        room_id=row.room_id,
        model=row.model,
        status=Status(row.status),
        finish_reason=row.finish_reason or None,
        position=row.position,
        reasoning=text_of(row.runs, Part.REASONING),
        content=text_of(row.runs, Part.CONTENT),
        started_at=row.started_at,
        first_chunk_at=row.first_chunk_at,
        finished_at=row.finished_at,
        stop=_stop_out(row),
        error=ErrorDetail(code=code, detail=ERROR_SENTENCES.get(code, ERROR_SENTENCES["internal"])) if code else None,
    )


def _stop_out(row: Inference) -> StopOut | None:
    if row.stop_requested_at is None:
        return None
    by = row.stopped_by.get_username() if row.stopped_by else None
    return StopOut(requested_at=row.stop_requested_at, by=by, source=row.stop_source, position=row.stop_position)


def _whole(message: Message) -> Message:
    """A reply whose text is wanted too: all of it in one statement, so that text and status are of one moment."""
    whole = Message.objects.select_related("author", "inference").filter(pk=message.pk).first()
    if whole is None:
        raise not_found("message")  # deleted meanwhile, with its room
    return whole


def _page(found: QuerySet[M], limit: int) -> tuple[Sequence[M], UUID | None]:
    page = list(found[: limit + 1])
    return page[:limit], page[limit - 1].pk if len(page) > limit else None
