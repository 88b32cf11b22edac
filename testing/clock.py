"""A clock for the tests of what counts time and takes its clock as an argument."""

from __future__ import annotations


class Clock:
    """Stands still until a test moves `now` (seconds)."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
