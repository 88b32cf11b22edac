"""One reply on one socket: which deltas come, where they begin, and what the end says."""

from __future__ import annotations

from uuid import uuid4

import pytest

from chat.frames import Frame
from chat.view import DELTA_CHARACTERS, View
from inference.engine import Part
from inference.journal import Ending, Status
from inference.reply import Reply

C, R = Part.CONTENT, Part.REASONING


def ending_of(reply: Reply, position: int, status: Status = Status.COMPLETED, error_code: str | None = None) -> Ending:
    return Ending(reply.inference_id, uuid4(), "room.x", status, position, error_code=error_code)


async def frames_of(view: View) -> list[Frame]:
    frames = []
    while frame := await view.next_frame():
        frames.append(frame)
    return frames


def deltas(frames: list[Frame]) -> list[tuple[str, int, int, str]]:
    return [(f["part"], f["from"], f["position"], f["text"]) for f in frames if f["type"] == "delta"]


async def test_the_whole_text_comes_part_by_part_and_then_nothing() -> None:
    view = View(Reply(uuid4(), runs=[(R, "hm"), (C, "Hel"), (C, "lo")]), 0)
    assert deltas(await frames_of(view)) == [("reasoning", 0, 2, "hm"), ("content", 2, 7, "Hello")]
    assert await view.next_frame() is None


async def test_what_came_meanwhile_comes_as_one_delta() -> None:
    reply = Reply(uuid4(), runs=[(C, "a")])
    view = View(reply, 0)
    await frames_of(view)
    for character in "bcd":
        reply.append(C, character)
    assert deltas(await frames_of(view)) == [("content", 1, 4, "bcd")]


async def test_a_view_from_the_middle_begins_there() -> None:
    view = View(Reply(uuid4(), runs=[(R, "hm"), (C, "Hello")]), 4)
    assert deltas(await frames_of(view)) == [("content", 4, 7, "llo")]


async def test_a_huge_text_comes_in_pieces() -> None:
    view = View(Reply(uuid4(), runs=[(C, "x" * (2 * DELTA_CHARACTERS + 1))]), 0)
    lengths = [position - start for _, start, position, _ in deltas(await frames_of(view))]
    assert lengths == [DELTA_CHARACTERS, DELTA_CHARACTERS, 1]


async def test_the_end_comes_after_all_deltas_and_once() -> None:
    reply = Reply(uuid4(), runs=[(C, "Hello")])
    view = View(reply, 0)
    reply.end(ending := ending_of(reply, 5, Status.FAILED, "timeout"))
    frames = await frames_of(view)
    assert [frame["type"] for frame in frames] == ["delta", "end"]
    assert frames[1] == {
        "type": "end",
        "inference_id": str(reply.inference_id),
        "message_id": str(ending.message_id),
        "status": "failed",
        "finish_reason": None,
        "position": 5,
        "error": {"code": "timeout", "detail": "The model took too long."},
    }
    assert await view.next_frame() is None


async def test_a_cut_sends_nothing_beyond_it_and_an_end_that_is_lower_than_the_screen() -> None:
    reply = Reply(uuid4(), runs=[(C, "Hello")])
    view = View(reply, 0)
    await frames_of(view)
    reply.append(C, " world")
    reply.end(ending_of(reply, 3, Status.STOPPED))
    frames = await frames_of(view)
    assert [(frame["type"], frame["position"]) for frame in frames] == [("end", 3)]


async def test_a_later_end_replaces_the_first() -> None:
    reply = Reply(uuid4(), runs=[(C, "Hello")])
    view = View(reply, 0)
    reply.end(ending_of(reply, 5))
    await frames_of(view)
    reply.end(ending_of(reply, 2, Status.STOPPED))
    (end,) = await frames_of(view)
    assert (end["status"], end["position"]) == ("stopped", 2)


async def test_what_an_end_had_cut_away_comes_again_before_a_later_end_that_has_it() -> None:
    """The reply of an owner that was only cut off: interrupted at its checkpoint, and then saved with more."""
    reply = Reply(uuid4(), runs=[(C, "Hello world")])
    view = View(reply, 0)
    await frames_of(view)
    reply.end(ending_of(reply, 3, Status.INTERRUPTED))
    await frames_of(view)
    reply.end(ending_of(reply, 8))
    frames = await frames_of(view)
    assert deltas(frames) == [("content", 3, 8, "lo wo")]
    assert (frames[-1]["type"], frames[-1]["position"]) == ("end", 8)


@pytest.mark.parametrize("position", [5, 6, 10**30])
async def test_a_position_at_or_beyond_the_end_gets_only_the_end(position: int) -> None:
    reply = Reply(uuid4(), runs=[(C, "Hello")])
    reply.end(ending_of(reply, 5))
    (end,) = await frames_of(View(reply, position))
    assert (end["type"], end["position"]) == ("end", 5)


async def test_an_empty_reply_has_only_an_end() -> None:
    reply = Reply(uuid4())
    reply.end(ending_of(reply, 0, Status.STOPPED))
    assert [frame["type"] for frame in await frames_of(View(reply, 0))] == ["end"]
