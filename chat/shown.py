"""Messages as a page shows them: rows, with text rendered to the blocks that the live view would show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from chat.frames import ERROR_SENTENCES
from chat.markdown import render, render_partial
from chat.models import Inference, Message
from inference.engine import Part
from inference.reply import text_of


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """What templates/rooms/ needs of one message. `blocks` are safe HTML; `text` is not."""

    id: UUID
    role: str
    author: str
    client_id: UUID | None
    created_at: datetime
    status: str
    text: str
    blocks: Sequence[str] = ()
    reasoning_blocks: Sequence[str] = ()
    inference_id: UUID | None = None
    position: int = 0
    finish_reason: str = ""
    error_code: str = ""
    error_sentence: str = ""
    is_live: bool = False


def shown_messages(path: Sequence[Message]) -> list[ShownMessage]:
    """The messages of a path, oldest first."""
    inferences = {row.message_id: row for row in Inference.objects.filter(message__in=path)}
    return [_shown(message, inferences.get(message.pk)) for message in path]


def _shown(message: Message, inference: Inference | None) -> ShownMessage:
    author = message.author.get_username() if message.author else ""
    known = (message.pk, message.role, author, message.client_id, message.created_at)
    if inference is None:
        return ShownMessage(*known, status=message.status, text=message.text)
    is_live = inference.finished_at is None
    rendered = render_partial if is_live else render
    return ShownMessage(
        *known,
        status=inference.status,
        text=text_of(inference.runs, Part.CONTENT),
        blocks=rendered(text_of(inference.runs, Part.CONTENT)),
        reasoning_blocks=rendered(text_of(inference.runs, Part.REASONING)),
        inference_id=inference.pk,
        position=inference.position,
        finish_reason=inference.finish_reason,
        error_code=inference.error_code,
        error_sentence=ERROR_SENTENCES.get(inference.error_code, ""),
        is_live=is_live,
    )
