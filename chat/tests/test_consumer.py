"""What a socket is told just after it has come, and what it leaves behind when it has gone."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat import runtime
from chat.consumer import RoomConsumer
from chat.endings import ending_of
from chat.models import Room
from chat.tests.inside import InsideSite
from chat.tests.people import begin, complete

pytestmark = pytest.mark.django_db(transaction=True)


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
