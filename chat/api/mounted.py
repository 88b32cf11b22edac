"""The API put together: its operations, its schema, its documentation, and the answer for paths that are none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI, Swagger
from ninja.operation import Operation

from chat.api import asking, inferences, members, rooms
from chat.api.callers import SessionAuth, TokenAuth
from chat.api.errors import add_handlers, error_response

DOCUMENTATION_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Swagger's page needs inline styles and has no Trusted Types; its scripts come from this site like all others."""

View = Callable[..., Awaitable[HttpResponseBase]]


class Documentation(Swagger):
    """The page on which the API can be tried."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        response = super().render_page(request, api, **kwargs)
        response.headers["Content-Security-Policy"] = DOCUMENTATION_POLICY
        return response


class Api(NinjaAPI):
    """Names its operations by their functions, for programs that make clients from the schema."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__


def paths() -> list[URLPattern]:
    """What is under /api/v1/. To be called once."""
    api = Api(
        title="Chatsite",
        version="1",
        description="Rooms, prompts, replies as they are written, and Stop. The frames in event streams are those of "
        "the wire protocol, version 1.",
        auth=[TokenAuth(), SessionAuth()],
        docs=Documentation(),
        urls_namespace="api",
    )
    add_handlers(api)
    for router in (rooms.router, members.router, asking.router, inferences.router):
        api.add_router("", router)
    patterns = [pattern for pattern in api.urls[0] if isinstance(pattern, URLPattern)]
    for pattern in patterns:
        if pattern.name == "api-root":
            pattern.callback = no_such_path
        elif pattern.name not in {"openapi-json", "openapi-view"}:
            pattern.callback = _with_shaped_refusal(pattern.callback)
    return patterns


@csrf_exempt
async def no_such_path(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Whatever else is asked for under /api/."""
    return error_response("not_found", "There is nothing at this address.")


def _with_shaped_refusal(view: View) -> View:
    """The library says that a method is not allowed in words of its own."""

    @wraps(view)
    async def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = await view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        refusal = error_response("not_allowed", "This address does not take that method.")
        refusal.headers["Allow"] = response.headers["Allow"]
        return refusal

    return answer
