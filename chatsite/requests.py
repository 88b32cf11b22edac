"""Every request and socket gets an id, which its log records carry and its answer names, and a line when it is over.

Around everything else in asgi.py. Daphne's own access log, which has no ids, falls silent.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Awaitable
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from chatsite.logs import without_secrets
from inference.ids import REQUEST_ID, SOCKET_ID

logger = logging.getLogger(__name__)

HEADER = b"x-request-id"
SANE_ID = re.compile(rb"[\w.:/+=-]{1,128}", flags=re.ASCII)
QUIET = ("/static/", "/healthz", "/readyz", "/metrics")
"""What is asked for so often that it is told only at DEBUG, unless it fails."""
NORMAL_CLOSURE = 1000
NO_STATUS = 1005


class Requests:
    """ASGI application around another."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._application(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        # Nothing is put back: the task that the server has made for this request ends with it.
        REQUEST_ID.set(exchange.request_id)
        if scope["type"] == "websocket":
            SOCKET_ID.set(uuid4().hex)
        try:
            await self._application(scope, exchange.receive, exchange.send)
        finally:
            exchange.log()


def silence_daphne() -> None:
    """No lines of daphne's own on standard output, beside ours; a file that `--access-log` names is written as ever."""
    from daphne.access import AccessLogGenerator

    write_entry = AccessLogGenerator.write_entry

    def write_to_files(log: Any, *args: Any, **kwargs: Any) -> None:
        if log.stream is not sys.stdout:
            write_entry(log, *args, **kwargs)

    AccessLogGenerator.write_entry = write_to_files


class _Exchange:
    """One request with its answer, or one socket from its handshake to its close."""

    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope["headers"]).get(HEADER, b"")
        self.request_id = given.decode() if SANE_ID.fullmatch(given) else uuid4().hex
        self._scope = scope
        self._receive = receive
        self._send = send
        self._began_at = time.monotonic()
        self._status: int | None = None
        """The HTTP status, or the close code of a socket; None when nothing was answered."""

    async def receive(self) -> Any:
        message = await self._receive()
        if message["type"] == "websocket.disconnect" and self._status is None:
            self._status = message.get("code", NO_STATUS)
        return message

    def send(self, message: Any) -> Awaitable[None]:
        """Once for each frame, so it adds no coroutine of its own to the server's."""
        match message["type"]:
            case "http.response.start":
                self._status = message["status"]
                message = self._with_id(message)
            case "websocket.accept":
                message = self._with_id(message)
            case "websocket.close":
                self._status = message.get("code", NORMAL_CLOSURE)
        sent: Awaitable[None] = self._send(message)
        return sent

    def log(self) -> None:
        """One line, without the query, which may hold what is nobody's business."""
        method = self._scope.get("method", "WEBSOCKET")
        path = without_secrets(quote(self._scope["path"]))
        seconds = round(time.monotonic() - self._began_at, 3)
        fields = {"method": method, "path": path, "status": self._status, "seconds": seconds}
        status = self._status or "-"
        logger.log(self._level(), "%s %s %s %.3f s", method, path, status, seconds, extra={"fields": fields})

    def _level(self) -> int:
        is_failed = self._status is None or self._status >= 400
        return logging.DEBUG if self._scope["path"].startswith(QUIET) and not is_failed else logging.INFO

    def _with_id(self, message: Any) -> Any:
        return {**message, "headers": [*message.get("headers", ()), (HEADER, self.request_id.encode())]}
