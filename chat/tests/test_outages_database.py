"""PostgreSQL away for everybody, or for the owner alone: stops hold, replies go on, and nothing is lost."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING, numbered_text
from testing.proxy import FaultProxy
from testing.server_process import wait_until
from testing.services import PostgresServer, RedisServer
from testing.storm.room import Room, open_room
from testing.workers import Site

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

WORDS = "{n}:{word} "
DEAD_SECONDS = 13.0
"""Longer than an owner may be silent before others end its inferences."""


@dataclass
class Outage:
    """A site of which each worker has a way of its own to the database."""

    site: Site
    proxies: list[FaultProxy]


@pytest.fixture(scope="module")
def outage(postgres_server: PostgresServer, session_redis: RedisServer, model_server: ModelServer) -> Iterator[Outage]:
    with ExitStack() as stack:
        database_url = stack.enter_context(postgres_server.new_database())
        site = Site(
            3,
            database_url=database_url,
            redis_url=session_redis.url,
            openai_base_url=model_server.url,
            REDIS_PREFIX=uuid.uuid4().hex,
            CHAT_DEFAULT_MODEL="echo",
            LIMITS="off",
        )
        proxies = [stack.enter_context(FaultProxy(postgres_server.port)) for _ in site.workers]
        for worker, proxy in zip(site.workers, proxies, strict=True):
            worker.variables["DATABASE_URL"] = database_url.replace(f":{postgres_server.port}/", f":{proxy.port}/")
        yield Outage(stack.enter_context(site), proxies)


@asynccontextmanager
async def without_database(*proxies: FaultProxy) -> AsyncIterator[None]:
    """Connections stay up and carry nothing."""
    for proxy in proxies:
        await asyncio.to_thread(proxy.stall)
    try:
        yield
    finally:
        for proxy in proxies:
            await asyncio.to_thread(proxy.resume)


def paced(count: int, seconds: float) -> Script:
    return {"steps": [OPENING, {"text": WORDS, "repeat": count, "pace_seconds": seconds}, *ENDING]}


def whole(count: int) -> str:
    return "".join(numbered_text(WORDS, number) for number in range(count))


@pytest.mark.parametrize("asker", ["owner", "another worker"])
async def test_a_stop_while_the_database_is_away_frees_the_model_and_is_saved_later(
    outage: Outage, model_server: ModelServer, asker: str
) -> None:
    async with open_room(outage.site, model_server, paced(600, 0.05)) as room:
        inference_id = await room.ask()
        socket = room.asking if asker == "owner" else room.other
        position = await socket.wait_for_position(inference_id, 30)
        shown = socket.text(inference_id)[:position]
        async with without_database(*outage.proxies):
            result = await socket.stop(inference_id, position)
            assert (result["outcome"], result["position"]) == ("recorded", position)
            request = (await asyncio.to_thread(model_server.requests, room.model))[-1]
            await asyncio.to_thread(model_server.wait_closed, request.id)
        for end in [await side.wait_for("end", inference_id=inference_id) for side in (room.asking, room.other)]:
            assert (end["status"], end["position"]) == ("stopped", position)
        row = await room.row(inference_id)
        assert (row.status, row.text) == ("stopped", shown)
        assert room.asking.text(inference_id) == room.other.text(inference_id) == shown
        answered = await room.asking.ask("And now?", model="echo")
        await room.asking.wait_for("end", inference_id=answered["inference_id"], status="completed")


async def test_a_stop_by_http_says_that_it_could_not_be_written_down(outage: Outage, model_server: ModelServer) -> None:
    async with open_room(outage.site, model_server, paced(600, 0.05)) as room:
        inference_id = await room.ask()
        account = outage.site.account_at(outage.site.workers[1], "alice")
        async with without_database(*outage.proxies):
            response = await account.astop(inference_id, 3)
        assert (response.status_code, response.json()["error"]["code"]) == (503, "unavailable")
        await room.asking.stop(inference_id)


async def test_an_outage_makes_nobody_dead_and_loses_nothing(outage: Outage, model_server: ModelServer) -> None:
    """The reaper after an outage: every heartbeat is old, and every owner lives."""
    async with open_room(outage.site, model_server, paced(200, 0.1)) as room:
        inference_id = await room.ask()
        await room.other.wait_for_position(inference_id, 10)
        async with without_database(*outage.proxies):
            await room.asking.wait_for_position(inference_id, len(whole(int(DEAD_SECONDS / 0.1))), timeout_seconds=25)
        ends = [
            await side.wait_for("end", inference_id=inference_id, timeout_seconds=25)
            for side in (room.asking, room.other)
        ]
        assert [end["status"] for end in ends] == ["completed", "completed"]
        assert room.asking.text(inference_id) == room.other.text(inference_id) == whole(200)
        assert (await room.row(inference_id)).text == whole(200)


async def test_an_owner_that_was_only_cut_off_saves_the_longer_text_when_it_is_back(
    outage: Outage, model_server: ModelServer
) -> None:
    """The reaper against a slow owner: interrupted by another worker, then given what the owner has."""
    async with open_room(outage.site, model_server, paced(600, 0.05)) as room:
        inference_id = await room.ask()
        await room.other.wait_for_position(inference_id, 10)
        async with without_database(outage.proxies[0]):
            end = await room.other.wait_for("end", inference_id=inference_id, timeout_seconds=20)
            assert end["status"] == "interrupted"
            seen = room.asking.position(inference_id)
        later = await room.other.wait_for("end", inference_id=inference_id, timeout_seconds=20)
        assert later["position"] >= seen > end["position"]
        await room.asking.wait_for("end", inference_id=inference_id, position=later["position"])
        row = await room.row(inference_id)
        assert (row.status, row.position) == ("interrupted", later["position"])
        assert row.text == room.asking.text(inference_id) == room.other.text(inference_id)
        request = (await asyncio.to_thread(model_server.requests, room.model))[-1]
        assert not request.is_live, "an owner that was reaped stops generating"


async def test_no_frame_waits_for_one_that_waits_for_the_database(outage: Outage, model_server: ModelServer) -> None:
    """CASES 43: a prompt that hangs holds up neither a ping nor the close of its socket."""
    async with open_room(outage.site, model_server, paced(1, 0.0)) as room:
        await room.asking.wait_for("hello")
        await _ask_in_vain(outage, room)


async def _ask_in_vain(outage: Outage, room: Room) -> None:
    async with without_database(*outage.proxies):
        await room.asking.send("send", client_id=str(uuid.uuid4()), text="This will take a while")
        await room.asking.send("ping", n=43)
        await room.asking.wait_for("pong", n=43, timeout_seconds=1.5)
        await room.asking.close()
        over = f"WEBSOCKET /ws/rooms/{room.room_id}/"
        owner = outage.site.workers[0]
        await asyncio.to_thread(wait_until, lambda: over in owner.log(), "the socket's handler has ended")


async def test_no_request_fails_for_connections_that_the_database_has_ended(outage: Outage) -> None:
    """A restart of PostgreSQL leaves a pool full of them."""
    account = outage.site.account_at(outage.site.workers[0], "alice")
    await asyncio.gather(*(asyncio.to_thread(account.get, "/rooms/") for _ in range(8)))
    await asyncio.to_thread(outage.proxies[0].reset_all)
    statuses = [(await asyncio.to_thread(account.get, "/rooms/")).status_code for _ in range(8)]
    assert statuses == [200] * 8
