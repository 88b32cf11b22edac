"""How much one person, and the whole site, may have at once. Counted in the rows by the transaction that adds to them.

In a database thread. LIMITS=off lifts all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from chat.models import Inference, Membership, Message
from chat.models.inference import InferenceQuerySet

WINDOW = timedelta(minutes=1)
LIVE_RETRY_SECONDS = 5
"""When to ask again while too many replies are being written: nobody knows when one of them ends."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not now, in a sentence; after how many seconds it is worth another try."""

    detail: str
    retry_after: int
    is_stopping: bool = False
    """One of the replies that are in the way has been told to stop."""


def refusal_of_prompt(user: User) -> Refusal | None:
    """Why this person may not ask now, or None. In the transaction that writes the prompt."""
    if not settings.LIMITS:
        return None
    _lock(user)
    checks: tuple[Callable[[User], Refusal | None], ...] = (_too_often, _too_many_of_person, _too_many_in_all)
    return next((refusal for check in checks if (refusal := check(user))), None)


def has_too_many_rooms(user: User) -> bool:
    """Whether this person owns as many rooms as one may. In the transaction that makes the next one."""
    if not settings.LIMITS:
        return False
    _lock(user)
    owned = Membership.objects.filter(user=user, role=Membership.Role.OWNER)
    return owned.count() >= settings.MAX_ROOMS_PER_PERSON


def _lock(user: User) -> None:
    # Of two requests at once, on whichever workers, the second counts what the first has written. Rows that refer to
    # this one can be written meanwhile.
    list(User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk"))


def _too_often(user: User) -> Refusal | None:
    start = timezone.now() - WINDOW
    newest = Message.objects.filter(author=user, created_at__gt=start).order_by("-created_at")
    limit = settings.PROMPTS_PER_MINUTE
    in_the_way = newest.values_list("created_at", flat=True)[limit - 1 : limit]
    for created_at in in_the_way:
        seconds = max(1, math.ceil((created_at - start).total_seconds()))
        return Refusal("Too many prompts in a short time. Try again in a moment.", seconds)
    return None


def _too_many_of_person(user: User) -> Refusal | None:
    by_prompt = Q(message__author=None, message__parent__author=user)
    mine = Inference.objects.live().filter(Q(message__author=user) | by_prompt)
    detail = "As many replies as you may have at once are being written. Stop one, or wait for its end."
    return _refusal_of_live(mine, settings.MAX_LIVE_PER_PERSON, detail)


def _too_many_in_all(user: User) -> Refusal | None:
    # Not locked: prompts that begin in the same instant may each be the last that fits.
    detail = "This site is writing as many replies as it can. Try again in a moment."
    return _refusal_of_live(Inference.objects.live(), settings.MAX_LIVE, detail)


def _refusal_of_live(live: InferenceQuerySet, limit: int, detail: str) -> Refusal | None:
    # All that are live may be many, and only some are looked at: enough to know that it is too many.
    stops = list(live.order_by().values_list("stop_requested_at", flat=True)[:limit])
    if len(stops) < limit:
        return None
    return Refusal(detail, LIVE_RETRY_SECONDS, is_stopping=any(stops))
