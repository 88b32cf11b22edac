"""Flow control: when a ping is due, when deltas must wait, and when a client counts as gone."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chat.flow import BLOCK_BYTES, DEAD_SECONDS, MAX_FRAMES_WHILE_BLOCKED, PING_BYTES, PING_SECONDS, Flow
from testing.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def flow(clock: Clock) -> Flow:
    return Flow(clock=clock)


def test_a_ping_is_due_after_64_kilobytes(flow: Flow) -> None:
    flow.sent(PING_BYTES - 1)
    assert not flow.is_ping_due
    flow.sent(1)
    assert flow.is_ping_due
    flow.ping()
    assert not flow.is_ping_due


def test_a_ping_is_due_after_20_seconds_of_silence(flow: Flow, clock: Clock) -> None:
    clock.now += PING_SECONDS - 0.1
    assert not flow.is_ping_due
    clock.now += 0.1
    assert flow.is_ping_due
    flow.ping()
    assert not flow.is_ping_due


def test_deltas_wait_at_256_kilobytes_unanswered_and_go_on_after_a_pong(flow: Flow) -> None:
    numbers = []
    for _ in range(BLOCK_BYTES // PING_BYTES):
        assert not flow.is_blocked
        flow.sent(PING_BYTES)
        numbers.append(flow.ping())
    assert flow.is_blocked
    flow.pong(numbers[0])
    assert not flow.is_blocked
    flow.sent(PING_BYTES)
    assert flow.is_blocked


def test_a_pong_answers_all_pings_before_it(flow: Flow, clock: Clock) -> None:
    for _ in range(4):
        flow.sent(PING_BYTES)
        last = flow.ping()
    flow.pong(last)
    assert not flow.is_blocked
    clock.now += DEAD_SECONDS + 1
    assert not flow.is_dead


def test_a_client_is_gone_when_a_ping_is_unanswered_for_45_seconds(flow: Flow, clock: Clock) -> None:
    first = flow.ping()
    clock.now += 20
    flow.ping()
    clock.now += DEAD_SECONDS - 20
    assert not flow.is_dead
    clock.now += 0.1
    assert flow.is_dead
    flow.pong(first)
    assert not flow.is_dead
    clock.now += 20
    assert flow.is_dead


def test_a_client_that_was_never_pinged_is_not_gone(flow: Flow, clock: Clock) -> None:
    clock.now += 1000
    assert not flow.is_dead


@pytest.mark.parametrize("beside", [-(10**30), -1, 1, 10**30])
def test_a_pong_for_a_ping_that_was_never_sent_means_nothing(flow: Flow, clock: Clock, beside: int) -> None:
    flow.sent(BLOCK_BYTES)
    flow.pong(flow.ping() + beside)
    assert flow.is_blocked
    clock.now += DEAD_SECONDS + 1
    assert flow.is_dead


def test_who_reads_no_pings_does_not_know_their_numbers() -> None:
    assert len({Flow().ping() for _ in range(20)}) > 10
    flow = Flow()
    numbers = [flow.ping() for _ in range(100)]
    assert len({later - earlier for earlier, later in pairwise(numbers)}) > 50
    assert numbers == sorted(numbers) and numbers[-1] < 2**53  # which JavaScript counts exactly


def test_a_pong_said_twice_changes_nothing(flow: Flow) -> None:
    flow.sent(BLOCK_BYTES)
    first = flow.ping()
    flow.pong(first)
    flow.sent(BLOCK_BYTES)
    flow.ping()
    flow.pong(first)
    assert flow.is_blocked


def send(flow: Flow, count: int) -> None:
    for _ in range(count):
        flow.heard()


def test_a_client_that_sends_and_sends_and_reads_nothing_is_gone(flow: Flow) -> None:
    flow.sent(BLOCK_BYTES)
    flow.ping()
    send(flow, MAX_FRAMES_WHILE_BLOCKED)
    assert not flow.is_dead
    flow.heard()
    assert flow.is_dead


def test_frames_of_a_client_that_reads_are_not_counted(flow: Flow) -> None:
    send(flow, MAX_FRAMES_WHILE_BLOCKED)
    flow.sent(BLOCK_BYTES)
    send(flow, MAX_FRAMES_WHILE_BLOCKED)
    assert not flow.is_dead
    flow.pong(flow.ping())
    flow.sent(BLOCK_BYTES)
    send(flow, MAX_FRAMES_WHILE_BLOCKED)
    assert not flow.is_dead


def test_a_pong_of_a_client_that_is_still_far_behind_does_not_count(flow: Flow) -> None:
    flow.sent(PING_BYTES)
    first = flow.ping()
    flow.sent(2 * BLOCK_BYTES)
    send(flow, MAX_FRAMES_WHILE_BLOCKED)
    flow.pong(first)
    flow.heard()
    assert flow.is_dead
