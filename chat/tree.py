"""The tree of a room's messages, without their texts: paths through it, and the versions of a turn."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from uuid import UUID

from chat.models import Room


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of one turn, oldest first, and which of them (from 0) is on the path."""

    message_ids: tuple[UUID, ...]
    index: int


class Tree:
    """Read once from the rows of a room; in a database thread."""

    def __init__(self, room: Room) -> None:
        self._parents: dict[UUID, UUID | None] = {}
        self._children: dict[UUID | None, list[UUID]] = defaultdict(list)
        # In order of creation, so that of two leaves the later one is the newer.
        for message_id, parent_id in room.messages.order_by("created_at").values_list("pk", "parent_id"):
            self._parents[message_id] = parent_id
            self._children[parent_id].append(message_id)
        self._age = {message_id: age for age, message_id in enumerate(self._parents)}

    def path_to(self, message_id: UUID | None) -> list[UUID]:
        """The messages from the first prompt to this one; empty for None and for one of another room."""
        path: list[UUID] = []
        while message_id is not None and message_id in self._parents:
            path.append(message_id)
            message_id = self._parents[message_id]
        return path[::-1]

    def parent(self, message_id: UUID) -> UUID | None:
        """What this message answers; None for a first prompt."""
        return self._parents[message_id]

    def newest_leaf(self, under: UUID | None = None) -> UUID | None:
        """The newest message that has this one on its path, itself if nothing follows; without one: of the room."""
        if under is None:
            return max(self._age, key=self._age.__getitem__, default=None)
        below = [under]
        for message_id in below:
            below.extend(self._children.get(message_id, ()))
        return max((each for each in below if each in self._age), key=self._age.__getitem__, default=None)

    def versions(self, message_id: UUID) -> Versions:
        """All messages that stand where this one stands."""
        siblings = tuple(self._children[self._parents[message_id]])
        return Versions(siblings, siblings.index(message_id))
