"""The database's clock as one process knows it: times that two machines compare are by it. Set by the heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable


class DatabaseClock:
    """Goes on by this machine's monotonic clock from when it was last set, so it needs no query."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ahead: float | None = None

    def set(self, read: Callable[[], float]) -> float:
        """Set by `read`, which asks the database (seconds since 1970); wrong by half the time that takes, at most."""
        asked_at = self._clock()
        database_time = read()
        self._ahead = database_time - (asked_at + self._clock()) / 2
        return database_time

    def now(self) -> float | None:
        """Seconds since 1970; None before it was set."""
        return None if self._ahead is None else self._clock() + self._ahead
