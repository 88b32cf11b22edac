"""The database's clock as a process knows it between two heartbeats."""

from __future__ import annotations

from uuid import uuid4

from inference.clock import DatabaseClock
from inference.stop import StopSignal


class Watch:
    """A monotonic clock that the test turns."""

    def __init__(self) -> None:
        self.seconds = 5000.0

    def __call__(self) -> float:
        return self.seconds


def test_it_is_not_known_before_it_was_set() -> None:
    assert DatabaseClock().now() is None


def test_it_goes_on_from_the_middle_of_the_time_in_which_the_database_answered() -> None:
    watch = Watch()
    clock = DatabaseClock(watch)

    def read() -> float:
        watch.seconds += 0.5
        return 1000.0

    assert clock.set(read) == 1000.0
    assert clock.now() == 1000.25
    watch.seconds += 60
    assert clock.now() == 1060.25


def test_two_machines_whose_own_clocks_differ_agree_on_the_age_of_a_stop() -> None:
    here, there = Watch(), Watch()
    there.seconds = 123456.0
    clocks = DatabaseClock(here), DatabaseClock(there)
    for clock in clocks:
        clock.set(lambda: 1000.0)
    here.seconds += 2
    signal = StopSignal(uuid4(), "room", 3, None, "page", recorded_at=clocks[0].now())
    there.seconds += 2.5
    assert signal.seconds_since_record(clocks[1].now()) == 0.5
    there.seconds -= 1
    assert signal.seconds_since_record(clocks[1].now()) == 0.0
    assert signal.seconds_since_record(None) is None
