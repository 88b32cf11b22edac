"""Whether those who have come in may still be here: sessions, accounts and memberships end while sockets are open."""

from __future__ import annotations

from collections.abc import Iterable

from chat.access import Door, Refused, enter


def refused_doors(doors: Iterable[Door]) -> dict[Door, int]:
    """The close code for each door that would be refused now. In a database thread."""
    refused = {}
    for door in doors:
        try:
            enter(door)
        except Refused as refusal:
            refused[door] = refusal.close_code
    return refused
