"""Messages as a page shows them: rows, with text rendered to the blocks that the live view would show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast
from uuid import UUID

from django.core.cache import cache
from django.utils.safestring import SafeString

from chat.frames import ERROR_SENTENCES
from chat.markdown import render, render_partial
from chat.models import Inference, Message
from chat.tree import Tree, Versions
from inference.engine import Part
from inference.reply import text_of

RENDERER_VERSION = 2
"""To be raised when `chat.markdown` makes other HTML of the same text."""
BLOCKS_SECONDS = 86_400
GROUP_BLOCKS = 20
"""Blocks that come into view and go out of it together: static/js/blocks.js groups those that come later."""
ONLY_VERSION = Versions((), 0)


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
    model: str = ""
    position: int = 0
    finish_reason: str = ""
    error_code: str = ""
    error_sentence: str = ""
    is_live: bool = False
    parent_id: UUID | None = None
    versions: Versions = ONLY_VERSION

    @property
    def groups(self) -> list[Sequence[str]]:
        """The blocks, some at a time."""
        return _grouped(self.blocks)

    @property
    def reasoning_groups(self) -> list[Sequence[str]]:
        return _grouped(self.reasoning_blocks)

    @property
    def version(self) -> int:
        """Which version of its turn this is, from 1."""
        return self.versions.index + 1

    @property
    def version_count(self) -> int:
        return len(self.versions.message_ids)

    @property
    def previous_version(self) -> UUID | None:
        """The next older version, if there is one."""
        return self.versions.message_ids[self.versions.index - 1] if self.versions.index else None

    @property
    def next_version(self) -> UUID | None:
        """The next newer version, if there is one."""
        return self.versions.message_ids[self.version] if self.version < self.version_count else None


def shown_messages(tree: Tree, message_ids: Sequence[UUID]) -> list[ShownMessage]:
    """These messages of a room, in this order. In a database thread."""
    messages = Message.objects.filter(pk__in=message_ids).select_related("author").in_bulk()
    inferences = {row.message_id: row for row in Inference.objects.filter(message__in=message_ids)}
    shown = (_shown(messages[each], inferences.get(each)) for each in message_ids)
    return [replace(each, parent_id=tree.parent(each.id), versions=tree.versions(each.id)) for each in shown]


def _grouped(blocks: Sequence[str]) -> list[Sequence[str]]:
    return [blocks[start : start + GROUP_BLOCKS] for start in range(0, len(blocks), GROUP_BLOCKS)]


def _shown(message: Message, inference: Inference | None) -> ShownMessage:
    author = message.author.get_username() if message.author else ""
    known = (message.pk, message.role, author, message.client_id, message.created_at)
    if inference is None:
        return ShownMessage(*known, status=message.status, text=message.text)
    is_live = inference.finished_at is None
    return ShownMessage(
        *known,
        status=inference.status,
        text=text_of(inference.runs, Part.CONTENT),
        blocks=_blocks(inference, Part.CONTENT, is_live=is_live),
        reasoning_blocks=_blocks(inference, Part.REASONING, is_live=is_live),
        inference_id=inference.pk,
        model=inference.model,
        position=inference.position,
        finish_reason=inference.finish_reason,
        error_code=inference.error_code,
        error_sentence=ERROR_SENTENCES.get(inference.error_code, ""),
        is_live=is_live,
    )


def _blocks(inference: Inference, part: Part, *, is_live: bool) -> list[SafeString]:
    text = text_of(inference.runs, part)
    if is_live:
        return render_partial(text)
    # A long reply takes tens of milliseconds to render, and the same pages are loaded again and again.
    key = f"blocks:{RENDERER_VERSION}:{inference.pk}:{part}:{inference.position}"
    return cast(list[SafeString], cache.get_or_set(key, lambda: render(text), BLOCKS_SECONDS))
