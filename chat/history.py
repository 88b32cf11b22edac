"""The messages of a path, and the turns that the model is sent. In a database thread."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings

from chat.models import Message, Room
from chat.tree import Tree
from inference.engine import Turn


def path_to(room: Room, leaf_id: UUID | None) -> list[Message]:
    """The messages from the first prompt to this one, oldest first, with their texts."""
    path = Tree(room).path_to(leaf_id)
    messages = Message.objects.filter(pk__in=path).select_related("author").in_bulk()
    return [messages[message_id] for message_id in path]


def turns_for(room: Room, prompt: Message, *, kept: str = "") -> list[Turn]:
    """What the model is sent for a reply to `prompt`; `kept` is the beginning of a reply that it is to continue.

    Messages without text are left out: an empty reply, or one that was only reasoning, makes model servers refuse the
    whole request. The oldest are left out when there is too much, the prompt itself never.
    """
    earlier = [message for message in path_to(room, prompt.pk)[:-1] if message.text.strip()]
    budget = settings.MAX_HISTORY_CHARACTERS - len(prompt.text)
    turns: list[Turn] = []
    for message in reversed(earlier):
        budget -= len(message.text)
        if budget < 0:
            break
        turns.append(_turn(message))
    system = [Turn("system", room.system_prompt)] if room.system_prompt.strip() else []
    begun = [Turn("assistant", kept)] if kept else []
    return [*system, *reversed(turns), _turn(prompt), *begun]


def _turn(message: Message) -> Turn:
    return Turn("user" if message.role == Message.Role.USER else "assistant", message.text)
