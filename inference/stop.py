"""Stop signals as one worker holds them. The bus puts them in, the runner looks them up at every chunk."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from uuid import UUID

SIGNAL_SECONDS = 60.0
MAX_SIGNALS = 10_000


@dataclass(frozen=True, slots=True)
class StopSignal:
    """A person wants this inference to end at `position` (code points; None: where the owner stands)."""

    inference_id: UUID
    topic: str
    """The group that is told of this inference; the owner refuses a stop that names another."""
    position: int | None
    user_id: int | None
    source: str
    recorded_at: float | None = field(default=None, compare=False)
    """When it was written down, as seconds since 1970 by the database's clock; None while it is not, or not known."""

    def seconds_since_record(self, now: float | None) -> float | None:
        """How old the record is at that time of the database's clock; None when either is not known.

        Two workers know that clock to within milliseconds: what would be negative is 0.
        """
        return None if self.recorded_at is None or now is None else max(0.0, now - self.recorded_at)


class StopSignalHolder:
    """The stops this worker has heard of, by inference: O(1), each for a limited time, bounded in number.

    The key is the inference, which is new for each reply: a key per room would stop the next reply too.
    Most signals are for inferences of other workers; they expire unread.
    """

    def __init__(
        self,
        *,
        signal_seconds: float = SIGNAL_SECONDS,
        max_signals: int = MAX_SIGNALS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._signal_seconds = signal_seconds
        self._max_signals = max_signals
        self._clock = clock
        self._lock = Lock()
        self._signals: dict[UUID, tuple[float, StopSignal]] = {}

    def put(self, signal: StopSignal) -> StopSignal:
        """Hold a signal and return the one that counts: the first one heard for its inference."""
        with self._lock:
            self._drop_expired()
            _, first = self._signals.setdefault(signal.inference_id, (self._expiry(), signal))
            while len(self._signals) > self._max_signals:
                del self._signals[next(iter(self._signals))]
            return first

    def get(self, inference_id: UUID) -> StopSignal | None:
        """The signal for an inference, if one was heard and has not expired."""
        with self._lock:
            expires_at, signal = self._signals.get(inference_id, (0.0, None))
            return signal if expires_at > self._clock() else None

    def discard(self, inference_id: UUID) -> None:
        """Forget the signal for an inference that has ended."""
        with self._lock:
            self._signals.pop(inference_id, None)

    def __len__(self) -> int:
        with self._lock:
            self._drop_expired()
            return len(self._signals)

    def _expiry(self) -> float:
        return self._clock() + self._signal_seconds

    def _drop_expired(self) -> None:
        # Signals are in the order in which they came, so in the order in which they expire.
        now = self._clock()
        while self._signals:
            oldest = next(iter(self._signals))
            if self._signals[oldest][0] > now:
                return
            del self._signals[oldest]
