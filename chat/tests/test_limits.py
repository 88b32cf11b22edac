"""So many prompts per person in any minute."""

from __future__ import annotations

from chat.limits import RateLimit
from testing.clock import Clock

ALICE, BOB = 1, 2


def test_a_person_may_so_often_in_a_minute_and_then_again_when_the_first_is_a_minute_old() -> None:
    clock = Clock()
    limit = RateLimit(3, clock=clock)
    for _ in range(3):
        assert limit.retry_after(ALICE) == 0
        limit.note(ALICE)
        clock.now += 10
    assert limit.retry_after(ALICE) == 31
    clock.now += 29.9
    assert limit.retry_after(ALICE) >= 1
    clock.now += 0.2
    assert limit.retry_after(ALICE) == 0
    limit.note(ALICE)
    assert limit.retry_after(ALICE) > 0


def test_waiting_as_long_as_it_says_is_long_enough() -> None:
    clock = Clock()
    limit = RateLimit(1, clock=clock)
    limit.note(ALICE)
    clock.now += 0.5
    clock.now += limit.retry_after(ALICE)
    assert limit.retry_after(ALICE) == 0


def test_one_person_does_not_use_up_anothers() -> None:
    limit = RateLimit(1)
    limit.note(ALICE)
    assert limit.retry_after(ALICE) > 0
    assert limit.retry_after(BOB) == 0


def test_asking_costs_nothing() -> None:
    limit = RateLimit(1)
    assert [limit.retry_after(ALICE) for _ in range(5)] == [0] * 5


def test_people_who_ask_nothing_more_are_forgotten() -> None:
    clock = Clock()
    limit = RateLimit(2, clock=clock)
    for user_id in range(100):
        limit.note(user_id)
    clock.now += 61
    limit.note(ALICE)
    assert list(limit._times) == [ALICE]
