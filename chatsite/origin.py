"""WebSockets only from pages of this site: a foreign Origin gets 403 at the handshake. Wraps the sockets in asgi.py."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

DEFAULT_PORTS = {"http": 80, "https": 443}


class SameOrigin:
    """ASGI application that refuses sockets of other sites. Clients that are no browsers send no Origin."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        application = self._application if is_same_origin(headers) else WebsocketDenier()
        await application(scope, receive, send)


def is_same_origin(headers: dict[bytes, str]) -> bool:
    """Whether the Origin is that of the Host, or of PUBLIC_URL, and the Host is one of ours."""
    host = headers.get(b"host", "")
    domain, _ = split_domain_port(host)
    if not validate_host(domain, settings.ALLOWED_HOSTS):
        return False
    origin = headers.get(b"origin")
    if origin is None or (settings.PUBLIC_URL and origin == settings.PUBLIC_URL):
        return True
    try:
        parts = urlsplit(origin)
        own = urlsplit(f"{parts.scheme}://{host}")
        default = DEFAULT_PORTS.get(parts.scheme)
        # The origin "null" has neither scheme nor host.
        return (
            default is not None and parts.hostname == own.hostname and (parts.port or default) == (own.port or default)
        )
    except ValueError:
        return False
