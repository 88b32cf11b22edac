"""Groups that are left while Redis is away, or while the subscription is being renewed, are not heard for ever."""

from __future__ import annotations

import asyncio

from channels.layers import InMemoryChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from inference.bus import Bus
from testing.server_process import wait_until
from testing.services import RedisServer

GROUP = "inference.1"


def hears_group(server: RedisServer) -> bool:
    with server.client() as client:
        return bool(client.pubsub_channels(f"*{GROUP}"))


async def test_a_group_left_while_redis_does_not_answer_is_unsubscribed_once_it_does() -> None:
    with RedisServer() as server:
        bus = Bus(RedisPubSubChannelLayer(hosts=[{"address": server.url, "socket_timeout": 0.5}]))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(bus.run())
            await bus.has_subscription.wait()
            await bus.join(GROUP)
            await asyncio.to_thread(wait_until, lambda: hears_group(server), "the group is subscribed")
            await asyncio.to_thread(server.stop)
            await bus.leave(GROUP)
            await asyncio.to_thread(server.start)
            await asyncio.to_thread(
                wait_until, lambda: not hears_group(server), "the group is left", timeout_seconds=15
            )
            await bus.has_subscription.wait()
            assert not hears_group(server)
            running.cancel()


class SlowToJoin(InMemoryChannelLayer):  # type: ignore[misc]  # channels has no types
    """A Redis that takes its time for one group."""

    def __init__(self) -> None:
        super().__init__()
        self.is_joining = asyncio.Event()
        self.may_join = asyncio.Event()

    async def group_add(self, group: str, channel: str) -> None:
        if group == GROUP:
            self.is_joining.set()
            await self.may_join.wait()
        await super().group_add(group, channel)


async def test_a_group_left_while_the_bus_subscribes_is_not_kept() -> None:
    layer = SlowToJoin()
    bus = Bus(layer)
    await bus.join(GROUP)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(bus.run())
        await layer.is_joining.wait()
        await bus.leave(GROUP)
        layer.may_join.set()
        await bus.has_subscription.wait()
        assert not layer.groups.get(GROUP)
        running.cancel()


async def test_a_bus_that_is_cancelled_ends_whatever_redis_command_it_is_in(redis_server: RedisServer) -> None:
    """The client library swallows some cancels; a worker whose bus did not end would never shut down."""
    for step in range(150):
        bus = Bus(RedisPubSubChannelLayer(hosts=[{"address": redis_server.url, "socket_timeout": 2}]))
        running = asyncio.create_task(bus.run())
        # Another moment each time: from before the first command to well after the last.
        await asyncio.sleep(step * 0.0001)
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=5)
        assert done, f"still running after the cancel at step {step}"
