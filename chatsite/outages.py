"""What people are told while the database is away: 503 in words, with what they had typed.

Named by settings.MIDDLEWARE and by `chatsite.urls`. The API has a shape of its own for it (`chat.api.errors`).
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.template import loader
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import server_error

from chat.database import OUTAGE, OUTAGE_RETRY_SECONDS

logger = logging.getLogger(__name__)

WAITS = 3
"""A page may take so often DATABASE_TIMEOUT_SECONDS: a PostgreSQL that hangs keeps no bound of its own."""


class Outages(MiddlewareMixin):
    """Answers 503 when a view finds no database, or waits too long for it.

    Before all middleware that runs in the request's thread: what waits there would hold its part of the answer up.
    """

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Django calls it with what a view, or the template that it names, has raised."""
        return _unavailable(request, error) if isinstance(error, OUTAGE) else None

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith("/api/"):
            # Its calls are bounded one by one, and some wait for a whole reply.
            return await _next(self, request)
        try:
            async with asyncio.timeout(WAITS * settings.DATABASE_TIMEOUT_SECONDS):
                return await _next(self, request)
        except TimeoutError:
            # What runs in the request's thread goes on until the database answers.
            with translation.override(translation.get_language_from_request(request)):
                return _unavailable(request, "no answer in time")


def fault(request: HttpRequest) -> HttpResponse:
    """What Django answers to an exception that no view has raised, such as a session that can't be saved.

    Named by `chatsite.urls` as its handler of 500, which is called while the exception is being handled.
    """
    error = sys.exc_info()[1]
    return _unavailable(request, error) if isinstance(error, OUTAGE) else server_error(request)


async def _next(middleware: Any, request: HttpRequest) -> HttpResponseBase:
    response: HttpResponseBase = await middleware.get_response(request)
    return response


def _unavailable(request: HttpRequest, reason: object) -> HttpResponse:
    # One line, and no traceback: it says nothing that the database's own log does not say better.
    logger.warning("answered 503, the database is away: %s", str(reason).partition("\n")[0])
    context = {"is_form": request.method == "POST", "fields": _fields(request), "csrf_token": get_token(request)}
    # The context of other pages asks the database who is signed in.
    response = HttpResponse(loader.render_to_string("503.html", context), status=503)
    response.headers["Retry-After"] = str(OUTAGE_RETRY_SECONDS)
    response.headers["Cache-Control"] = "no-store"
    return response


def _fields(request: HttpRequest) -> list[tuple[str, str]]:
    """What the person had typed, to be sent again by a button; nothing where a password is in it."""
    sent = [(name, value) for name, values in request.POST.lists() for value in values]
    if any("password" in name for name, _ in sent):
        return []
    return [(name, value) for name, value in sent if name != "csrfmiddlewaretoken"]
