"""Redis behind Sentinel: the primary dies, and the replica takes over while people ask and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING
from testing.sentinel import WatchedRedis
from testing.services import PostgresServer
from testing.storm.room import Room, open_room
from testing.workers import Site

pytestmark = pytest.mark.processes

TALK: Script = {"steps": [OPENING, {"text": "{n}:{word} ", "repeat": 600, "pace_seconds": 0.05}, *ENDING]}
RECOVERY_SECONDS = 60.0
"""The sentinels take some 2 s, the site's watchdog at most 10 s more; longer on a busy machine."""


@dataclass
class Watched:
    site: Site
    redis: WatchedRedis


@pytest.fixture
def watched(postgres_server: PostgresServer, model_server: ModelServer) -> Iterator[Watched]:
    """Two workers."""
    with postgres_server.new_database() as database_url, WatchedRedis() as redis:
        variables = {"CHAT_DEFAULT_MODEL": "steady", "LIMITS": "off"}
        with Site(
            2, database_url=database_url, redis_url=redis.url, openai_base_url=model_server.url, **variables
        ) as site:
            yield Watched(site, redis)


async def stop_from_elsewhere(room: Room) -> tuple[str, float]:
    """Ask on one worker and stop on the other: it holds exactly. Gives the outcome, and the seconds until it held."""
    inference_id = (await room.asking.ask("Hello", model=room.model))["inference_id"]
    position = await room.asking.wait_for_position(inference_id, 20)
    pressed_at = asyncio.get_running_loop().time()
    result = await room.other.stop(inference_id, position)
    await room.asking.wait_for("end", inference_id=inference_id, status="stopped", position=position)
    seconds = asyncio.get_running_loop().time() - pressed_at
    # This one may learn of it only as it looks for what it has missed.
    await room.other.wait_for("end", inference_id=inference_id, status="stopped", position=position, timeout_seconds=20)
    assert (await room.row(inference_id)).text == room.asking.text(inference_id)
    return result["outcome"], seconds


async def test_no_stop_is_lost_while_another_redis_takes_over_and_then_owners_confirm_them_again(
    watched: Watched, model_server: ModelServer
) -> None:
    async with open_room(watched.site, model_server, TALK) as room:
        assert (await stop_from_elsewhere(room))[0] == "stopped"
        await asyncio.to_thread(watched.redis.primary.kill)
        outcome, seconds = await stop_from_elsewhere(room)
        assert outcome in {"stopped", "recorded"}
        assert seconds < 5
        async with asyncio.timeout(RECOVERY_SECONDS):
            while not await asyncio.to_thread(watched.redis.has_failed_over):
                await stop_from_elsewhere(room)
            while (await stop_from_elsewhere(room))[0] != "stopped":
                continue
