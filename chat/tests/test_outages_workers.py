"""Workers that are killed, paused or told to go: what became of their replies, and of the stops meant for them."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Iterator

import pytest

from chat.tests.conftest import NewSite
from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING, numbered_text
from testing.storm.room import open_room
from testing.storm.tab import Tab
from testing.workers import Site

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

WORDS = "{n}:{word} "
PACE_SECONDS = 0.05
OWNER_GONE_SECONDS = 15.0
LOST_SECONDS = 1.5
TALK: Script = {"steps": [OPENING, {"text": WORDS, "repeat": 1200, "pace_seconds": PACE_SECONDS}, *ENDING]}


@pytest.fixture(scope="module")
def mortal_site(new_site: NewSite) -> Iterator[Site]:
    """Three workers of this module's own."""
    with new_site(
        3, REDIS_PREFIX=uuid.uuid4().hex, CHAT_DEFAULT_MODEL="echo", DRAIN_SECONDS="20", LIMITS="off"
    ) as site:
        yield site


@pytest.fixture
def restartable(mortal_site: Site) -> Site:
    """The workers, all of them alive; a test may end them."""
    for worker in mortal_site.workers:
        worker.start()
    return mortal_site


def whole(count: int) -> str:
    return "".join(numbered_text(WORDS, number) for number in range(count))


async def test_the_replies_of_owners_that_are_killed_or_paused_end_within_fifteen_seconds(
    restartable: Site, model_server: ModelServer
) -> None:
    """Worker 0 is killed and worker 1 paused at the same time; worker 2 ends what was theirs."""
    await asyncio.gather(kill_the_owner(restartable, model_server), pause_the_owner(restartable, model_server))


async def kill_the_owner(restartable: Site, model_server: ModelServer) -> None:
    """CASES 19: one without a stop, one stopped just before, one right at, and one after the owner's death."""
    async with (
        open_room(restartable, model_server, TALK, other=2) as alone,
        open_room(restartable, model_server, TALK, other=2) as before,
        open_room(restartable, model_server, TALK, other=2) as during,
        open_room(restartable, model_server, TALK, other=2) as after,
    ):
        rooms = [alone, before, during, after]
        inference_ids = [await room.ask() for room in rooms]
        # The others may end what is the dead owner's only when they have been well themselves for ten seconds.
        for room, inference_id in zip(rooms, inference_ids, strict=True):
            await room.other.wait_for_position(inference_id, len(whole(200)), timeout_seconds=20)
        positions = [room.other.position(inference_id) for room, inference_id in zip(rooms, inference_ids, strict=True)]
        stopped = await before.other.stop(inference_ids[1], positions[1])
        assert stopped["outcome"] == "stopped"
        await during.other.send("stop", inference_id=inference_ids[2], position=positions[2])
        await asyncio.to_thread(restartable.workers[0].kill)
        killed_at = time.monotonic()
        await after.other.send("stop", inference_id=inference_ids[3], position=positions[3])
        statuses = []
        for room, inference_id, position in zip(rooms, inference_ids, positions, strict=True):
            left = killed_at + OWNER_GONE_SECONDS - time.monotonic()
            end = await room.other.wait_for("end", inference_id=inference_id, timeout_seconds=max(0.1, left))
            statuses.append(end["status"])
            row = await room.row(inference_id)
            assert row.text == room.other.text(inference_id)
            assert row.position >= position - len(whole(200)) + len(whole(200 - math.ceil(LOST_SECONDS / PACE_SECONDS)))
            answered = await room.other.ask("And now?", model="echo")
            await room.other.wait_for("end", inference_id=answered["inference_id"], status="completed")
        assert statuses == ["interrupted", "stopped", "stopped", "stopped"]
        assert (await before.row(inference_ids[1])).position == positions[1]


async def pause_the_owner(restartable: Site, model_server: ModelServer) -> None:
    """The reaper against a slow owner that comes back: the longer text wins, on every screen."""
    async with open_room(restartable, model_server, TALK, owner=1, other=2) as room:
        inference_id = await room.ask()
        await room.other.wait_for_position(inference_id, len(whole(220)), timeout_seconds=20)
        restartable.workers[1].pause()
        try:
            end = await room.other.wait_for("end", inference_id=inference_id, timeout_seconds=OWNER_GONE_SECONDS)
        finally:
            restartable.workers[1].resume()
        assert end["status"] == "interrupted"
        later = await room.other.wait_for("end", inference_id=inference_id)
        assert later["position"] >= end["position"]
        await room.asking.wait_for("end", inference_id=inference_id, position=later["position"])
        row = await room.row(inference_id)
        assert row.text == room.other.text(inference_id) == room.asking.text(inference_id)
        assert (await asyncio.to_thread(model_server.requests, room.model))[-1].is_live is False


async def test_a_stop_reaches_an_owner_that_is_draining(restartable: Site, model_server: ModelServer) -> None:
    async with open_room(restartable, model_server, TALK) as room:
        inference_id = await room.ask()
        await room.other.wait_for_position(inference_id, 30)
        restartable.workers[0].terminate()
        assert await room.asking.wait_closed() == 1012
        position = await room.other.wait_for_position(inference_id, room.other.position(inference_id) + 30)
        result = await room.other.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position)
        assert (await room.row(inference_id)).position == position
        assert await asyncio.to_thread(restartable.workers[0].wait, 10) == 0, "nothing is left to wait for"


async def test_a_rolling_restart_loses_no_token(restartable: Site, model_server: ModelServer) -> None:
    """CASES 66: one reply on each worker while all are replaced, one after the other."""
    script: Script = {"steps": [OPENING, {"text": WORDS, "repeat": 200, "pace_seconds": 0.05}, *ENDING]}
    await asyncio.to_thread(model_server.script, "rolling", script)
    tabs = [await opened(restartable, number) for number in range(3)]
    inference_ids = [await tab.ask("Hello", model="rolling") for tab in tabs]
    for worker in restartable.workers:
        worker.terminate()
        await asyncio.to_thread(worker.wait, 30)
        await asyncio.to_thread(worker.start)
    for tab, inference_id in zip(tabs, inference_ids, strict=True):
        assert inference_id is not None
        assert (await tab.wait_for_end(inference_id))["status"] == "completed"
        assert tab.shown(inference_id) == whole(200)
        await tab.close()


async def opened(site: Site, number: int) -> Tab:
    """A tab in a room of its own, first on one worker and then wherever the balancer sends it."""
    addresses = iter([site.workers[number].url])
    room_id = await asyncio.to_thread(site.account("alice").create_room)
    tab = Tab(site.account("alice"), room_id, lambda: next(addresses, site.url))
    await tab.open()
    return tab
