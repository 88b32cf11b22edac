"""Cases from public bug reports about rooms: deleted, left, shared and asked twice while a reply runs."""

from __future__ import annotations

import asyncio
import html
import re
import uuid

import psycopg
import pytest

from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING, numbered_text
from testing.storm.room import open_room
from testing.workers import Site

pytestmark = pytest.mark.processes

WORDS = "{n}:{word} "
TALK: Script = {"steps": [OPENING, {"text": WORDS, "repeat": 600, "pace_seconds": 0.05}, *ENDING]}
ACCESS_SECONDS = 10.0


def rows(site: Site, statement: str, *parameters: object) -> list[tuple[object, ...]]:
    """What a query finds in the site's database, or what a change returns."""
    with psycopg.connect(site.variables["DATABASE_URL"]) as connection:
        return connection.execute(statement.encode(), parameters).fetchall()


async def test_a_room_deleted_while_its_reply_runs_frees_the_model_and_does_not_come_back(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 49: the sockets are told to go, nothing of the room is left."""
    async with open_room(site, model_server, TALK) as room:
        inference_id = await room.ask()
        await room.other.wait_for_position(inference_id, 20)
        await asyncio.to_thread(site.account("alice").post_form, f"/rooms/{room.room_id}/delete/", {})
        request = (await asyncio.to_thread(model_server.requests, room.model))[-1]
        await asyncio.to_thread(model_server.wait_closed, request.id, 3)
        assert await room.asking.wait_closed(timeout_seconds=ACCESS_SECONDS) == 4404
        assert await room.other.wait_closed(timeout_seconds=ACCESS_SECONDS) == 4404
        left = """SELECT 1 FROM chat_message WHERE room_id = %(room)s
            UNION ALL SELECT 1 FROM chat_inference WHERE room_id = %(room)s
            UNION ALL SELECT 1 FROM chat_membership WHERE room_id = %(room)s"""
        with psycopg.connect(site.variables["DATABASE_URL"]) as connection:
            assert not connection.execute(left, {"room": room.room_id}).fetchall()


async def test_who_loses_the_membership_while_a_reply_runs_sees_and_stops_no_more(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 63: Bob's socket is closed within ten seconds, and Alice's reply goes on."""
    async with open_room(site, model_server, TALK) as room:
        bob = await asyncio.to_thread(site.account, "bob")
        join = """INSERT INTO chat_membership (room_id, user_id, role)
            SELECT %s, id, 'writer' FROM auth_user WHERE username = 'bob' RETURNING id"""
        ((membership_id,),) = await asyncio.to_thread(rows, site, join, room.room_id)
        inference_id = await room.ask()
        async with bob.open_room(room.room_id) as socket:
            await socket.follow(inference_id)
            await socket.wait_for_position(inference_id, 20)
            await asyncio.to_thread(rows, site, "DELETE FROM chat_membership WHERE id = %s RETURNING id", membership_id)
            assert (await socket.stop(inference_id, 3))["outcome"] == "not_found"
            assert await socket.wait_closed(timeout_seconds=ACCESS_SECONDS) == 4404
        await room.asking.wait_for_position(inference_id, room.asking.position(inference_id) + 20)
        await room.asking.stop(inference_id)


async def test_two_rooms_stream_at_once_and_only_the_one_named_is_stopped(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 10 and 50: and each text stands in its own room."""
    async with open_room(site, model_server, TALK) as first, open_room(site, model_server, TALK) as second:
        first_id, second_id = await first.ask("One"), await second.ask("Two")
        position = await first.other.wait_for_position(first_id, 20)
        await first.other.stop(first_id, position)
        goes_on = await second.other.wait_for_position(second_id, second.other.position(second_id) + 30)
        assert (await second.row(second_id)).status in {"pending", "streaming"}
        await second.other.stop(second_id, goes_on)
        assert ((await first.row(first_id)).position, (await second.row(second_id)).position) == (position, goes_on)
        texts = await asyncio.to_thread(
            rows, site, "SELECT text FROM chat_message WHERE room_id = %s AND role = 'user'", second.room_id
        )
        assert texts == [("Two",)]


async def test_a_prompt_sent_twice_is_one_message_with_one_reply(site: Site, model_server: ModelServer) -> None:
    """CASES 52: a double click on one worker, and a resend to another after a drop."""
    async with open_room(site, model_server, TALK) as room:
        prompt = {"client_id": str(uuid.uuid4()), "text": "Hello", "model": room.model}
        await asyncio.gather(*(socket.send("send", **prompt) for socket in (room.asking, room.asking, room.other)))
        start = await room.asking.wait_for("start", client_id=prompt["client_id"])
        await room.other.wait_for("start", client_id=prompt["client_id"], inference_id=start["inference_id"])
        await room.asking.wait_for_position(start["inference_id"], 20)
        counts = await asyncio.to_thread(
            rows, site, "SELECT role, count(*) FROM chat_message WHERE room_id = %s GROUP BY role", room.room_id
        )
        assert sorted(counts) == [("assistant", 1), ("user", 1)]
        assert len(await asyncio.to_thread(model_server.requests, room.model)) == 1
        assert not room.asking.transcript.of_type("error")
        await room.asking.stop(start["inference_id"])


async def test_a_stopped_reply_is_the_same_after_a_reload_and_in_the_models_next_request(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 15, 16 and 20: three in one room, each cut elsewhere; the page has the text and its mark."""
    async with open_room(site, model_server, TALK) as room:
        kept = []
        for number in range(3):
            inference_id = await room.ask(f"Prompt {number}")
            position = await room.other.wait_for_position(inference_id, 30 + 10 * number)
            await room.other.stop(inference_id, position)
            kept.append((await room.row(inference_id)).text)
        page = (await asyncio.to_thread(site.account("alice").get, f"/rooms/{room.room_id}/")).text
        shown = html.unescape(re.sub(r"<[^>]+>", "", page))
        for text in kept:
            assert text.strip() in shown
        assert len(re.findall(r'<p class="state">Stopped</p>', page)) == 3
        answered = await room.asking.ask("And now?", model="echo")
        await room.asking.wait_for("end", inference_id=answered["inference_id"], status="completed")
    request = (await asyncio.to_thread(model_server.requests, "echo"))[-1]
    messages = request.body["messages"]
    assert isinstance(messages, list)
    assert [message["content"] for message in messages if message["role"] == "assistant"] == kept


async def test_a_reply_stopped_empty_or_in_its_reasoning_is_left_out_of_the_next_request(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 24: servers refuse an empty turn."""
    thinking: Script = {"steps": [OPENING, {"reasoning": WORDS, "repeat": 600, "pace_seconds": 0.05}]}
    async with open_room(site, model_server, thinking) as room:
        for position in (0, 25):
            inference_id = await room.ask(f"Stop at {position}")
            await room.other.wait_for_position(inference_id, position)
            result = await room.other.stop(inference_id, position)
            assert (result["outcome"], result["position"]) == ("stopped", position)
        answered = await room.asking.ask("And now?", model="echo")
        await room.asking.wait_for("end", inference_id=answered["inference_id"], status="completed")
    request = (await asyncio.to_thread(model_server.requests, "echo"))[-1]
    messages = request.body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["user", "user", "user"]


async def test_a_stopped_reply_is_accounted_for(site: Site, model_server: ModelServer) -> None:
    """CASES 13: the model tells its usage only at the end, which a stop does not wait for."""
    async with open_room(site, model_server, TALK) as room:
        inference_id = await room.ask()
        position = await room.other.wait_for_position(inference_id, len(numbered_text(WORDS, 0)) * 10)
        await room.other.stop(inference_id, position)
        query = "SELECT chunk_count, usage, generated_position FROM chat_inference WHERE id = %s"
        ((chunk_count, usage, generated),) = await asyncio.to_thread(rows, site, query, inference_id)
        assert isinstance(usage, dict)
        assert isinstance(chunk_count, int)
        assert isinstance(generated, int)
        assert chunk_count >= 8
        assert usage["is_estimated"] is True
        assert usage["completion_tokens"] > 0
        assert generated >= position
