"""A deadline that moves: which waits it ends, and that it ends nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from inference.engines.deadline import MovingDeadline

FOREVER = 60.0
SOON = 0.05


@contextmanager
def deadline_in(seconds: float) -> Iterator[MovingDeadline]:
    deadline = MovingDeadline(asyncio.get_running_loop().time() + seconds)
    yield deadline
    deadline.close()


async def wait(deadline: MovingDeadline) -> None:
    with deadline:
        await asyncio.Event().wait()


async def test_a_wait_ends_at_the_deadline_and_its_task_goes_on() -> None:
    with deadline_in(SOON) as deadline:
        with pytest.raises(TimeoutError):
            await wait(deadline)
        await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_deadline_that_was_moved_on_does_not_end_a_wait() -> None:
    with deadline_in(SOON) as deadline:
        deadline.move(FOREVER)
        with deadline:
            await asyncio.sleep(4 * SOON)


async def test_a_deadline_that_was_moved_nearer_ends_a_wait() -> None:
    with deadline_in(FOREVER) as deadline:
        deadline.move(SOON)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait(deadline), 10)


async def test_a_deadline_that_was_moved_on_and_is_reached_ends_a_wait() -> None:
    with deadline_in(SOON) as deadline:
        deadline.move(3 * SOON)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait(deadline), 10)


async def test_no_wait_begins_after_the_deadline() -> None:
    with deadline_in(FOREVER) as deadline:
        deadline.end()
        deadline.end()
        with pytest.raises(TimeoutError):
            await wait(deadline)


async def test_a_cancel_of_somebody_else_is_not_taken_for_the_deadline() -> None:
    """A stop and the deadline in the same turn of the loop: the task is cancelled."""
    with deadline_in(FOREVER) as deadline:
        waiting = asyncio.create_task(wait(deadline))
        await asyncio.sleep(0)
        deadline.end()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_another_error_in_a_wait_stays_what_it_is() -> None:
    with deadline_in(FOREVER) as deadline, pytest.raises(ValueError, match="mine"), deadline:
        raise ValueError("mine")


async def test_a_closed_deadline_ends_nothing_any_more() -> None:
    with deadline_in(SOON) as deadline:
        pass
    with deadline:
        await asyncio.sleep(3 * SOON)
