"""The first frame of a socket: where the room stands."""

from __future__ import annotations

from uuid import UUID

from chat.database import rows
from chat.frames import PROTOCOL, Frame
from chat.models import Inference, Room
from inference.worker import Worker


async def hello(worker: Worker, room: Room) -> Frame:
    """Read where the room stands. Raises JournalError."""
    last_message_id, live = await rows.run(_read, room)
    return {
        "type": "hello",
        "protocol": PROTOCOL,
        "room_id": str(room.pk),
        "last_message_id": str(last_message_id) if last_message_id else None,
        "live": [_live(worker, inference) for inference in live],
    }


def belongs_to(room_id: UUID, inference_id: UUID) -> bool:
    """Whether the inference is one of this room."""
    return Inference.objects.filter(pk=inference_id, room=room_id).exists()


def _read(room: Room) -> tuple[UUID | None, list[Inference]]:
    newest = room.messages.order_by("-created_at").values_list("pk", flat=True).first()
    return newest, list(Inference.objects.live().filter(room=room).defer("parts"))


def _live(worker: Worker, inference: Inference) -> Frame:
    reply = worker.find(inference.pk)
    position = reply.position if reply else inference.position
    return {"inference_id": str(inference.pk), "message_id": str(inference.message_id), "position": position}
