"""How often somebody may try to get in: by a password, by a reset. Used by the forms; in the thread of a view.

What was typed counts whether there is such an account or not, so that the answers tell nobody which accounts exist.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest

from chat.models import Attempt
from chat.models.attempt import WINDOW
from inference.text import clean

SIGNUP_WINDOW = timedelta(hours=1)
IPV6_NETWORK = 64
"""One customer's part of the address, within which they take another as they like."""


class TooManyAttempts(Exception):
    """To be tried again in `retry_after` whole seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"try again in {retry_after} s")
        self.retry_after = retry_after


def begin(kind: str, name: str, limit: int, *, window: timedelta = WINDOW) -> None:
    """Count an attempt before it is made: of many at the same time, no more than `limit` in a window go on.

    `name` is what it is made on, an account or an address. Raises TooManyAttempts; what is refused does not count.
    """
    if not settings.LIMITS:
        return
    name = _same(name)
    attempt = Attempt.objects.note(kind, name)
    others = Attempt.objects.recent(kind, name, window=window).exclude(pk=attempt.pk)
    retry_after = others.retry_after(limit, window=window)
    if retry_after:
        attempt.delete()
        raise TooManyAttempts(retry_after)


def begin_sign_up(request: HttpRequest) -> None:
    """Count an account that is about to be made from this address. Raises TooManyAttempts."""
    begin("sign-up", address_of(request), settings.SIGNUPS_PER_HOUR, window=SIGNUP_WINDOW)


def forget(kind: str, name: str) -> None:
    """The attempts on this account have led to the right person."""
    Attempt.objects.recent(kind, _same(name)).delete()


def note_failure(request: HttpRequest | None) -> None:
    """An attempt from this address has failed, on whichever account."""
    if settings.LIMITS and request is not None:
        Attempt.objects.note("address", address_of(request))


def refuse_address(request: HttpRequest | None) -> None:
    """Raises TooManyAttempts when too many attempts from this address have failed."""
    if not settings.LIMITS or request is None:
        return
    retry_after = Attempt.objects.recent("address", address_of(request)).retry_after(
        settings.LOGIN_FAILURES_PER_ADDRESS
    )
    if retry_after:
        raise TooManyAttempts(retry_after)


def address_of(request: HttpRequest) -> str:
    """Whom the outermost of our PROXY_COUNT proxies was asked by; a network for IPv6, empty where there is none."""
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",") if hop.strip()]
    trusted: int = settings.PROXY_COUNT
    address = hops[-min(trusted, len(hops))] if trusted and hops else request.META.get("REMOTE_ADDR", "")
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or ip_network((parsed, IPV6_NETWORK), strict=False))
    return str(parsed)


def _same(name: str) -> str:
    # One account, however its name is typed; also for those that compare names without case.
    return User.normalize_username(clean(name)).casefold()
