"""What a room's sockets are told, in whatever order the events reach this process."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from channels.layers import InMemoryChannelLayer
from django.contrib.auth.models import User

from chat.access import Door, Visit
from chat.journal import DjangoJournal
from chat.models import Room
from chat.news import News
from chat.screen import Screen
from inference.bus import Bus
from inference.engines.demo import DemoEngine
from inference.events import end_event
from inference.journal import Ending, Status
from inference.worker import Worker

ROOM = Room(pk=uuid4())
COMPLETED = Ending(uuid4(), uuid4(), ROOM.topic, Status.COMPLETED, 306, finish_reason="stop")
STOPPED = replace(COMPLETED, status=Status.STOPPED, position=251, finish_reason=None)
INTERRUPTED = replace(COMPLETED, status=Status.INTERRUPTED, position=100, finish_reason=None)
LONGER = replace(INTERRUPTED, position=120)


class Tab:
    """A socket that keeps the endings it is told."""

    def __init__(self) -> None:
        self.visit = Visit(Door("", ROOM.pk), User(pk=1), ROOM, "owner")
        self.screen = Screen(self._send, is_html=False)
        self.endings: list[Ending] = []

    def end(self, ending: Ending) -> None:
        self.endings.append(ending)

    async def leave(self, close_code: int) -> None: ...

    async def _send(self, text: str) -> None: ...


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([COMPLETED, STOPPED], [COMPLETED, STOPPED]),
        ([STOPPED, COMPLETED], [STOPPED]),
        ([STOPPED, STOPPED], [STOPPED]),
        ([INTERRUPTED, LONGER, COMPLETED], [INTERRUPTED, LONGER, COMPLETED]),
        ([LONGER, INTERRUPTED], [LONGER]),
        ([COMPLETED, INTERRUPTED], [COMPLETED]),
    ],
)
async def test_an_ending_that_was_overtaken_is_not_told(events: list[Ending], told: list[Ending]) -> None:
    """Each worker tells its own; one that waits for Redis comes late, while others know more from the rows."""
    bus = Bus(InMemoryChannelLayer())
    news = News(bus, Worker(engine=DemoEngine(), journal=DjangoJournal(), bus=bus))
    tab = Tab()
    await news.join(tab)
    for ending in events:
        await bus.publish(ROOM.topic, end_event(ending))
    assert tab.endings == told
