"""The channel layer as workers use it: over the in-memory layer and over a real Redis that fails in all its ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from inference import bus as bus_module
from inference.bus import WORKERS, Bus, ChannelLayer, Event
from testing.proxy import FaultProxy
from testing.services import RedisServer

ROOM = "room.x"
PROMPT_SECONDS = 5.0

MakeLayer = Callable[[], ChannelLayer]


def redis_layer(port: int) -> ChannelLayer:
    host = {"address": f"redis://127.0.0.1:{port}/0", "socket_timeout": 2, "socket_connect_timeout": 2}
    layer: ChannelLayer = RedisPubSubChannelLayer(hosts=[host], prefix="tests")
    return layer


@pytest.fixture(params=["memory", "redis"])
def make_layer(request: pytest.FixtureRequest) -> MakeLayer:
    """What makes the layer of one process; all of them reach each other."""
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        return lambda: redis_layer(server.port)
    shared: Any = InMemoryChannelLayer()
    return lambda: shared


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A Redis that a test may stop."""
    with RedisServer() as server:
        yield server


class Ear:
    """Hears the events of one type on one bus."""

    def __init__(self, bus: Bus, kind: str = "news") -> None:
        self.heard: list[Event] = []
        self._came = asyncio.Event()
        bus.on(kind, self._hear)

    @property
    def numbers(self) -> list[int]:
        return [event["n"] for event in self.heard]

    async def wait_for(self, n: int, *, seconds: float = PROMPT_SECONDS) -> None:
        async with asyncio.timeout(seconds):
            while n not in self.numbers:
                self._came.clear()
                await self._came.wait()

    def _hear(self, event: Event) -> None:
        self.heard.append(event)
        self._came.set()


@asynccontextmanager
async def running(*buses: Bus) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(bus.run()) for bus in buses]
    try:
        async with asyncio.timeout(PROMPT_SECONDS):
            for bus in buses:
                await bus.has_subscription.wait()
        yield
        assert not any(task.done() for task in tasks), "a bus has given up"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def news(n: int) -> Event:
    return {"type": "news", "n": n}


async def heard_again(publisher: Bus, ear: Ear, *, seconds: float) -> None:
    """Publish until it is heard."""
    n = 1000
    async with asyncio.timeout(seconds):
        while True:
            n += 1
            await publisher.publish(ROOM, news(n))
            with suppress(TimeoutError):
                return await ear.wait_for(n, seconds=0.2)


async def test_an_event_is_heard_here_at_once_and_elsewhere_soon_and_by_each_once(make_layer: MakeLayer) -> None:
    here, there = Bus(make_layer()), Bus(make_layer())
    near, far = Ear(here), Ear(there)
    await here.join(ROOM)
    await there.join(ROOM)
    async with running(here, there):
        publishing = asyncio.create_task(here.publish(ROOM, news(1)))
        await asyncio.sleep(0)
        assert near.numbers == [1]
        assert await publishing
        await far.wait_for(1)
        assert await there.publish(ROOM, news(2))
        await near.wait_for(2)
    assert (near.numbers, far.numbers) == ([1, 2], [1, 2])


async def test_events_of_one_publisher_come_in_order(make_layer: MakeLayer) -> None:
    here, there = Bus(make_layer()), Bus(make_layer())
    far = Ear(there)
    await there.join(ROOM)
    async with running(here, there):
        for n in range(50):
            await here.publish(ROOM, news(n))
        await far.wait_for(49)
    assert far.numbers == list(range(50))


async def test_a_group_is_heard_from_its_first_join_to_its_last_leave(make_layer: MakeLayer) -> None:
    here, there = Bus(make_layer()), Bus(make_layer())
    far = Ear(there)
    async with running(here, there):
        await here.publish(ROOM, news(1))
        await there.join(ROOM)
        await there.join(ROOM)
        await there.leave(ROOM)
        await here.publish(ROOM, news(2))
        await far.wait_for(2)
        await there.leave(ROOM)
        await here.publish(ROOM, news(3))
        await here.publish(WORKERS, news(4))
        await far.wait_for(4)
    assert far.numbers == [2, 4]


async def test_a_group_joined_before_the_subscription_is_heard_after_it(make_layer: MakeLayer) -> None:
    here, there = Bus(make_layer()), Bus(make_layer())
    far = Ear(there)
    await there.join(ROOM)
    async with running(here, there):
        await here.publish(ROOM, news(1))
        await far.wait_for(1)


async def test_an_event_sent_to_an_address_reaches_that_worker_only(make_layer: MakeLayer) -> None:
    buses = [Bus(make_layer()) for _ in range(3)]
    ears = [Ear(bus) for bus in buses]
    async with running(*buses):
        await buses[0].send(buses[1].address, news(1))
        await buses[0].publish(WORKERS, news(2))
        for ear in ears:
            await ear.wait_for(2)
    assert [ear.numbers for ear in ears] == [[2], [1, 2], [2]]


async def test_an_unknown_event_or_a_failing_handler_does_not_end_the_hearing(make_layer: MakeLayer) -> None:
    here, there = Bus(make_layer()), Bus(make_layer())
    there.on("bad", lambda event: event["missing"])
    far = Ear(there)
    async with running(here, there):
        for event in ({"type": "unheard of"}, {"type": "bad"}, news(1)):
            await here.publish(WORKERS, event)
        await far.wait_for(1)


async def test_while_redis_is_away_this_process_still_hears_itself() -> None:
    bus = Bus(redis_layer(port=1))
    near = Ear(bus)
    await bus.join(ROOM)
    assert await bus.publish(ROOM, news(1)) is False
    assert await bus.send("anybody", news(2)) is False
    assert near.numbers == [1]


async def test_a_bus_whose_redis_comes_late_subscribes_then(own_redis: RedisServer) -> None:
    own_redis.stop()
    bus = Bus(redis_layer(own_redis.port))
    task = asyncio.create_task(bus.run())
    await asyncio.to_thread(own_redis.start)
    async with asyncio.timeout(PROMPT_SECONDS):
        await bus.has_subscription.wait()
    task.cancel()
    await asyncio.wait({task})


class LayerAway(InMemoryChannelLayer):  # type: ignore[misc]  # channels has no types
    """Of a Redis that refuses; `tried` after a few times."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0
        self.tried = asyncio.Event()

    async def new_channel(self, prefix: str = "") -> str:
        self.tries += 1
        if self.tries == 5:
            self.tried.set()
        raise OSError("refused")


async def test_that_redis_is_away_is_not_told_at_every_try(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bus_module, "RETRY_SECONDS", 0.01)
    layer = LayerAway()
    task = asyncio.create_task(Bus(layer).run())
    async with asyncio.timeout(PROMPT_SECONDS):
        await layer.tried.wait()
    task.cancel()
    await asyncio.wait({task})
    [record] = caplog.records
    assert record.getMessage().endswith("until Redis can be reached: refused")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_killed_connections_are_replaced(own_redis: RedisServer) -> None:
    here, there = Bus(redis_layer(own_redis.port)), Bus(redis_layer(own_redis.port))
    far = Ear(there)
    await there.join(ROOM)
    async with running(here, there):
        with own_redis.client() as client:
            client.client_kill_filter(_type="pubsub")
            client.client_kill_filter(_type="normal", skipme=True)
        await heard_again(here, far, seconds=PROMPT_SECONDS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_within_five_seconds_of_redis_being_back_everything_is_heard_again(own_redis: RedisServer) -> None:
    here, there = Bus(redis_layer(own_redis.port)), Bus(redis_layer(own_redis.port))
    far = Ear(there)
    await there.join(ROOM)
    async with running(here, there):
        await asyncio.to_thread(own_redis.stop)
        assert await here.publish(ROOM, news(1)) is False
        await asyncio.to_thread(own_redis.start)
        await heard_again(here, far, seconds=PROMPT_SECONDS)


async def test_a_half_open_subscription_is_found_within_ten_seconds_and_renewed(own_redis: RedisServer) -> None:
    """No error and no event comes from it; only the watchdog can know."""
    renewed = asyncio.Event()

    async def on_renewed() -> None:
        renewed.set()

    with FaultProxy(own_redis.port) as network:
        here, there = Bus(redis_layer(own_redis.port)), Bus(redis_layer(network.port))
        there.on_renewed.append(on_renewed)
        far = Ear(there)
        await there.join(ROOM)
        async with running(here, there):
            await heard_again(here, far, seconds=PROMPT_SECONDS)
            network.stall(new_connections=False)
            async with asyncio.timeout(10):
                await renewed.wait()
            await heard_again(here, far, seconds=1)
            network.resume()
        await connections_are_gone(network)


async def test_a_watcher_that_fails_after_a_renewal_does_not_end_the_bus(
    own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database may be away at the same moment."""
    monkeypatch.setattr(bus_module, "PROBE_SECONDS", 0.1)
    monkeypatch.setattr(bus_module, "PROBE_TIMEOUT_SECONDS", 0.2)
    second = asyncio.Event()

    async def fails() -> None:
        raise ConnectionError("the database is away")

    async def is_told_too() -> None:
        second.set()

    with FaultProxy(own_redis.port) as network:
        bus = Bus(redis_layer(network.port))
        bus.on_renewed += [fails, is_told_too]
        async with running(bus):
            network.stall(new_connections=False)
            async with asyncio.timeout(PROMPT_SECONDS):
                await second.wait()
            await bus.has_subscription.wait()
            network.resume()
        await connections_are_gone(network)


async def test_a_bus_that_has_ended_leaves_no_subscription_behind(redis_server: RedisServer) -> None:
    bus = Bus(redis_layer(redis_server.port))
    await bus.join(ROOM)
    async with running(bus):
        assert ROOM in subscriptions(redis_server)
    await subscriptions_are_gone(redis_server)
    assert bus.address == ""


def subscriptions(server: RedisServer) -> str:
    with server.client() as client:
        return " ".join(name.decode() for name in client.pubsub_channels("tests*"))


async def connections_are_gone(network: FaultProxy) -> None:
    """A proxy that ends before its connections leaves sockets for the garbage collector to complain of."""
    async with asyncio.timeout(PROMPT_SECONDS):
        while network.connection_count:  # noqa: ASYNC110  # it lives in another thread
            await asyncio.sleep(0.01)


async def subscriptions_are_gone(server: RedisServer) -> None:
    """Redis notices a closed connection when it next comes round to it."""
    async with asyncio.timeout(PROMPT_SECONDS):
        while subscriptions(server):  # noqa: ASYNC110  # Redis has no event for it
            await asyncio.sleep(0.01)


async def test_leaving_a_group_ends_its_subscription(redis_server: RedisServer) -> None:
    bus = Bus(redis_layer(redis_server.port))
    async with running(bus):
        await bus.join(ROOM)
        assert ROOM in subscriptions(redis_server)
        await bus.leave(ROOM)
        assert ROOM not in subscriptions(redis_server)


async def test_a_second_join_does_not_return_before_the_group_is_heard(redis_server: RedisServer) -> None:
    bus = Bus(redis_layer(redis_server.port))
    async with running(bus):
        first = asyncio.create_task(bus.join(ROOM))
        await asyncio.sleep(0)
        assert not first.done()
        await bus.join(ROOM)
        assert ROOM in subscriptions(redis_server)
        await first


async def test_cancelled_publishes_leave_no_answer_for_the_next_one(redis_server: RedisServer) -> None:
    """CASES 29: at any step of a command, on connections that others go on to use."""
    one, other = Bus(redis_layer(redis_server.port)), Bus(redis_layer(redis_server.port))
    ear = Ear(other)
    await other.join(ROOM)
    async with running(one, other):
        for number in range(300):
            given_up = asyncio.create_task(one.publish("room.nobody", news(-1)))
            for _ in range(number % 12):
                await asyncio.sleep(0)
            given_up.cancel()
            assert await one.publish(ROOM, news(number))
            await asyncio.wait({given_up})
        await ear.wait_for(299)
        assert ear.numbers == list(range(300))
