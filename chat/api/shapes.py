"""What the API takes and gives, as its schema describes it. Texts lose NUL and lone surrogates on their way in."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID, uuid4

from ninja import Field, Schema
from pydantic import AfterValidator, BaseModel, ConfigDict

from chat.models.room import TITLE_CHARACTERS
from inference.journal import Status
from inference.text import clean

CleanText = Annotated[str, AfterValidator(clean)]
Title = Annotated[CleanText, Field(max_length=TITLE_CHARACTERS)]
Id = Annotated[UUID, Field(strict=False)]
Role = Literal["owner", "writer", "reader"]
Position = Annotated[int, Field(ge=0, description="Code points of the reply, reasoning and content together.")]


class Body(BaseModel):
    """A request's body: JSON of exactly these fields and types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewRoom(Body):
    title: Title = ""


class RoomChange(Body):
    title: Title


class _Reply(Body):
    client_id: Id = Field(default_factory=uuid4, description="Send the same again and it is not asked twice.")
    stream: bool = Field(default=False, description="Answer by server-sent events as the text comes.")


class AskBody(_Reply):
    text: CleanText
    parent_id: Id | None = Field(
        default=None, description="Which message it follows: left out, the newest; null, none at all."
    )
    model: Annotated[CleanText, Field(max_length=200)] | None = None


class AgainBody(_Reply):
    message_id: Id = Field(description="The reply to regenerate or continue.")


class StopBody(Body):
    inference_id: Id
    position: Position | None = Field(
        default=None, description="The end of the last delta you have shown; left out: where the owner stands."
    )


class NewMember(Body):
    username: Annotated[CleanText, Field(max_length=150)]
    role: Role = "reader"


class RoleChange(Body):
    role: Role


class MemberOut(Schema):
    id: int = Field(description="Of the membership.")
    username: str
    role: Role


class MemberList(Schema):
    members: list[MemberOut]


class RoomOut(Schema):
    id: UUID
    title: str
    role: Role
    created_at: datetime
    updated_at: datetime


class RoomPage(Schema):
    rooms: list[RoomOut]
    next: UUID | None = Field(description="Give it as `after` for the next page; null on the last one.")


class MessageOut(Schema):
    id: UUID
    role: Literal["user", "assistant"]
    text: str
    author: str | None
    parent_id: UUID | None
    client_id: UUID | None
    created_at: datetime
    status: str
    inference_id: UUID | None


class MessagePage(Schema):
    messages: list[MessageOut]
    next: UUID | None = Field(description="Give it as `after` for the next page; null on the last one.")


class StopOut(Schema):
    requested_at: datetime
    by: str | None
    source: str
    position: int | None


class ErrorDetail(Schema):
    code: str
    detail: str


class InferenceOut(Schema):
    inference_id: UUID
    message_id: UUID
    room_id: UUID
    model: str
    status: Status
    finish_reason: str | None
    position: int
    reasoning: str
    content: str
    started_at: datetime
    first_chunk_at: datetime | None
    finished_at: datetime | None
    stop: StopOut | None
    error: ErrorDetail | None


class Answer(Schema):
    """A prompt and its whole reply."""

    prompt: MessageOut | None
    reply: MessageOut
    inference: InferenceOut


class StopResultOut(Schema):
    inference_id: UUID
    outcome: Literal[
        "stopped", "already_stopped", "cut_after_finish", "already_finished", "recorded", "unavailable", "not_found"
    ]
    position: int | None


class ErrorOut(Schema):
    error: ErrorDetail
