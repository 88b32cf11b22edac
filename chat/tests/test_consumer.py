"""What a socket leaves behind when it has gone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chat import runtime
from chat.consumer import RoomConsumer
from chat.models import Room
from chat.tests.inside import InsideSite

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_socket_that_has_gone_expects_no_follow(inside: InsideSite, alice: User, room: Room) -> None:
    """Otherwise it would still show a reply that ends within two seconds."""
    async with inside.open(alice, room.pk) as socket:
        await socket.next("hello")
        (consumer,) = runtime.current().news.sockets
    assert isinstance(consumer, RoomConsumer)
    assert consumer._patience is not None
    assert consumer._patience.cancelled()
