"""The rooms of a person as the sidebar lists them: the last used first, under the days on which that was."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta, tzinfo
from itertools import groupby
from typing import TypedDict
from zoneinfo import ZoneInfo

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chat.models import Membership, Room

ROOMS_IN_SIDEBAR = 1000


class RoomGroup(TypedDict):
    """Rooms that were last used at about the same time."""

    name: str
    rooms: list[Room]


def rooms_of(request: HttpRequest) -> QuerySet[Room]:
    """The rooms of this person, the last used first, each with the person's own `role` and whether it `is_shared`."""
    others = Membership.objects.filter(room=OuterRef("pk")).exclude(user=request.user.pk)
    rooms = Room.objects.visible_to(request.user).with_role().annotate(is_shared=Exists(others))
    return rooms.only("id", "title", "updated_at")


def grouped(rooms: Iterable[Room], request: HttpRequest) -> list[RoomGroup]:
    """Rooms in this order under Today, Yesterday, and so on, by the person's own calendar."""
    zone = zone_of(request)
    today = timezone.localdate(timezone=zone)
    days = groupby(rooms, lambda room: _name(timezone.localdate(room.updated_at, timezone=zone), today))
    return [{"name": name, "rooms": list(each)} for name, each in days]


def zone_of(request: HttpRequest) -> tzinfo:
    """The time zone of this browser, which its cookie names; UTC on a first visit."""
    try:
        return ZoneInfo(request.COOKIES.get("zone", ""))
    except (KeyError, ValueError, OSError):  # no such zone; no name of one; the name of a folder of zones
        return timezone.get_default_timezone()


def _name(day: date, today: date) -> str:
    if day >= today:
        return _("Today")
    if day == today - timedelta(days=1):
        return _("Yesterday")
    if day > today - timedelta(days=7):
        return _("Last 7 days")
    return date_format(day, "YEAR_MONTH_FORMAT")
