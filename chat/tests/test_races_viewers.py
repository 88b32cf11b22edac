"""Viewers who come, go, lag and return while a reply runs on another worker: nobody misses or doubles a character."""

from __future__ import annotations

import asyncio

import pytest

from testing.client import RoomClient
from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING, numbered_text
from testing.storm.room import Room, open_room
from testing.storm.tab import Tab
from testing.workers import Site

pytestmark = pytest.mark.processes

WORDS = "{n}:{word} "


def paced(count: int, seconds: float) -> Script:
    return {"steps": [OPENING, {"text": WORDS, "repeat": count, "pace_seconds": seconds}, *ENDING]}


def whole(count: int) -> str:
    return "".join(numbered_text(WORDS, number) for number in range(count))


async def follower(room: Room, worker_index: int, inference_id: str, position: int = 0) -> RoomClient:
    """A new socket that follows; the caller closes it."""
    account = room.site.account_at(room.site.workers[worker_index], "alice")
    socket = await account.open_room(room.room_id).connect()
    await socket.follow(inference_id, position)
    return socket


async def test_following_while_the_first_tokens_come_leaves_no_gap(site: Site, model_server: ModelServer) -> None:
    """CASES 21: twelve followers from the prompt on, a few milliseconds apart, on every worker."""
    async with open_room(site, model_server, paced(30, 0.03)) as room:
        inference_id = await room.ask()
        sockets = [await follower(room, number % 3, inference_id) for number in range(12)]
        for socket in sockets:
            assert (await socket.wait_for("end", inference_id=inference_id))["status"] == "completed"
            assert socket.text(inference_id) == whole(30)
            await socket.close()


async def test_following_with_the_end_in_flight_gives_the_tail_and_the_end(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 23: some come before the commit, some after; all know a part already."""
    script: Script = {"steps": [OPENING, {"text": WORDS, "repeat": 20}, {"wait_go": True}, *ENDING]}
    async with open_room(site, model_server, script) as room:
        inference_id = await room.ask()
        await room.other.wait_for_position(inference_id, len(whole(20)))
        coming = [asyncio.create_task(follower(room, number % 3, inference_id, 10)) for number in range(9)]
        await asyncio.to_thread(model_server.go, room.model)
        coming += [asyncio.create_task(follower(room, number % 3, inference_id, 10)) for number in range(9)]
        for socket in await asyncio.gather(*coming):
            end = await socket.wait_for("end", inference_id=inference_id)
            assert (end["status"], end["position"]) == ("completed", len(whole(20)))
            assert socket.text(inference_id) == whole(20)[10:]
            await socket.close()


async def test_an_end_waits_for_the_follow_that_is_on_its_way(site: Site, model_server: ModelServer) -> None:
    """It was live in the socket's `hello`; a client that never follows hears of the end all the same."""
    script: Script = {"steps": [OPENING, {"text": WORDS, "repeat": 20}, {"wait_go": True}, *ENDING]}
    async with open_room(site, model_server, script) as room:
        inference_id = await room.ask()
        await room.other.wait_for_position(inference_id, len(whole(20)))
        account = site.account_at(site.workers[1], "alice")
        async with account.open_room(room.room_id) as follows, account.open_room(room.room_id) as only_listens:
            for socket in (follows, only_listens):
                assert (await socket.wait_for("hello"))["live"]
            await asyncio.to_thread(model_server.go, room.model)
            await room.other.wait_for("end", inference_id=inference_id)
            await follows.follow(inference_id)
            await follows.wait_for("end", inference_id=inference_id)
            assert follows.text(inference_id) == whole(20)
            await only_listens.wait_for("end", inference_id=inference_id)


async def test_twenty_drops_in_one_reply_double_and_lose_nothing(site: Site, model_server: ModelServer) -> None:
    """CASES 22, and reconnecting in mid-block: each time to another worker."""
    async with open_room(site, model_server, paced(100, 0.05)) as room:
        inference_id = await room.ask()
        addresses = iter(site.workers * 10)
        tab = Tab(site.account("alice"), room.room_id, lambda: next(addresses).url)
        await tab.open()
        for step in range(1, 21):
            await tab.wait_for_position(inference_id, step * 20, timeout_seconds=10)
            await tab.drop()
            await tab.open()
        await tab.wait_for_end(inference_id)
        assert tab.shown(inference_id) == whole(100) == (await room.row(inference_id)).text
        await tab.close()


async def test_a_slow_viewer_gets_larger_deltas_and_holds_nobody_up(site: Site, model_server: ModelServer) -> None:
    """CASES 30: it reads nothing while two megabytes come; the other one has the end long before."""
    script: Script = {"steps": [OPENING, {"text": "x" * 2000, "repeat": 1000, "pace_seconds": 0.002}, *ENDING]}
    async with open_room(site, model_server, script) as room:
        room.other.pause_reading()
        inference_id = (await room.asking.ask("Hello", model=room.model))["inference_id"]
        await room.asking.wait_for("end", inference_id=inference_id, timeout_seconds=30)
        assert room.other.position(inference_id) < 2_000_000
        room.other.resume_reading()
        await room.other.wait_for("end", inference_id=inference_id, timeout_seconds=30)
        assert room.other.text(inference_id) == "x" * 2_000_000
        assert len(room.other.transcript.of_type("delta")) < 1000


async def test_a_stop_overtakes_the_deltas_that_wait_for_a_slow_viewer(site: Site, model_server: ModelServer) -> None:
    """It answers no ping, so its deltas wait; its stop is answered at once and cuts where it stands."""
    script: Script = {"steps": [OPENING, {"text": "x" * 2000, "repeat": 1000, "pace_seconds": 0.02}, *ENDING]}
    async with open_room(site, model_server, script) as room:
        room.asking.answers_pings = False
        inference_id = await room.ask()
        held_at = await room.asking.wait_for_position(inference_id, 240_000, timeout_seconds=20)
        await room.other.wait_for_position(inference_id, held_at + 100_000, timeout_seconds=20)
        position = room.asking.position(inference_id)
        result = await room.asking.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position)
        end = await room.other.wait_for("end", inference_id=inference_id)
        assert (end["status"], end["position"]) == ("stopped", position)


async def test_closing_every_tab_stops_nothing(site: Site, model_server: ModelServer) -> None:
    """CASES 9, 17 and 18: who returns sees all of it, and may still stop it."""
    async with open_room(site, model_server, paced(200, 0.05)) as room:
        inference_id = await room.ask()
        await room.asking.wait_for_position(inference_id, 20)
        await room.asking.close()
        await room.other.close()
        again = await follower(room, 2, inference_id)
        position = await again.wait_for_position(inference_id, 200)
        shown = again.text(inference_id)[:position]
        assert whole(200).startswith(shown)
        result = await again.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position)
        assert (await room.row(inference_id)).text == shown
        await again.close()


async def test_a_second_tab_is_told_of_turns_and_stops_within_a_second(site: Site, model_server: ModelServer) -> None:
    """CASES 51."""
    async with open_room(site, model_server, paced(200, 0.05)) as room:
        inference_id = (await room.asking.ask("Hello", model=room.model))["inference_id"]
        message = await room.other.wait_for("message", timeout_seconds=1)
        assert message["message"]["text"] == "Hello"
        await room.other.wait_for("start", inference_id=inference_id, timeout_seconds=1)
        await room.asking.stop(inference_id, 0)
        await room.other.wait_for("end", inference_id=inference_id, status="stopped", timeout_seconds=1)
