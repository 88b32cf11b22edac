"""Who calls the API: the person of a personal token, or of a session (then with CSRF). Used by every operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from chat.access import person_of
from chat.api.errors import ApiError
from chat.database import rows
from chat.models import ApiToken


@dataclass(frozen=True, slots=True)
class Caller:
    """A person, and by what they came in."""

    user: User
    find_again: Callable[[], User | None]
    """The person by the same token or session; None when that has ended. In a database thread."""


class ApiRequest(HttpRequest):
    """A request whose caller is known."""

    auth: Caller


class TokenAuth(HttpBearer):
    """`Authorization: Bearer <token>`. A token that is wrong is refused even where there is a session."""

    async def authenticate(self, request: HttpRequest, token: str) -> Caller:
        user = await rows.run(_use, token)
        if user is None:
            raise ApiError("not_signed_in", "There is no such token; it may have been revoked.")
        return Caller(user, lambda: _owner(token))


class SessionAuth(APIKeyCookie):
    """The session's cookie, as pages use it; what changes something needs the CSRF token in X-CSRFToken too."""

    param_name = settings.SESSION_COOKIE_NAME

    def _get_key(self, request: HttpRequest) -> str | None:
        return request.COOKIES.get(self.param_name)

    async def authenticate(self, request: HttpRequest, key: str | None) -> Caller | None:
        user = await rows.run(person_of, key) if key else None
        if user is None or key is None:
            return None
        if check_csrf(request, _any_operation):
            raise ApiError("csrf", "The CSRF token is missing or wrong; send the cookie's value in X-CSRFToken.")
        return Caller(user, lambda: person_of(key))


def _use(secret: str) -> User | None:
    token = ApiToken.objects.by_secret(secret)
    if token is None:
        return None
    ApiToken.objects.note_use(token)
    return token.user


def _owner(secret: str) -> User | None:
    token = ApiToken.objects.by_secret(secret)
    return token.user if token else None


def _any_operation(request: HttpRequest, **_: Any) -> None:
    """What Django's CSRF check looks at: an operation that is not exempt."""
