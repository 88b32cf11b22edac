"""Making a room, from the page and from the API. In a database thread."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from chat.limits import has_too_many_rooms
from chat.models import Room


class TooManyRooms(Exception):
    """The person owns as many rooms as one may; the sentence says how many."""

    def __init__(self) -> None:
        super().__init__(f"You have {settings.MAX_ROOMS_PER_PERSON:,} rooms, as many as one may. Delete one first.")


@transaction.atomic
def make_room(user: User, title: str) -> Room:
    """A new room of this person's. Raises TooManyRooms."""
    if has_too_many_rooms(user):
        raise TooManyRooms
    return Room.objects.create_for(user, title=title)
