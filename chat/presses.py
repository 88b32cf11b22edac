"""Presses of Stop over HTTP, so that a flood of them is refused: the first of an inference never is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from uuid import UUID

WINDOW_SECONDS = 60.0
MAX_KNOWN = 10_000


class Presses:
    """Those of the last minute in this process. What is forgotten early, because there are too many, counts as new."""

    def __init__(self, repeats_per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._repeats_per_minute = repeats_per_minute
        self._clock = clock
        self._pressed: dict[tuple[int, UUID], float] = {}
        self._repeats: dict[int, deque[float]] = {}

    def retry_after(self, user_id: int, inference_id: UUID) -> int:
        """Note a press. Whole seconds until one like it is taken again; 0 when this one is."""
        now = self._clock()
        self._forget(now - WINDOW_SECONDS)
        is_first = (user_id, inference_id) not in self._pressed
        self._pressed.setdefault((user_id, inference_id), now)
        if is_first:
            return 0
        repeats = self._repeats.setdefault(user_id, deque())
        if len(repeats) >= self._repeats_per_minute:
            return max(1, int(repeats[0] + WINDOW_SECONDS - now) + 1)
        repeats.append(now)
        return 0

    def _forget(self, before: float) -> None:
        # In the order in which they came, so the oldest come first.
        while self._pressed and (len(self._pressed) >= MAX_KNOWN or self._oldest_press() <= before):
            del self._pressed[next(iter(self._pressed))]
        for user_id, repeats in list(self._repeats.items()):
            while repeats and repeats[0] <= before:
                repeats.popleft()
            if not repeats:
                del self._repeats[user_id]

    def _oldest_press(self) -> float:
        return next(iter(self._pressed.values()))
