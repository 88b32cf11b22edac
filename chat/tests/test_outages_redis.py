"""Redis away, slow, restarted or half-open: a stop costs at most the second until the owner reads the row again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING
from testing.proxy import FaultProxy
from testing.services import PostgresServer, RedisServer
from testing.storm.room import open_room
from testing.workers import Site

pytestmark = pytest.mark.processes

TALK: Script = {"steps": [OPENING, {"text": "{n}:{word} ", "repeat": 600, "pace_seconds": 0.05}, *ENDING]}
REREAD_SECONDS = 4.0
"""Two seconds without an acknowledgement, and the owner's next beat."""


@dataclass
class Outage:
    """A site of three workers whose Redis a test may break."""

    site: Site
    redis: RedisServer
    proxy: FaultProxy


@pytest.fixture(scope="module")
def outage(postgres_server: PostgresServer, model_server: ModelServer) -> Iterator[Outage]:
    with postgres_server.new_database() as database_url, RedisServer() as redis, FaultProxy(redis.port) as proxy:
        redis_url = f"redis://127.0.0.1:{proxy.port}/0"
        variables = {"CHAT_DEFAULT_MODEL": "echo", "LIMITS": "off"}
        with Site(
            3, database_url=database_url, redis_url=redis_url, openai_base_url=model_server.url, **variables
        ) as site:
            yield Outage(site, redis, proxy)


async def stop_from_elsewhere(outage: Outage, model_server: ModelServer, *faults: str) -> None:
    """Ask on one worker, break Redis, stop from another: it holds, exactly, and the model is freed."""
    async with open_room(outage.site, model_server, TALK) as room:
        inference_id = await room.ask()
        position = await room.other.wait_for_position(inference_id, 30)
        shown = room.other.text(inference_id)[:position]
        for fault in faults:
            await asyncio.to_thread(FAULTS[fault], outage)
        try:
            result = await room.other.stop(inference_id, position)
            assert result["outcome"] in {"stopped", "recorded"}
            request = (await asyncio.to_thread(model_server.requests, room.model))[-1]
            await asyncio.to_thread(model_server.wait_closed, request.id, REREAD_SECONDS)
        finally:
            await asyncio.to_thread(mend, outage)
        for end in await room.ends(inference_id):
            assert (end["status"], end["position"]) == ("stopped", position)
        assert room.asking.text(inference_id) == room.other.text(inference_id) == shown
        assert (await room.row(inference_id)).text == shown


FAULTS = {
    "down": lambda outage: outage.redis.stop(),
    "paused": lambda outage: outage.redis.pause(),
    "restarted": lambda outage: outage.redis.restart(),
    "half-open": lambda outage: outage.proxy.stall(new_connections=False),
    "reset": lambda outage: outage.proxy.reset_all(),
}


def mend(outage: Outage) -> None:
    outage.proxy.resume()
    outage.redis.resume()
    outage.redis.start()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_stop_from_another_worker_holds_whatever_redis_does(
    outage: Outage, model_server: ModelServer, fault: str
) -> None:
    await stop_from_elsewhere(outage, model_server, fault)


async def test_after_all_that_a_stop_reaches_the_owner_at_once_again(outage: Outage, model_server: ModelServer) -> None:
    """CASES 27 and 31: the subscriptions are back, whatever became of them before; found out within 10 s."""
    async with asyncio.timeout(20):
        while not await is_stopped_within_a_second(outage, model_server):
            continue


async def is_stopped_within_a_second(outage: Outage, model_server: ModelServer) -> bool:
    async with open_room(outage.site, model_server, TALK) as room:
        inference_id = await room.ask()
        position = await room.other.wait_for_position(inference_id, 5)
        before = asyncio.get_running_loop().time()
        result = await room.other.stop(inference_id, position)
        assert result["outcome"] == "stopped"
        return asyncio.get_running_loop().time() - before < 1


async def test_a_prompt_and_its_end_that_redis_has_lost_are_told_within_five_seconds(
    outage: Outage, model_server: ModelServer
) -> None:
    """A lost `message`, a lost `start` and a lost `end`: CASES 51 with Redis away."""
    brief: Script = {"steps": [OPENING, {"text": "{n}:{word} ", "repeat": 10}, *ENDING]}
    async with open_room(outage.site, model_server, brief) as room:
        await asyncio.to_thread(outage.redis.stop)
        try:
            inference_id = (await room.asking.ask("Hello", model=room.model))["inference_id"]
            await room.asking.wait_for("end", inference_id=inference_id)
            message = await room.other.wait_for("message", timeout_seconds=6)
            assert message["message"]["text"] == "Hello"
            end = await room.other.wait_for("end", inference_id=inference_id, timeout_seconds=6)
            assert end["status"] == "completed"
        finally:
            await asyncio.to_thread(mend, outage)


async def test_a_reply_that_is_followed_goes_on_after_redis_was_away(outage: Outage, model_server: ModelServer) -> None:
    """I7: nothing is lost on the owner's screen or on the other one."""
    script: Script = {"steps": [OPENING, {"text": "{n}:{word} ", "repeat": 100, "pace_seconds": 0.05}, *ENDING]}
    async with open_room(outage.site, model_server, script) as room:
        inference_id = await room.ask()
        await room.other.wait_for_position(inference_id, 20)
        await asyncio.to_thread(outage.redis.restart)
        ends = await asyncio.gather(
            room.asking.wait_for("end", inference_id=inference_id, timeout_seconds=20),
            room.other.wait_for("end", inference_id=inference_id, timeout_seconds=20),
        )
        assert [end["status"] for end in ends] == ["completed", "completed"]
        row = await room.row(inference_id)
        assert row.text == room.asking.text(inference_id) == room.other.text(inference_id)
