"""What a socket is told just after it has come, and what it leaves behind when it has gone."""

from __future__ import annotations

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from chat import runtime
from chat.consumer import MAX_WAITING_FRAMES, NO_ANSWER, RoomConsumer
from chat.database import rows
from chat.endings import ending_of
from chat.flow import BLOCK_BYTES
from chat.frames import MAX_DETAIL_CHARACTERS
from chat.models import Room
from chat.tests.inside import InsideSite
from chat.tests.people import begin, complete

pytestmark = pytest.mark.django_db(transaction=True)

BUSY_SECONDS = 4.0


async def test_a_socket_that_has_gone_expects_no_follow(inside: InsideSite, alice: User, room: Room) -> None:
    """Otherwise it would still show a reply that ends within a second."""
    async with inside.open(alice, room.pk) as socket:
        await socket.next("hello")
        (consumer,) = runtime.current().news.sockets
    assert isinstance(consumer, RoomConsumer)
    assert consumer._patience is not None
    assert consumer._patience.cancelled()


async def test_an_end_that_was_on_its_way_as_the_socket_came_waits_for_the_missed_tail(
    inside: InsideSite, alice: User, room: Room
) -> None:
    """The rows had it already, so `hello` named nothing live; the client knows the reply from before its link broke."""
    inference = await sync_to_async(lambda: complete(begin(alice, room), "Some text"))()
    async with inside.open(alice, room.pk) as socket:
        assert (await socket.next("hello"))["live"] == []
        await runtime.current().worker.announce(ending_of(inference))
        await socket.send({"type": "follow", "inference_id": str(inference.pk), "position": 5})
        assert (await socket.next("delta", "end"))["text"] == "text"
        assert (await socket.next("delta", "end"))["position"] == 9


async def test_a_new_socket_that_follows_nothing_hears_of_the_end_all_the_same(
    inside: InsideSite, alice: User, room: Room
) -> None:
    inference = await sync_to_async(lambda: complete(begin(alice, room), "Some text"))()
    async with inside.open(alice, room.pk) as socket:
        await socket.next("hello")
        await runtime.current().worker.announce(ending_of(inference))
        assert (await socket.next("end"))["inference_id"] == str(inference.pk)


async def test_a_socket_that_sends_and_sends_and_answers_no_ping_is_closed(
    inside: InsideSite, alice: User, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chat.flow.MAX_FRAMES_WHILE_BLOCKED", 100)
    async with inside.open(alice, room.pk) as socket:
        await socket.next("hello")
        for _ in range(2 * BLOCK_BYTES // MAX_DETAIL_CHARACTERS):
            await socket.send({"type": "ping", "y" * MAX_DETAIL_CHARACTERS: 0})
        assert (await socket.next("close"))["code"] == NO_ANSWER


async def test_pings_of_a_socket_that_is_not_let_in_yet_are_answered_later_and_not_without_end(
    inside: InsideSite, alice: User, room: Room, settings: Settings
) -> None:
    others_are_done = threading.Event()
    waits = [rows.run(others_are_done.wait, BUSY_SECONDS) for _ in range(settings.DATABASE_THREADS)]
    busy = asyncio.gather(*waits)
    async with inside.open(alice, room.pk) as socket:
        for n in range(MAX_WAITING_FRAMES + 1):
            await socket.send({"type": "ping", "n": n})
        assert (await socket.next("error", "pong"))["code"] == "rate_limited"
        others_are_done.set()
        await socket.next("hello")
        assert [(await socket.next("pong"))["n"] for _ in range(MAX_WAITING_FRAMES)] == list(range(MAX_WAITING_FRAMES))
    await busy


@pytest.mark.parametrize("n", [2**53, -(2**53), 10**1000])
async def test_a_number_that_is_not_one_of_javascript_is_refused(
    inside: InsideSite, alice: User, room: Room, n: int
) -> None:
    """It would come back in the `pong`, and thousands of them would fill the memory."""
    async with inside.open(alice, room.pk) as socket:
        await socket.next("hello")
        await socket.send({"type": "ping", "n": n})
        assert (await socket.next("error", "pong"))["code"] == "bad_frame"
        await socket.send({"type": "ping", "n": n // abs(n)})
        assert (await socket.next("error", "pong"))["n"] == n // abs(n)
