"""The first frames of a socket: where the room stands."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from chat.access import NO_SUCH_ROOM, Refused
from chat.database import rows
from chat.frames import PROTOCOL, Frame
from chat.missed import room_frames
from chat.models import Inference, Room
from inference.worker import Worker


class Greeting(NamedTuple):
    """What a socket needs to know to go on from there."""

    hello: Frame
    room: Frame
    """For the page, which may have been made before the last change of the room."""


async def greeting(worker: Worker, room: Room) -> Greeting:
    """Read where the room stands. Raises JournalError, and Refused when it has just gone."""
    last_message_id, live, room_frame = await rows.run(_read, room)
    hello = {
        "type": "hello",
        "protocol": PROTOCOL,
        "room_id": str(room.pk),
        "last_message_id": str(last_message_id) if last_message_id else None,
        "live": [_live(worker, inference) for inference in live],
    }
    return Greeting(hello, room_frame)


def belongs_to(room_id: UUID, inference_id: UUID) -> bool:
    """Whether the inference is one of this room."""
    return Inference.objects.filter(pk=inference_id, room=room_id).exists()


def _read(room: Room) -> tuple[UUID | None, list[Inference], Frame]:
    frame = room_frames([room.pk]).get(room.pk)
    if frame is None:
        raise Refused(NO_SUCH_ROOM)
    newest = room.messages.order_by("-created_at").values_list("pk", flat=True).first()
    return newest, list(Inference.objects.live().filter(room=room).defer("parts")), frame


def _live(worker: Worker, inference: Inference) -> Frame:
    reply = worker.find(inference.pk)
    position = reply.position if reply else inference.position
    return {"inference_id": str(inference.pk), "message_id": str(inference.message_id), "position": position}
