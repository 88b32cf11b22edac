"""How much one person may ask of one process in a minute."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 60.0


class RateLimit:
    """So many events per person in any minute; people who ask nothing cost no memory."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._times: dict[int, deque[float]] = {}

    def note(self, user_id: int) -> None:
        """The person has done it once more."""
        self._times.setdefault(user_id, self._recent(user_id)).append(self._clock())

    def retry_after(self, user_id: int) -> int:
        """Whole seconds until the person may again; 0 for now."""
        recent = self._recent(user_id)
        if len(recent) < self._per_minute:
            return 0
        return max(1, int(recent[0] + WINDOW_SECONDS - self._clock()) + 1)

    def _recent(self, user_id: int) -> deque[float]:
        start = self._clock() - WINDOW_SECONDS
        for known in [known for known, times in self._times.items() if times[-1] < start]:
            del self._times[known]
        times = self._times.get(user_id, deque())
        while times and times[0] < start:
            times.popleft()
        return times
