"""A deadline that moves on with every chunk. Used by `openai_api` and `openai_stream`.

`asyncio.timeout` around each wait would be a tenth of all that a chunk costs. Here a chunk moves the deadline by an
assignment, and one timer looks, when it is due, whether the deadline is still ahead.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class MovingDeadline:
    """`at` is a time of the running loop. For the waits of one task, each in a `with` of its own.

    A wait that is still going on at the deadline, or begins after it, raises TimeoutError. To be closed at the end.
    """

    def __init__(self, at: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._at = at
        self._timer = self._loop.call_at(at, self._look)
        self._has_passed = False
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0

    def move(self, seconds: float) -> None:
        """Let it be so many seconds from now."""
        self._at = self._loop.time() + seconds
        if self._at < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._at, self._look)

    def end(self) -> None:
        """Let it pass now, whatever is waited for."""
        if self._has_passed:
            return
        self._has_passed = True
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        self._timer.cancel()

    def __enter__(self) -> None:
        if self._has_passed:
            raise TimeoutError
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task else 0

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if not self._has_passed or task is None:
            return
        # As `asyncio.timeout` does: whoever else has cancelled this task meanwhile comes first.
        is_ours_alone = task.uncancel() <= self._cancelling
        if is_ours_alone and error_type is asyncio.CancelledError:
            raise TimeoutError from error

    def _look(self) -> None:
        if self._at > self._loop.time():
            self._timer = self._loop.call_at(self._at, self._look)
        else:
            self.end()
