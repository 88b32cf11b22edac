"""How many Redis commands things cost on three workers. Connecting and subscribing do not count."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from testing.client import Account
from testing.model_server import ModelServer
from testing.services import RedisServer
from testing.workers import Site

pytestmark = pytest.mark.processes

FREE = ("hello", "client|", "auth", "select", "ping", "subscribe", "unsubscribe", "flushall")
WATCHDOG_PER_WORKER_AND_MINUTE = 12


@dataclass
class Bill:
    """What was called in a while, and how much of it the watchdogs of three workers may have been."""

    calls: dict[str, int]
    seconds: float

    @property
    def commands(self) -> int:
        return sum(count for name, count in self.calls.items() if not name.startswith(FREE))

    @property
    def idle(self) -> int:
        # One more for each: the while may begin just before a probe.
        return round(self.seconds * 3 * WATCHDOG_PER_WORKER_AND_MINUTE / 60) + 3


@contextmanager
def billed(redis: RedisServer) -> Iterator[Bill]:
    bill = Bill({}, 0)
    redis.reset_stats()
    began_at = time.monotonic()
    yield bill
    bill.seconds = time.monotonic() - began_at
    bill.calls = redis.commandstats()


def alice_at(site: Site, number: int) -> Account:
    return site.account_at(site.workers[number], "alice")


async def completed(account: Account, room_id: str, model: str, count: int) -> None:
    async with account.open_room(room_id) as socket:
        for _ in range(count):
            inference_id = (await socket.ask("Hello", model=model))["inference_id"]
            await socket.wait_for("end", inference_id=inference_id, status="completed")


async def test_a_reply_that_nobody_stops_costs_at_most_four_commands(site: Site, session_redis: RedisServer) -> None:
    room_id = site.account("alice").create_room()
    await completed(alice_at(site, 0), room_id, "fast", 1)
    with billed(session_redis) as bill:
        await completed(alice_at(site, 0), room_id, "fast", 20)
    assert 0 < bill.commands <= 20 * 4 + bill.idle


async def test_no_command_is_for_a_chunk(site: Site, session_redis: RedisServer) -> None:
    """600 chunks in 12 s, with two viewers on the owner's worker."""
    room_id = site.account("alice").create_room()
    async with alice_at(site, 0).open_room(room_id) as asking, alice_at(site, 0).open_room(room_id) as watching:
        await watching.wait_for("hello")
        with billed(session_redis) as bill:
            inference_id = (await asking.ask("Hello", model="long"))["inference_id"]
            for socket in (asking, watching):
                await socket.wait_for("end", inference_id=inference_id, timeout_seconds=30)
    assert bill.commands <= 4 + bill.idle


async def test_a_stop_costs_one_publish_and_one_acknowledgement(site: Site, session_redis: RedisServer) -> None:
    """From another worker, which has no socket in the room but the one that stops over HTTP."""
    room_id = site.account("alice").create_room()
    stopper = alice_at(site, 1)
    async with alice_at(site, 0).open_room(room_id) as asking:
        with billed(session_redis) as bill:
            for _ in range(10):
                inference_id = (await asking.ask("Hello", model="stall"))["inference_id"]
                await asking.wait_for_position(inference_id, 10)
                assert (await stopper.astop(inference_id, 5)).json()["outcome"] == "stopped"
                await asking.wait_for("end", inference_id=inference_id)
    assert bill.commands <= 10 * (4 + 2) + bill.idle


async def test_a_stop_on_the_owners_worker_costs_no_more_than_a_reply(site: Site, session_redis: RedisServer) -> None:
    room_id = site.account("alice").create_room()
    async with alice_at(site, 0).open_room(room_id) as asking:
        with billed(session_redis) as bill:
            for _ in range(10):
                inference_id = (await asking.ask("Hello", model="stall"))["inference_id"]
                await asking.wait_for_position(inference_id, 10)
                await asking.stop(inference_id, 5)
                await asking.wait_for("end", inference_id=inference_id)
    assert bill.commands <= 10 * 4 + bill.idle


async def test_a_followed_reply_costs_at_most_twenty_deltas_a_second_however_many_follow(
    site: Site, session_redis: RedisServer, model_server: ModelServer
) -> None:
    """200 chunks a second, followed by two tabs on each of two other workers."""
    steps = [{"text": "{n} ", "repeat": 1000, "pace_seconds": 0.005}, {"finish": "stop"}, {"done": True}]
    model_server.script("rapid", {"steps": steps})  # type: ignore[typeddict-item]
    room_id = site.account("alice").create_room()
    watching = [alice_at(site, number).open_room(room_id) for number in (1, 1, 2, 2)]
    for socket in watching:
        await socket.connect()
        await socket.wait_for("hello")
    async with alice_at(site, 0).open_room(room_id) as asking:
        with billed(session_redis) as bill:
            inference_id = (await asking.ask("Hello", model="rapid"))["inference_id"]
            for socket in (asking, *watching):
                await socket.wait_for("end", inference_id=inference_id, timeout_seconds=30)
    # Each of the two followers renews every two seconds and is answered.
    renewals = 2 * 2 * (bill.seconds / 2 + 1)
    assert bill.commands <= 20 * bill.seconds + renewals + 4 + bill.idle
    assert {socket.text(inference_id) for socket in watching} == {asking.text(inference_id)}
    await asyncio.gather(*(socket.close() for socket in watching))


async def test_idle_workers_cost_twelve_commands_a_minute_each(site: Site, session_redis: RedisServer) -> None:
    with billed(session_redis) as bill:
        await asyncio.sleep(12)
    assert 0 < bill.commands <= bill.idle
