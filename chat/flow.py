"""Flow control of one socket (DESIGN section 6, `ping`): daphne buffers without bound."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable

PING_BYTES = 64 * 1024
PING_SECONDS = 20.0
BLOCK_BYTES = 256 * 1024
"""So much unanswered, and the socket's deltas wait and merge."""
DEAD_SECONDS = 45.0
"""So long unanswered, and the socket is closed."""
MAX_FRAMES_WHILE_BLOCKED = 20_000
"""So many frames of a client whose deltas wait, and the socket is closed: answers that nobody reads fill the memory."""
MAX_PING_STEP = 2**20
"""Pings are numbered in random steps: who does not read them can't answer them."""


class Flow:
    """Counts what was sent and what the client has answered for. The caller sends the pings it asks for."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sent = 0
        self._answered = 0
        self._pinged = 0
        self._pinged_at = clock()
        self._last = 0
        self._heard = 0
        self._pings: deque[tuple[int, int, float]] = deque()

    @property
    def is_blocked(self) -> bool:
        return self._sent - self._answered >= BLOCK_BYTES

    @property
    def is_dead(self) -> bool:
        is_silent = bool(self._pings) and self._clock() - self._pings[0][2] > DEAD_SECONDS
        return is_silent or self._heard > MAX_FRAMES_WHILE_BLOCKED

    @property
    def is_ping_due(self) -> bool:
        return self._sent - self._pinged >= PING_BYTES or self._clock() - self._pinged_at >= PING_SECONDS

    def sent(self, size: int) -> None:
        """So many bytes have gone out."""
        self._sent += size

    def heard(self) -> None:
        """A frame has come from the client."""
        if self.is_blocked:
            self._heard += 1

    def ping(self) -> int:
        """Begin a ping and return its `n`."""
        self._last += 1 + secrets.randbelow(MAX_PING_STEP)
        self._pinged, self._pinged_at = self._sent, self._clock()
        self._pings.append((self._last, self._sent, self._pinged_at))
        return self._last

    def pong(self, n: int) -> None:
        """The client has read everything up to that ping; numbers that nobody waits for mean nothing."""
        if all(n != number for number, _, _ in self._pings):
            return
        while self._pings and self._pings[0][0] <= n:
            self._answered = self._pings.popleft()[1]
        if not self.is_blocked:
            self._heard = 0
