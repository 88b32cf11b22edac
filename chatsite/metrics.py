"""/metrics for Prometheus: 404 without METRICS_TOKEN, which whoever asks must bring. Around the pages in asgi.py.

Not a Django view: Prometheus asks a worker by an address that is not among ALLOWED_HOSTS.
"""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from prometheus_client import CONTENT_TYPE_LATEST

from chat import runtime

BEARER = "Bearer "


class WithMetrics:
    """ASGI application that answers /metrics itself and hands the rest on."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/metrics":
            await self._application(scope, receive, send)
            return
        status, headers, body = await _answer(scope)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _answer(scope: Any) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    if not settings.METRICS_TOKEN:
        return 404, [(b"content-type", b"text/plain")], b"METRICS_TOKEN is not set.\n"
    if not _has_token(dict(scope["headers"])):
        return 401, [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")], b"Wrong token.\n"
    gathering = runtime.current().gathering
    is_of_site = parse_qs(scope["query_string"].decode("latin-1")).get("of") == ["site"]
    body = await gathering.of_all_workers() if is_of_site else gathering.of_this_worker()
    return 200, [(b"content-type", CONTENT_TYPE_LATEST.encode()), (b"cache-control", b"no-store")], body


def _has_token(headers: dict[bytes, bytes]) -> bool:
    shown = headers.get(b"authorization", b"").decode("latin-1")
    wanted = BEARER + settings.METRICS_TOKEN
    return hmac.compare_digest(shown.encode(), wanted.encode())
