"""The ids that log records carry: of the request, the socket and the inference that something is done for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from uuid import UUID

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
SOCKET_ID: ContextVar[str] = ContextVar("socket_id", default="")
INFERENCE_ID: ContextVar[str] = ContextVar("inference_id", default="")
ALL = (REQUEST_ID, SOCKET_ID, INFERENCE_ID)


@contextmanager
def about(inference_id: UUID) -> Iterator[None]:
    """What is logged in here is about this inference."""
    token = INFERENCE_ID.set(str(inference_id))
    try:
        yield
    finally:
        INFERENCE_ID.reset(token)


def context_of_ids() -> Context:
    """A new context with the ids of this one and nothing else of it."""
    context = Context()
    for variable in ALL:
        context.run(variable.set, variable.get())
    return context


def context_without_ids() -> Context:
    """A copy of this context for what belongs to the process, although a request may have begun it."""
    context = copy_context()
    for variable in ALL:
        context.run(variable.set, "")
    return context
