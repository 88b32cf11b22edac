"""The stops that one worker holds: first one wins, each for a minute, only so many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID, uuid4

from inference.stop import MAX_SIGNALS, SIGNAL_SECONDS, StopSignal, StopSignalHolder
from testing.clock import Clock


def signal_for(inference_id: UUID, position: int | None = 0) -> StopSignal:
    return StopSignal(inference_id, "room.x", position, user_id=1, source="page")


def test_the_first_signal_of_an_inference_is_the_one_that_counts() -> None:
    holder, inference_id = StopSignalHolder(), uuid4()
    first, second = signal_for(inference_id, 10), signal_for(inference_id, 3)
    assert holder.put(first) is first
    assert holder.put(second) is first
    assert holder.get(inference_id) is first


def test_a_signal_is_of_one_inference_only() -> None:
    holder = StopSignalHolder()
    holder.put(signal_for(uuid4()))
    assert holder.get(uuid4()) is None


def test_a_signal_expires_to_the_second() -> None:
    clock = Clock()
    holder, inference_id = StopSignalHolder(clock=clock), uuid4()
    holder.put(signal_for(inference_id))
    clock.now += SIGNAL_SECONDS - 0.001
    assert holder.get(inference_id) is not None
    clock.now += 0.001
    assert holder.get(inference_id) is None
    assert len(holder) == 0


def test_a_second_signal_does_not_prolong_the_first() -> None:
    clock = Clock()
    holder, inference_id = StopSignalHolder(clock=clock), uuid4()
    holder.put(signal_for(inference_id))
    clock.now += SIGNAL_SECONDS / 2
    holder.put(signal_for(inference_id))
    clock.now += SIGNAL_SECONDS / 2
    assert holder.get(inference_id) is None


def test_after_an_expired_signal_the_next_one_counts() -> None:
    clock = Clock()
    holder, inference_id = StopSignalHolder(clock=clock), uuid4()
    holder.put(signal_for(inference_id, 1))
    clock.now += SIGNAL_SECONDS
    late = signal_for(inference_id, 2)
    assert holder.put(late) is late


def test_a_discarded_signal_is_gone_and_may_be_discarded_again() -> None:
    holder, inference_id = StopSignalHolder(), uuid4()
    holder.put(signal_for(inference_id))
    holder.discard(inference_id)
    holder.discard(inference_id)
    assert holder.get(inference_id) is None


def test_the_oldest_signals_go_when_there_are_too_many() -> None:
    holder, ids = StopSignalHolder(max_signals=3), [uuid4() for _ in range(5)]
    for inference_id in ids:
        holder.put(signal_for(inference_id))
    assert [holder.get(inference_id) is not None for inference_id in ids] == [False, False, True, True, True]
    assert len(holder) == 3


def test_stops_for_other_workers_can_not_fill_the_memory() -> None:
    holder = StopSignalHolder()
    for number in range(MAX_SIGNALS + 500):
        holder.put(signal_for(UUID(int=number)))
    assert len(holder) == MAX_SIGNALS


class CountedId(UUID):
    """An id that counts how often one was compared with another."""

    comparisons = 0
    __hash__ = UUID.__hash__

    def __eq__(self, other: object) -> bool:
        CountedId.comparisons += 1
        return super().__eq__(other)


def test_looking_up_does_not_search_through_the_signals() -> None:
    holder = StopSignalHolder()
    for number in range(1000):
        holder.put(signal_for(CountedId(int=number)))
    CountedId.comparisons = 0
    assert holder.get(CountedId(int=500)) is not None
    assert holder.get(CountedId(int=5000)) is None
    assert CountedId.comparisons < 10


def test_threads_that_put_at_once_agree_on_the_first() -> None:
    holder, inference_id, count = StopSignalHolder(), uuid4(), 8
    together = Barrier(count)

    def put(position: int) -> StopSignal:
        together.wait()
        return holder.put(signal_for(inference_id, position))

    with ThreadPoolExecutor(count) as threads:
        answers = set(threads.map(put, range(count)))
    assert len(answers) == 1


def test_threads_that_put_different_signals_lose_none() -> None:
    holder, count = StopSignalHolder(), 8

    def put_many(thread: int) -> None:
        for number in range(500):
            holder.put(signal_for(UUID(int=thread * 1000 + number)))
            holder.get(UUID(int=number))
            len(holder)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(put_many, range(count)))
    assert len(holder) == count * 500
