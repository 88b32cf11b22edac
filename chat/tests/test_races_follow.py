"""Following a reply that another worker owns: viewers that come and go while Redis takes its time."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from channels.layers import InMemoryChannelLayer

from chat.journal import DjangoJournal
from inference.bus import Bus
from inference.follow import Mirrors
from inference.journal import Record


class SlowToLeave(InMemoryChannelLayer):  # type: ignore[misc]  # channels has no types
    """A Redis that takes for ever to unsubscribe."""

    def __init__(self) -> None:
        super().__init__()
        self.is_leaving = asyncio.Event()

    async def group_discard(self, group: str, channel: str) -> None:
        self.is_leaving.set()
        await asyncio.Event().wait()


async def test_a_viewer_that_comes_while_a_mirror_is_given_up_is_not_given_that_mirror() -> None:
    layer = SlowToLeave()
    bus = Bus(layer)
    inference_id = uuid4()
    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(bus.run())
        await bus.has_subscription.wait()
        mirrors = Mirrors(bus=bus, journal=DjangoJournal(), spawn=tasks.create_task)
        mirrors.add(Record(inference_id, runs=(), position=0, ending=None))
        async with asyncio.timeout(10):
            await layer.is_leaving.wait()
        assert mirrors.get(inference_id) is None
        hearing.cancel()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
