"""Who is behind a session, and may they be in a room. Asked by pages, when a socket opens, and while it is open."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.http import HttpRequest

from chat.models import Membership, Room

NOT_SIGNED_IN = 4401
NO_SUCH_ROOM = 4404


class Refused(Exception):
    """The person may not be in the room; `close_code` is that of the protocol."""

    def __init__(self, close_code: int) -> None:
        super().__init__(str(close_code))
        self.close_code = close_code


class Door(NamedTuple):
    """By which session, and into which room."""

    session_key: str
    room_id: UUID


@dataclass(frozen=True, slots=True)
class Visit:
    """A signed-in person in a room that is theirs to see."""

    door: Door
    user: User
    room: Room
    role: str
    """As which they were let in, or were found at the last look."""

    @property
    def can_write(self) -> bool:
        return self.role in Membership.WRITING_ROLES


def person(request: HttpRequest) -> User:
    """Who is signed in, behind `login_required`."""
    assert isinstance(request.user, User)  # noqa: S101  # for the type checker; `login_required` has looked
    return request.user


def person_of(session_key: str) -> User | None:
    """The person whose session this is; None when it has ended: logged out, password changed, account closed."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if isinstance(user, User) and user.is_active else None


def enter(door: Door) -> Visit:
    """Look up person and room in a database thread. Raises Refused."""
    user = person_of(door.session_key)
    if user is None:
        raise Refused(NOT_SIGNED_IN)
    room = Room.objects.visible_to(user).filter(pk=door.room_id).with_role().first()
    if room is None:
        raise Refused(NO_SUCH_ROOM)
    return Visit(door, user, room, role=room.role)
