"""Running ORM code from the event loop, in threads of our own and never for longer than a named time.

Not Django's thread-sensitive thread: that is one for the whole process, so one slow query would hold up every socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from channels.db import DatabaseSyncToAsync
from django.conf import settings
from django.db import InterfaceError, OperationalError

from inference.journal import JournalError

OUTAGE = (OperationalError, InterfaceError, JournalError)
"""What is raised while the database is away: by Django, and by this module."""
OUTAGE_RETRY_SECONDS = 5
"""When people and programs are told to ask again."""

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseThreads:
    """A few threads for ORM code. Connections go back to the pool, or stay with their thread, after each call."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="database")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in a thread. Raises JournalError when the database is away or doesn't answer in time.

        A call that is given up goes on in its thread until the database answers, so what it does must be conditional.
        """
        return await self.run_within(settings.DATABASE_TIMEOUT_SECONDS, function, *args, **kwargs)

    async def run_within(self, seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`run`, with a time of its own."""
        call: Callable[P, asyncio.Future[T]] = DatabaseSyncToAsync(
            function, thread_sensitive=False, executor=self._threads
        )
        try:
            async with asyncio.timeout(seconds):
                return await call(*args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            raise JournalError(str(error)) from error
        except TimeoutError as error:
            raise JournalError(f"no answer within {seconds:g} s") from error


rows = DatabaseThreads(settings.DATABASE_THREADS)
"""For what people ask for."""
pulse = DatabaseThreads(2)
"""For heartbeats and checkpoints, which must not wait behind people's queries."""
