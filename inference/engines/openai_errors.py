"""Which ErrorCode an answer or an exception of the OpenAI client stands for. Called by the modules beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
import httpx2
import openai

from inference.engine import EngineError, ErrorCode

STATUS_IN_STREAM = 200
MAX_DETAIL_CHARACTERS = 300
RETRY_STATUSES = frozenset({408, 409, 429})

CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error", "context_window_exceeded")
CONTEXT_PHRASES = ("context length", "context window", "context size", "prompt is too long", "too many tokens")
CODE_BY_STATUS = {
    401: ErrorCode.MODEL_AUTH,
    403: ErrorCode.MODEL_AUTH,
    408: ErrorCode.TIMEOUT,
    429: ErrorCode.MODEL_RATE_LIMITED,
    504: ErrorCode.TIMEOUT,
}
# Inside a stream there is no status, but a `code` or `type` that contains one of these.
CODE_BY_WORD = {
    "api_key": ErrorCode.MODEL_AUTH,
    "authentication": ErrorCode.MODEL_AUTH,
    "permission": ErrorCode.MODEL_AUTH,
    "rate_limit": ErrorCode.MODEL_RATE_LIMITED,
    "quota": ErrorCode.MODEL_RATE_LIMITED,
    "timeout": ErrorCode.TIMEOUT,
    "invalid_request": ErrorCode.MODEL_REFUSED_REQUEST,
    "not_found": ErrorCode.MODEL_REFUSED_REQUEST,
    "badrequest": ErrorCode.MODEL_REFUSED_REQUEST,
}

# What the client lets through: its own family, that of its HTTP layer, and that of the transport under it.
TRANSPORT_ERRORS = (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError)
# And what it raises in between: on an engine already closed, for a text that can't be encoded.
REQUEST_ERRORS = (*TRANSPORT_ERRORS, ValueError, TypeError, RuntimeError)


def error_of(body: object, *, status: int) -> EngineError:
    """The error that a status (STATUS_IN_STREAM when there is none) and a body stand for."""
    fields = _error_fields(body)
    kind = f"{fields.get('code')} {fields.get('type')}".lower()
    message = str(fields.get("message") or body)[:MAX_DETAIL_CHARACTERS]
    code = _code(_status(status, fields), kind, message.lower())
    return EngineError(code, f"the model server answered {status}: {message}")


def error_of_exception(error: Exception) -> EngineError:
    """The error that an exception before the head of the answer stands for."""
    if isinstance(error, openai.APIStatusError):
        return error_of(error.body, status=error.status_code)
    if not isinstance(error, TRANSPORT_ERRORS):
        return EngineError(ErrorCode.INTERNAL, f"the request could not be sent: {type(error).__name__}")
    code = ErrorCode.TIMEOUT if _is_timeout(error) else ErrorCode.MODEL_UNAVAILABLE
    causes = " <- ".join(repr(cause) for cause in _chain(error))
    return EngineError(code, f"no answer from the model server: {causes}"[:MAX_DETAIL_CHARACTERS])


def is_worth_retrying(error: Exception) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code in RETRY_STATUSES or error.status_code >= 500
    return isinstance(error, openai.APIConnectionError)


def retry_after_seconds(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """What `Retry-After` asks for: seconds or an HTTP date (RFC 9110, 10.2.3); None when it asks for nothing."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        wanted_at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (wanted_at - (now or datetime.now(UTC))).total_seconds()) if wanted_at.tzinfo else None


def is_about_stream_options(error: Exception) -> bool:
    """Whether a server refuses `stream_options`, which older ones don't know."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in (400, 422):
        return False
    text = str(error.body)
    return "stream_options" in text or "include_usage" in text


def _error_fields(body: object) -> dict[str, object]:
    """The error object, whether bare, under `error`, or only a sentence there."""
    if not isinstance(body, dict):
        return {}
    error = body.get("error")
    if isinstance(error, dict):
        return error
    return {**body, "message": error} if error else body


def _status(status: int, fields: dict[str, object]) -> int:
    """Inside a stream some servers put the status into `code`."""
    code = str(fields.get("code"))
    return int(code) if status == STATUS_IN_STREAM and code.isdecimal() and len(code) == 3 else status


def _code(status: int, kind: str, message: str) -> ErrorCode:
    if status in (STATUS_IN_STREAM, 400, 413, 422) and _is_about_context(kind, message):
        return ErrorCode.CONTEXT_TOO_LONG
    if status in CODE_BY_STATUS:
        return CODE_BY_STATUS[status]
    if 400 <= status < 500:
        return ErrorCode.MODEL_REFUSED_REQUEST
    if status == STATUS_IN_STREAM:
        return next((code for word, code in CODE_BY_WORD.items() if word in kind), ErrorCode.MODEL_UNAVAILABLE)
    return ErrorCode.MODEL_UNAVAILABLE


def _is_about_context(kind: str, message: str) -> bool:
    return any(code in kind for code in CONTEXT_CODES) or any(phrase in message for phrase in CONTEXT_PHRASES)


def _is_timeout(error: Exception) -> bool:
    # The client calls every broken connection of this transport a time-out; what it was stands in the causes.
    return any(isinstance(cause, TimeoutError) for cause in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
