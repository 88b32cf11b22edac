"""When this process starts and stops to be a worker, under daphne (which has no lifespan) and under servers that have.

Under daphne the worker starts with the reactor, and the reactor's shutdown waits for the drain.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from typing import Any

from django.conf import settings

from chat import runtime
from chatsite.garbage import spare_what_stays
from inference.ids import context_without_ids

logger = logging.getLogger(__name__)

EXIT_SECONDS = 5.0
"""From the end of the drain to that of the process, at most."""


class Lifespan:
    """ASGI application around the site: answers `lifespan`, and hooks into daphne's reactor where there is one."""

    def __init__(self, application: Any) -> None:
        self._application = application
        if "daphne.server" in sys.modules:
            ReactorHook().install()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        else:
            await self._application(scope, receive, send)


class ReactorHook:
    """Starts the worker with daphne's reactor and drains it before the reactor goes; a second signal skips the wait.

    The drain comes before the reactor's shutdown and not in it: daphne's own shutdown kills all sockets at once.
    """

    def __init__(self) -> None:
        # Only now: importing it installs a reactor, which is daphne's to choose.
        from twisted.internet import reactor

        self._reactor: Any = reactor
        self._draining: asyncio.Task[None] | None = None

    def install(self) -> None:
        """To be called once, before the reactor runs."""
        from chatsite.close_codes import allow_registered_codes
        from chatsite.eager_writes import write_eagerly
        from chatsite.held_floods import hold_floods
        from chatsite.requests import silence_daphne

        allow_registered_codes()
        silence_daphne()
        hold_floods()
        write_eagerly(self._reactor)
        self._reactor.callWhenRunning(self._start)

    def _start(self) -> None:
        # The reactor's own handlers are in place by now; a second signal would be an error to them.
        for number in (signal.SIGTERM, signal.SIGINT):
            # It comes in the midst of something else, whose ids are not its own.
            signal.signal(number, lambda *_: context_without_ids().run(self._reactor.callFromThread, self._stop))
        # The reactor says that it runs before its event loop does.
        self._reactor.callLater(0, _begin)

    def _stop(self) -> None:
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())
        else:
            logger.info("second signal: not waiting any longer")
            runtime.current().worker.hurry()

    async def _drain(self) -> None:
        logger.info("draining for up to %g s", settings.DRAIN_SECONDS)
        self._stop_listening()
        try:
            await runtime.shut_down(settings.DRAIN_SECONDS)
        finally:
            _exit_within(EXIT_SECONDS)
            self._reactor.stop()

    def _stop_listening(self) -> None:
        # First of all, so that browsers and the proxy go to another worker.
        from twisted.internet.interfaces import IListeningPort

        for port in self._reactor.getReaders():
            if IListeningPort.providedBy(port):
                port.stopListening()


def _begin() -> None:
    runtime.current()
    spare_what_stays()


def _exit_within(seconds: float) -> None:
    """All is saved; Python would wait for threads that may be waiting for a database that hangs."""
    timer = threading.Timer(seconds, os._exit, [0])
    timer.daemon = True
    timer.start()


async def _lifespan(receive: Any, send: Any) -> None:
    await receive()
    _begin()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await runtime.shut_down(settings.DRAIN_SECONDS)
    await send({"type": "lifespan.shutdown.complete"})
