"""What one socket is sent: at the pace the client answers, stops ahead of everything, nothing twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from chat import screen as screen_module
from chat.flow import BLOCK_BYTES, DEAD_SECONDS, MAX_FRAMES_WHILE_BLOCKED, PING_SECONDS, Flow
from chat.frames import Frame
from chat.screen import ClientIsGone, Screen
from inference.engine import Part
from inference.journal import Ending, Status
from inference.reply import Reply
from testing.clock import Clock

C = Part.CONTENT


class Wire:
    """What a client has been sent."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._came = asyncio.Event()

    async def send_text(self, text: str) -> None:
        self.frames.append(json.loads(text))
        self._came.set()

    def of_type(self, kind: str) -> list[Frame]:
        return [frame for frame in self.frames if frame["type"] == kind]

    @property
    def text(self) -> str:
        return "".join(frame["text"] for frame in self.of_type("delta"))

    async def wait_for(self, kind: str, *, count: int = 1) -> Frame:
        async with asyncio.timeout(5):
            while len(self.of_type(kind)) < count:
                self._came.clear()
                await self._came.wait()
        return self.of_type(kind)[count - 1]


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def screen(wire: Wire) -> Screen:
    return Screen(wire.send_text, is_html=False)


@asynccontextmanager
async def running(screen: Screen) -> AsyncIterator[None]:
    task = asyncio.create_task(screen.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def settled(screen: Screen, wire: Wire) -> None:
    """Everything that was to be sent before this has been sent, unless it is held back."""
    count = len(wire.of_type("pong")) + 1
    screen.tell({"type": "pong"})
    await wire.wait_for("pong", count=count)
    for _ in range(5):
        await asyncio.sleep(0)


def reply_of(text: str) -> Reply:
    return Reply(uuid4(), runs=[(C, text)])


def ending_of(reply: Reply, position: int, status: Status = Status.COMPLETED) -> Ending:
    return Ending(reply.inference_id, uuid4(), "room.x", status, position)


async def test_a_reply_is_shown_as_it_grows_and_ends(screen: Screen, wire: Wire) -> None:
    reply = reply_of("Hel")
    async with running(screen):
        screen.show(reply)
        await wire.wait_for("delta")
        reply.append(C, "lo")
        await wire.wait_for("delta", count=2)
        reply.end(ending_of(reply, 5))
        await wire.wait_for("end")
    assert wire.text == "Hello"


async def test_a_reply_that_is_shown_already_is_not_sent_twice(screen: Screen, wire: Wire) -> None:
    reply = reply_of("Hello")
    async with running(screen):
        for position in (0, 0, 3):
            screen.show(reply, position)
        reply.end(ending_of(reply, 5))
        await wire.wait_for("end")
        screen.show(reply, 0)
        await settled(screen, wire)
    assert wire.text == "Hello"
    assert len(wire.of_type("end")) == 1


async def test_a_frame_told_before_a_reply_is_shown_comes_before_its_deltas(screen: Screen, wire: Wire) -> None:
    async with running(screen):
        screen.tell({"type": "start"})
        screen.show(reply_of("Hello"))
        await wire.wait_for("delta")
    assert [frame["type"] for frame in wire.frames] == ["start", "delta"]


async def test_deltas_wait_and_merge_for_a_client_that_does_not_answer_pings(screen: Screen, wire: Wire) -> None:
    reply = reply_of("")
    async with running(screen):
        screen.show(reply)
        while not screen.flow.is_blocked:
            reply.append(C, "x" * 5000)
            await settled(screen, wire)
        sent = len(wire.text)
        assert BLOCK_BYTES * 0.8 < sent <= BLOCK_BYTES + 20_000
        for _ in range(10):
            reply.append(C, "yz")
            await settled(screen, wire)
        assert len(wire.text) == sent
        screen.pong(wire.of_type("ping")[-1]["n"])
        await settled(screen, wire)
    assert wire.of_type("delta")[-1]["text"] == "yz" * 10
    assert wire.text == "".join(text for _, text in reply.runs())


async def test_bytes_are_counted_and_not_characters(screen: Screen, wire: Wire) -> None:
    async with running(screen):
        screen.show(reply_of("강" * BLOCK_BYTES))
        await settled(screen, wire)
    assert len(wire.text) < BLOCK_BYTES / 2


async def test_a_stop_result_does_not_wait_behind_deltas(screen: Screen, wire: Wire) -> None:
    reply = reply_of("x" * 2 * BLOCK_BYTES)
    async with running(screen):
        screen.show(reply)
        await settled(screen, wire)
        assert screen.flow.is_blocked
        screen.freeze(reply.inference_id, 3)
        await screen.send({"type": "stop_result"})
        assert wire.frames[-1]["type"] == "stop_result"


async def test_no_delta_goes_beyond_a_freeze(screen: Screen, wire: Wire) -> None:
    reply = reply_of("Hello")
    async with running(screen):
        screen.show(reply)
        screen.freeze(reply.inference_id, 3)
        reply.append(C, " world")
        await settled(screen, wire)
    assert wire.text == "Hel"


async def test_a_freeze_that_comes_behind_the_end_sends_nothing_more(screen: Screen, wire: Wire) -> None:
    """As that of a second stop, which was answered that the reply had finished before the first one cut it."""
    reply = reply_of("Hello world")
    async with running(screen):
        screen.show(reply)
        await settled(screen, wire)
        reply.end(ending_of(reply, 5))
        await wire.wait_for("end")
        screen.freeze(reply.inference_id, 11)
        await settled(screen, wire)
    assert wire.frames[-1]["type"] != "delta"
    assert len(wire.of_type("delta")) == 1


async def test_freezing_a_reply_that_is_not_shown_does_nothing(screen: Screen) -> None:
    screen.freeze(uuid4(), 0)


async def test_a_client_that_is_gone_ends_the_loop(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "PING_SECONDS", 0.04)
    clock = Clock()
    screen = Screen(wire.send_text, is_html=False)
    screen.flow = Flow(clock=clock)
    screen.flow.ping()
    clock.now += DEAD_SECONDS + 1
    async with asyncio.timeout(5):
        with pytest.raises(ClientIsGone):
            await screen.run()


async def test_a_client_that_only_sends_ends_the_loop_at_once(screen: Screen, wire: Wire) -> None:
    screen.flow.sent(BLOCK_BYTES)
    running = asyncio.create_task(screen.run())
    await wire.wait_for("ping")
    await settled(screen, wire)
    for _ in range(MAX_FRAMES_WHILE_BLOCKED + 1):
        screen.hear()
    async with asyncio.timeout(PING_SECONDS / 8):
        with pytest.raises(ClientIsGone):
            await running


async def test_an_idle_client_is_pinged_after_twenty_seconds(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "PING_SECONDS", 0.04)
    clock = Clock()
    screen = Screen(wire.send_text, is_html=False)
    screen.flow = Flow(clock=clock)
    clock.now += 20
    async with running(screen):
        ping = await wire.wait_for("ping")
    assert ping["n"] > 0


async def test_an_end_told_by_the_room_cuts_a_finished_reply_back(screen: Screen, wire: Wire) -> None:
    reply = reply_of("Hello")
    reply.end(first := ending_of(reply, 5))
    async with running(screen):
        screen.show(reply)
        await wire.wait_for("end")
        assert screen.end(first)
        assert screen.end(ending_of(reply, 2, Status.STOPPED))
        end = await wire.wait_for("end", count=2)
    assert (end["status"], end["position"]) == ("stopped", 2)


async def test_an_end_of_a_reply_that_is_not_shown_is_not_the_screens(screen: Screen) -> None:
    assert not screen.end(ending_of(reply_of("Hello"), 5))


async def test_an_end_of_a_live_reply_waits_for_whoever_feeds_it(screen: Screen, wire: Wire) -> None:
    """The text before the end may still be on its way to this process."""
    reply = reply_of("Hel")
    async with running(screen):
        screen.show(reply)
        assert screen.end(ending_of(reply, 5))
        await settled(screen, wire)
        assert wire.of_type("end") == []
        reply.append(C, "lo")
        reply.end(ending_of(reply, 5))
        await wire.wait_for("end")
    assert wire.text == "Hello"


async def test_a_reply_that_has_more_text_than_when_it_ended_here_is_left_to_be_shown_anew(
    screen: Screen, wire: Wire
) -> None:
    """It was ended for an owner that was only cut off, and that has saved more: no `end` without its text."""
    reply = reply_of("Hello")
    reply.end(interrupted := ending_of(reply, 3, Status.INTERRUPTED))
    async with running(screen):
        screen.show(reply)
        await wire.wait_for("end")
        longer = ending_of(reply, 11)
        assert screen.end(longer)
        await settled(screen, wire)
        assert len(wire.of_type("end")) == 1
        assert screen.behind(interrupted) is None
        position = screen.behind(longer)
        assert position == 3
        whole = Reply(reply.inference_id, runs=[(C, "Hello world")])
        whole.end(longer)
        screen.show(whole, position)
        end = await wire.wait_for("end", count=2)
    assert end["position"] == 11
    assert wire.text == "Hel" + "lo world"


async def test_a_reply_that_was_abandoned_here_is_left_to_be_shown_anew(screen: Screen, wire: Wire) -> None:
    """Its owner could not save the end, and another worker has ended it from the last checkpoint."""
    abandoned = reply_of("Hello")
    async with running(screen):
        screen.show(abandoned)
        await wire.wait_for("delta")
        reaped = ending_of(abandoned, 3, Status.INTERRUPTED)
        position = screen.behind(reaped)
        assert position == 5
        saved = Reply(abandoned.inference_id, runs=[(C, "Hel")])
        saved.end(reaped)
        screen.show(saved, position)
        end = await wire.wait_for("end")
    assert end["position"] == 3
    assert wire.text == "Hello"


async def test_a_closed_screen_reads_no_reply_any_more(screen: Screen) -> None:
    replies = [reply_of("a"), reply_of("b")]
    for reply in replies:
        screen.show(reply)
    assert all(reply.has_readers for reply in replies)
    screen.close()
    assert not any(reply.has_readers for reply in replies)


async def test_a_reply_that_has_been_told_to_its_end_is_let_go_when_the_next_one_is_shown(
    screen: Screen, wire: Wire
) -> None:
    first, second = reply_of("Hello"), reply_of("Again")
    first.end(ending_of(first, 5))
    async with running(screen):
        screen.show(first)
        await wire.wait_for("end")
        screen.show(second)
        assert (first.has_readers, second.has_readers) == (False, True)


async def test_the_pages_screen_rests_when_nothing_changes(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """It paces its patches by a timer, which must not go on for ever."""
    monkeypatch.setattr(screen_module, "PATCH_SECONDS", 0.01)
    screen = Screen(wire.send_text, is_html=True)
    reply = reply_of("Hello")
    async with running(screen):
        screen.show(reply)
        await wire.wait_for("delta")
        reply.append(C, " world")
        await wire.wait_for("delta", count=2)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                for _ in range(10):
                    await screen._changed.wait()
                    await asyncio.sleep(0)
