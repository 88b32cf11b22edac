"""The messages of a path, and the turns that the model is sent. In a database thread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Length

from chat.models import Message, Room
from chat.tree import Tree
from inference.engine import Turn


def path_to(room: Room, leaf_id: UUID | None) -> list[Message]:
    """The messages from the first prompt to this one, oldest first, with their texts."""
    path = Tree(room).path_to(leaf_id)
    messages = Message.objects.filter(pk__in=path).select_related("author").in_bulk()
    return [messages[message_id] for message_id in path]


def turns_for(room: Room, prompt: Message, *, kept: str = "") -> tuple[list[Turn], int]:
    """What the model is sent for a reply to `prompt`, and how many of the oldest messages are left out for length.

    `kept` is the beginning of a reply that it is to continue. Messages without text are left out and not counted: an
    empty reply, or one that was only reasoning, makes model servers refuse the whole request. The prompt itself is
    always sent.
    """
    earlier = [message for message in path_to(room, prompt.pk)[:-1] if message.text.strip()]
    left_out = _count_beyond(_budget(room) - len(prompt.text), [len(message.text) for message in earlier])
    system = [Turn("system", room.system_prompt)] if room.system_prompt.strip() else []
    begun = [Turn("assistant", kept)] if kept else []
    return [*system, *map(_turn, earlier[left_out:]), _turn(prompt), *begun], left_out


def left_out(room: Room, path: Sequence[UUID]) -> int:
    """How many messages, the oldest on this path, no next prompt can be sent with, however short. Reads no text."""
    lengths = dict(room.messages.filter(pk__in=path).values_list("pk", Length("text")))
    return _count_beyond(_budget(room), [lengths[message_id] for message_id in path if lengths.get(message_id)])


def _budget(room: Room) -> float:
    return settings.MAX_HISTORY_CHARACTERS - len(room.system_prompt) if settings.LIMITS else math.inf


def _count_beyond(budget: float, lengths: Sequence[int]) -> int:
    """How many of the first have to go for the rest to fit."""
    for count in range(len(lengths), 0, -1):
        budget -= lengths[count - 1]
        if budget < 0:
            return count
    return 0


def _turn(message: Message) -> Turn:
    return Turn("user" if message.role == Message.Role.USER else "assistant", message.text)
