"""Every error of the API in one shape, `{"error": {"code", "detail"}}`, with the codes of the wire protocol."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from chat.database import OUTAGE, OUTAGE_RETRY_SECONDS
from chat.frames import FrameError
from chat.members import MemberError
from chat.rooms import TooManyRooms

logger = logging.getLogger(__name__)

STATUS_OF = {
    "bad_frame": 400,
    "empty": 400,
    "no_such_person": 400,
    "not_signed_in": 401,
    "csrf": 403,
    "not_found": 404,
    "not_allowed": 405,
    "busy": 409,
    "too_many": 409,
    "conflict": 409,
    "too_long": 413,
    "rate_limited": 429,
    "internal": 500,
    "restarting": 503,
    "unavailable": 503,
}
"""The HTTP status of each code."""


class ApiError(Exception):
    """A request that can't be answered: a code of STATUS_OF and a sentence."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def error_response(code: str, detail: str, *, retry_after: object = None) -> JsonResponse:
    """The one JSON shape of errors; `retry_after` in seconds."""
    response = JsonResponse({"error": {"code": code, "detail": detail}}, status=STATUS_OF.get(code, 500))
    if retry_after is None and response.status_code == 503:
        retry_after = OUTAGE_RETRY_SECONDS
    if retry_after is not None:
        response.headers["Retry-After"] = str(retry_after)
    return response


def not_found(what: str) -> ApiError:
    """The same for what does not exist and for what is not this person's."""
    return ApiError("not_found", f"There is no such {what}, or it is not yours.")


def add_handlers(api: NinjaAPI) -> None:
    """Turn whatever an operation raises into an answer."""
    handlers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        ApiError: lambda _, error: error_response(error.code, error.detail),
        FrameError: _frame_error,
        TooManyRooms: lambda _, error: error_response("too_many", str(error)),
        MemberError: lambda _, error: error_response(error.code, error.detail),
        **dict.fromkeys(OUTAGE, _outage),
        ValidationError: _validation_error,
        HttpError: _http_error,
        RequestDataTooBig: lambda _, error: error_response("too_long", "The body is too large."),
        UnreadablePostError: lambda _, error: error_response("bad_frame", "The body could not be read."),
        Exception: _internal_error,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def _frame_error(request: HttpRequest, error: FrameError) -> HttpResponse:
    frame = error.frame
    return error_response(frame["code"], frame["detail"], retry_after=frame.get("retry_after"))


def _outage(request: HttpRequest, error: Exception) -> HttpResponse:
    return error_response("unavailable", "The database can't be reached; try again.")


def _validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first = error.errors[0]
    where, *rest = (str(step) for step in first["loc"])
    if where == "path":
        return error_response("not_found", "There is no such thing at this address.")
    # The step after "body" is the name of our own argument, which is nothing to the caller.
    name = ".".join(rest[1:] if where == "body" else rest)
    return error_response("bad_frame", f"{name}: {first['msg']}" if name else str(first["msg"]))


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if error.status_code == STATUS_OF["not_signed_in"]:
        return error_response("not_signed_in", "Sign in, or show a token: Authorization: Bearer ...")
    return error_response("bad_frame", "The body is not JSON.")


def _internal_error(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("%s %s", request.method, request.path, exc_info=error)
    return error_response("internal", "Something went wrong.")
