"""The buffer of one reply: what readers see of it while it grows, freezes, ends and is cut back."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine import Part
from inference.journal import Ending, Run, Status
from inference.reply import Delta, Reply, cut_runs, merge_runs, text_of

C, R = Part.CONTENT, Part.REASONING
RUNS = st.lists(st.tuples(st.sampled_from(Part), st.text("ab강🌊", max_size=5)), max_size=12)


def reply_of(*runs: Run) -> Reply:
    return Reply(uuid4(), runs=runs)


def ending_at(position: int, status: Status = Status.STOPPED) -> Ending:
    return Ending(inference_id=uuid4(), message_id=uuid4(), topic="room.x", status=status, position=position)


def flat(runs: list[Run]) -> list[tuple[Part, str]]:
    """One entry for each character."""
    return [(part, character) for part, text in runs for character in text]


def read_all(reply: Reply, cursor: int = 0, max_length: int = 1000) -> list[Delta]:
    deltas = []
    while delta := reply.read(cursor, max_length):
        assert delta.start == cursor
        cursor = delta.position
        deltas.append(delta)
    return deltas


def test_a_reader_takes_everything_of_one_part_after_its_cursor_as_one_delta() -> None:
    reply = reply_of((C, "Hel"), (C, "lo "), (C, "world"))
    assert reply.read(2, 100) == Delta(C, 2, "llo world")
    assert reply.read(11, 100) is None


def test_a_delta_ends_where_the_part_changes() -> None:
    reply = reply_of((R, "hm"), (R, "m"), (C, "yes"), (R, "or"))
    assert [(delta.part, delta.text) for delta in read_all(reply)] == [(R, "hmm"), (C, "yes"), (R, "or")]


def test_a_delta_is_never_longer_than_asked() -> None:
    assert [delta.text for delta in read_all(reply_of((C, "abcdefg")), max_length=3)] == ["abc", "def", "g"]


def test_a_cursor_beyond_the_end_reads_nothing_until_the_text_has_passed_it() -> None:
    reply = reply_of((C, "ab"))
    assert reply.read(5, 10) is None
    reply.append(C, "cdefg")
    assert reply.read(5, 10) == Delta(C, 5, "fg")


def test_positions_count_code_points() -> None:
    assert reply_of((C, "강🌊")).position == 2


@given(RUNS, st.integers(1, 6), st.data())
def test_deltas_from_any_cursor_join_to_the_text_after_it(
    runs: list[Run], max_length: int, data: st.DataObject
) -> None:
    reply = Reply(uuid4(), runs=runs)
    cursor = data.draw(st.integers(0, reply.position))
    deltas = read_all(reply, cursor, max_length)
    assert flat([(delta.part, delta.text) for delta in deltas]) == flat(runs)[cursor:]
    assert all(0 < len(delta.text) <= max_length for delta in deltas)


@given(RUNS, st.data())
def test_runs_between_two_positions_are_the_text_between_them(runs: list[Run], data: st.DataObject) -> None:
    reply = Reply(uuid4(), runs=runs)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, reply.position + 3)] * 2)))
    assert flat(reply.runs(start, end)) == flat(runs)[start:end]


@given(RUNS, st.integers(0, 70))
def test_cut_runs_keep_exactly_the_first_characters(runs: list[Run], position: int) -> None:
    assert flat(cut_runs(runs, position)) == flat(runs)[:position]


@given(RUNS)
def test_merged_runs_say_the_same_and_alternate(runs: list[Run]) -> None:
    merged = merge_runs(runs)
    assert flat(merged) == flat(runs)
    assert all(text for _, text in merged)
    assert all(first[0] is not second[0] for first, second in zip(merged, merged[1:], strict=False))
    assert {part: text_of(merged, part) for part in Part} == {part: text_of(runs, part) for part in Part}


def test_nothing_beyond_a_freeze_is_shown_but_it_is_kept() -> None:
    reply = reply_of((C, "Hello world"))
    reply.freeze(5)
    reply.append(C, "!")
    assert (reply.position, reply.generated_position) == (5, 12)
    assert reply.read(0, 100) == Delta(C, 0, "Hello")
    assert reply.runs() == [(C, "Hello")]
    assert reply.runs(0, 12) == [(C, "Hello world!")]


def test_a_freeze_that_comes_late_shows_no_more() -> None:
    """The answer to a second stop may tell of an end that the first stop has cut back meanwhile."""
    reply = reply_of((C, "Hello world"))
    reply.freeze(5)
    reply.freeze(11)
    assert reply.runs() == [(C, "Hello")]
    reply.end(ending_at(4))
    reply.freeze(11)
    assert reply.runs() == [(C, "Hell")]


def test_only_an_ending_moves_a_freeze_back_up() -> None:
    """The first stop is the one in the row, and the owner may have heard another one before it."""
    reply = reply_of((C, "Hello world"))
    reply.freeze(2)
    reply.end(ending_at(5))
    assert reply.runs() == [(C, "Hello")]


def test_a_later_ending_replaces_the_first_and_cuts_back() -> None:
    reply = reply_of((C, "Hello world"))
    reply.end(ending_at(11, Status.COMPLETED))
    reply.end(last := ending_at(5))
    assert (reply.ending, reply.position) == (last, 5)


def test_every_change_wakes_the_readers_and_a_discarded_one_no_more() -> None:
    reply = reply_of()
    woken: list[int] = []
    reply.add_reader(wake := lambda: woken.append(reply.generated_position))
    assert reply.has_readers
    reply.append(C, "a")
    reply.append(C, "")
    reply.freeze(1)
    reply.end(ending_at(1))
    assert woken == [1, 1, 1]
    reply.discard_reader(wake)
    reply.append(C, "b")
    assert (woken, reply.has_readers) == ([1, 1, 1], False)


@pytest.mark.parametrize(
    ("start", "text", "fits", "afterwards"),
    [
        (3, "def", True, "abcdef"),
        (0, "abcdef", True, "abcdef"),
        (1, "bc", True, "abc"),
        (2, "cd", True, "abcd"),
        (4, "ef", False, "abc"),
        (0, "", True, "abc"),
        (4, "", False, "abc"),
    ],
)
def test_extending_skips_what_is_there_and_refuses_a_gap(start: int, text: str, fits: bool, afterwards: str) -> None:
    reply = reply_of((C, "abc"))
    assert reply.extend(start, [(C, text)]) is fits
    assert text_of(reply.runs(), C) == afterwards


@given(RUNS, st.data())
def test_overlapping_snapshots_of_one_reply_build_that_reply(runs: list[Run], data: st.DataObject) -> None:
    owner, copy = Reply(uuid4(), runs=runs), Reply(uuid4())
    for _ in range(data.draw(st.integers(0, 5))):
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, owner.position)] * 2)))
        fits = copy.extend(start, owner.runs(start, end))
        assert fits is (start <= copy.generated_position)
        assert flat(copy.runs()) == flat(runs)[: copy.position]
    assert copy.extend(0, owner.runs())
    assert flat(copy.runs()) == flat(runs)


def test_an_ending_that_was_overtaken_does_not_bring_back_what_a_stop_has_cut() -> None:
    reply = reply_of((C, "Hello world"))
    reply.end(stopped := ending_at(5))
    reply.end(ending_at(11, Status.COMPLETED))
    assert (reply.ending, reply.position) == (stopped, 5)
