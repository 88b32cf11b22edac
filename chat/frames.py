"""The frames of the wire protocol, version 1 (DESIGN section 6): what clients may send, and how ours are built."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from chat.models import Inference, Message, Room
from inference.journal import Ending
from inference.text import clean

PROTOCOL = 1

MAX_DETAIL_CHARACTERS = 200
MAX_NUMBER = 2**53
"""Beyond it JavaScript does not count exactly; and what a client sends comes back to it, so it must not be long."""
ROOM_FIELDS = ("model", "system_prompt")
"""What a `room` frame tells beside the title where it has changed."""

Frame = dict[str, Any]

ERROR_SENTENCES = {
    "model_unavailable": "The model can't be reached right now.",
    "model_auth": "The model server refused this site's key.",
    "model_rate_limited": "The model has too much to do right now. Try again in a moment.",
    "context_too_long": "The conversation has become too long for the model.",
    "model_refused_request": "The model server refused the request.",
    "timeout": "The model took too long.",
    "cut_off": "The reply was cut off on its way from the model.",
    "internal": "Something went wrong on this site.",
}
"""What a person reads for each engine error."""


class FrameError(Exception):
    """A frame that can't be taken: `code` of the protocol, a sentence, and the ids by which the client knows it."""

    def __init__(self, code: str, detail: str, **ids: object) -> None:
        super().__init__(detail)
        self.frame: Frame = {"type": "error", "code": code, "detail": detail, **ids}


class _ClientFrame(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Id = Annotated[UUID, Field(strict=False)]
Position = Annotated[int, Field(ge=0)]


class Send(_ClientFrame):
    type: Literal["send"]
    client_id: Id
    text: str
    parent_id: Id | None = None
    model: Annotated[str, Field(max_length=200)] | None = None

    @property
    def has_parent(self) -> bool:
        """Whether the client named a parent; null is one: the root."""
        return "parent_id" in self.model_fields_set


class Regenerate(_ClientFrame):
    type: Literal["regenerate"]
    client_id: Id
    message_id: Id


class Continue(_ClientFrame):
    type: Literal["continue"]
    client_id: Id
    message_id: Id


class Stop(_ClientFrame):
    type: Literal["stop"]
    inference_id: Id
    position: Position | None = None


class Follow(_ClientFrame):
    type: Literal["follow"]
    inference_id: Id
    position: Position


class Ping(_ClientFrame):
    type: Literal["ping"]
    n: Annotated[int, Field(gt=-MAX_NUMBER, lt=MAX_NUMBER)] | None = None


class Pong(_ClientFrame):
    type: Literal["pong"]
    n: int


ClientFrame = Send | Regenerate | Continue | Stop | Follow | Ping | Pong
_FRAME: TypeAdapter[ClientFrame] = TypeAdapter(Annotated[ClientFrame, Field(discriminator="type")])


def parse(text: str | None) -> ClientFrame:
    """Read a client's frame. Raises FrameError with code `bad_frame` and whatever id the frame shows."""
    if text is None:
        raise FrameError("bad_frame", "A frame is JSON text, not bytes.")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise FrameError("bad_frame", "A frame is one JSON object; this is not JSON.") from None
    try:
        return _FRAME.validate_python(value)
    except ValidationError as error:
        raise FrameError("bad_frame", _sentence(error), **_ids_of(value)) from None


def message_frame(message: Message) -> Frame:
    """A person's message, or a reply, as clients see it."""
    return {
        "type": "message",
        "message": {
            "id": str(message.pk),
            "role": message.role,
            "text": message.text,
            "author": message.author.get_username() if message.author else None,
            "parent_id": _text(message.parent_id),
            "client_id": _text(message.client_id),
            "created_at": message.created_at.isoformat().replace("+00:00", "Z"),
            "status": message.status,
        },
    }


def start_frame(inference: Inference, reply: Message, client_id: UUID | None) -> Frame:
    """A reply begins."""
    return {
        "type": "start",
        "inference_id": str(inference.pk),
        "message_id": str(reply.pk),
        "parent_id": _text(reply.parent_id),
        "model": inference.model,
        "client_id": _text(client_id),
    }


def end_frame(ending: Ending) -> Frame:
    """A reply has ended, or was cut back after its end."""
    code = ending.error_code
    return {
        "type": "end",
        "inference_id": str(ending.inference_id),
        "message_id": str(ending.message_id),
        "status": str(ending.status),
        "finish_reason": ending.finish_reason,
        "position": ending.position,
        "error": {"code": code, "detail": ERROR_SENTENCES.get(code, ERROR_SENTENCES["internal"])} if code else None,
    }


def room_frame(room: Room, *, changed: Collection[str] = (), left_out: int = 0) -> Frame:
    """The room has changed: `changed` names the fields beside its title.

    `left_out`: how many of the oldest messages the model is no longer sent.
    """
    fields = {name: getattr(room, name) for name in ROOM_FIELDS if name in changed}
    return {"type": "room", "title": room.title, **fields, **({"left_out": left_out} if left_out else {})}


def members_frame(room: Room, member_count: int, *, changed: Collection[str] = ()) -> Frame:
    """People have come into the room, or gone, or may do something else in it now."""
    return {**room_frame(room, changed=changed), "member_count": member_count}


def role_frame(title: str, role: str) -> Frame:
    """What the person of this one socket may do in the room has changed."""
    return {"type": "room", "title": title, "role": role}


def encode(frame: Frame) -> bytes:
    """A frame as it goes over the wire, in UTF-8. At every delta: `json.dumps` takes four times as long."""
    return to_json(frame)


def _text(value: UUID | None) -> str | None:
    return str(value) if value else None


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"][1:])
    sentence = f"{where}: {first['msg']}" if where else first["msg"]
    # Names that the client made up may be in it.
    return clean(sentence)[:MAX_DETAIL_CHARACTERS]


def _ids_of(value: object) -> dict[str, str]:
    """The ids by which a client knows what an error answers, if it sent them as short text."""
    if not isinstance(value, dict):
        return {}
    names = {"send": "client_id", "regenerate": "client_id", "continue": "client_id"}
    name = names.get(str(value.get("type")), "inference_id")
    found = value.get(name)
    return {name: found} if isinstance(found, str) and len(found) <= 64 and found.isprintable() else {}
