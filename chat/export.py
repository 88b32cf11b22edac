"""A room as a file: a path as Markdown, the whole tree as JSON. In a database thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from chat.models import Inference, Message, Room


def as_markdown(room: Room, path: Sequence[UUID]) -> str:
    """The messages of a path under headings that name who wrote them; replies keep their own Markdown."""
    messages = Message.objects.filter(pk__in=path).select_related("author").in_bulk()
    models = dict(Inference.objects.filter(message__in=path).values_list("message_id", "model"))
    title = room.title or "Chat"
    sections = (_section(messages[message_id], models.get(message_id, "")) for message_id in path)
    return "\n\n".join([f"# {title}", *sections]) + "\n"


def as_data(room: Room) -> dict[str, Any]:
    """The room and all its messages, each with its parent."""
    # In one statement: a reply that ends meanwhile must not have the text of one moment and the parts of another.
    messages = room.messages.select_related("author", "inference").order_by("created_at")
    return {
        "id": str(room.pk),
        "title": room.title,
        "model": room.model,
        "system_prompt": room.system_prompt,
        "created_at": room.created_at,
        "messages": [_message(message) for message in messages],
    }


def _section(message: Message, model: str) -> str:
    author = message.author.get_username() if message.author else "Assistant"
    who = author if message.role == Message.Role.USER else "Assistant"
    status = "" if message.status in {Message.Status.SENT, Message.Status.COMPLETED} else message.status
    # The name is one line, whatever the model server calls it.
    marks = ", ".join(filter(None, [" ".join(model.split()), status]))
    return f"## {who}{f' ({marks})' if marks else ''}\n\n{message.text}".rstrip()


def _message(message: Message) -> dict[str, Any]:
    inference: Inference | None = getattr(message, "inference", None)
    data: dict[str, Any] = {
        "id": str(message.pk),
        "parent_id": str(message.parent_id) if message.parent_id else None,
        "role": message.role,
        "author": message.author.get_username() if message.author else None,
        "created_at": message.created_at,
        "status": message.status,
        "text": message.text,
    }
    if inference is not None:
        data["inference"] = {
            "id": str(inference.pk),
            "model": inference.model,
            "finish_reason": inference.finish_reason or None,
            "parts": inference.parts,
        }
    return data
