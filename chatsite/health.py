"""/healthz (this process answers) and /readyz (it can take work)."""

from __future__ import annotations

import asyncio

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, JsonResponse

from chat import runtime
from chat.database import rows
from inference.journal import JournalError

SUBSCRIPTION_SECONDS = 1.0


async def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the event loop turns and this process is a worker; else it is time to restart it."""
    worker = runtime.current()
    is_well = worker.is_running or worker.worker.is_draining
    return JsonResponse({"status": "ok" if is_well else "dead"}, status=200 if is_well else 503)


async def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database and Redis answer and this worker is not draining, else 503 with what is missing."""
    state = {"database": await _has_database(), "redis": await _has_redis(), "accepting": _is_accepting()}
    return JsonResponse(state, status=200 if all(state.values()) else 503)


async def _has_database() -> bool:
    try:
        await rows.run(_select_one)
    except JournalError:
        return False
    return True


def _select_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def _has_redis() -> bool:
    if not settings.REDIS_URL:
        return True
    try:
        async with asyncio.timeout(SUBSCRIPTION_SECONDS):
            await runtime.current().bus.has_subscription.wait()
    except TimeoutError:
        return False
    return True


def _is_accepting() -> bool:
    return not runtime.current().worker.is_draining
