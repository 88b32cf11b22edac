"""Whether those who have come in may still be here, and as what: sessions, accounts and memberships end or change while
sockets are open.

What `chat.access.enter` asks for one door, asked for all of a process in three queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

from chat.access import NO_SUCH_ROOM, NOT_SIGNED_IN, Door
from chat.models import Membership
from inference.text import clean


class Standing(NamedTuple):
    """How it stands behind a door now: a close code, or a role in the room of this title."""

    close_code: int | None
    role: str = ""
    title: str = ""


def standings(doors: Collection[Door]) -> dict[Door, Standing]:
    """How each door would be answered now. In a database thread."""
    people = _people_of({door.session_key for door in doors})
    found = Membership.objects.filter(
        room__in={door.room_id for door in doors}, user__in={user.pk for user in people.values()}
    )
    members = {
        (user_id, room_id): Standing(None, role, title)
        for user_id, room_id, role, title in found.values_list("user_id", "room_id", "role", "room__title")
    }
    return {door: _standing(door, people, members) for door in doors}


def _standing(door: Door, people: Mapping[str, User], members: Mapping[tuple[int, UUID], Standing]) -> Standing:
    user = people.get(door.session_key)
    if user is None:
        return Standing(NOT_SIGNED_IN)
    return members.get((user.pk, door.room_id), Standing(NO_SUCH_ROOM))


def _people_of(session_keys: Iterable[str]) -> dict[str, User]:
    keys = [clean(key) for key in session_keys]
    sessions = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    contents = {session.session_key: session.get_decoded() for session in sessions}
    users = User.objects.filter(is_active=True).in_bulk(
        [content[SESSION_KEY] for content in contents.values() if SESSION_KEY in content]
    )
    people = {key: users.get(int(content.get(SESSION_KEY, 0))) for key, content in contents.items()}
    return {key: user for key, user in people.items() if user is not None and _is_of(user, contents[key])}


def _is_of(user: User, content: dict[str, Any]) -> bool:
    # The hash changes with the password, and ends the sessions of the old one.
    return content.get(HASH_SESSION_KEY) in {user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()}
