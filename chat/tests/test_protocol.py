"""The wire protocol frame by frame, on one real worker with SQLite and without Redis."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
import websockets

from testing.client import RoomClient
from testing.model_server import ModelServer
from testing.workers import Site

pytestmark = pytest.mark.processes

NOWHERE = "00000000-0000-4000-8000-000000000000"


def alices_room(site: Site) -> RoomClient:
    alice = site.account("alice")
    return alice.open_room(alice.create_room())


def again(site: Site, socket: RoomClient, username: str = "alice") -> RoomClient:
    """Another socket in the same room."""
    return site.account(username).open_room(room_of(socket))


def room_of(socket: RoomClient) -> str:
    return socket.url.rstrip("/").rsplit("/", 1)[1]


async def ask_and_wait(socket: RoomClient, text: str = "Hello", model: str = "fast") -> str:
    """A completed reply."""
    inference_id: str = (await socket.ask(text, model=model))["inference_id"]
    await socket.wait_for("end", inference_id=inference_id, status="completed")
    return inference_id


# hello


async def test_a_new_room_says_hello_with_nothing(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        hello = await socket.wait_for("hello")
    assert hello == {
        **{"type": "hello", "protocol": 1, "room_id": room_of(socket)},
        **{"last_message_id": None, "live": []},
    }


async def test_hello_names_the_newest_message_and_what_is_live(lone_site: Site) -> None:
    async with alices_room(lone_site) as asking:
        start = await asking.ask("Hello")
        await asking.wait_for_position(start["inference_id"], 10)
        async with again(lone_site, asking) as late:
            hello = await late.wait_for("hello")
        (live,) = hello["live"]
        assert hello["last_message_id"] == start["message_id"]
        assert (live["inference_id"], live["message_id"]) == (start["inference_id"], start["message_id"])
        assert 10 <= live["position"] <= asking.position(start["inference_id"]) + 50
        await asking.stop(start["inference_id"])


# send


async def test_a_prompt_is_told_started_streamed_and_ended(lone_site: Site) -> None:
    client_id = str(uuid4())
    async with alices_room(lone_site) as socket:
        await socket.send("send", client_id=client_id, text="Hello", model="fast")
        message = (await socket.wait_for("message"))["message"]
        start = await socket.wait_for("start", client_id=client_id)
        end = await socket.wait_for("end", inference_id=start["inference_id"])
    assert message == {
        **{"id": message["id"], "role": "user", "text": "Hello", "author": "alice", "parent_id": None},
        **{"client_id": client_id, "created_at": message["created_at"], "status": "sent"},
    }
    assert message["created_at"].endswith("Z")
    assert (start["parent_id"], start["model"]) == (message["id"], "fast")
    assert (end["status"], end["finish_reason"], end["error"]) == ("completed", "stop", None)
    assert end["position"] == len(socket.text(start["inference_id"])) > 500
    order = [frame["type"] for frame in socket.frames if frame["type"] in {"message", "start", "delta", "end"}]
    assert order[:3] == ["message", "start", "delta"]
    assert order[-1] == "end"


async def test_a_room_without_a_title_gets_that_of_its_first_prompt(lone_site: Site) -> None:
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room(title="")) as socket:
        await socket.ask("What is a river?", model="fast")
        assert (await socket.wait_for("room"))["title"] == "What is a river?"


async def test_reasoning_and_content_come_as_parts(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        inference_id = await ask_and_wait(socket, model="reasoning")
    reasoning, content = (socket.text(inference_id, part) for part in ("reasoning", "content"))
    assert reasoning.startswith("0:") and content.startswith("0:")
    assert socket.text(inference_id) == reasoning + content


async def test_a_resent_client_id_gets_its_message_and_start_again(lone_site: Site, model_server: ModelServer) -> None:
    fields = {"client_id": str(uuid4()), "text": "Hello", "model": "stall"}
    async with alices_room(lone_site) as socket:
        await socket.send("send", **fields)
        start = await socket.wait_for("start", client_id=fields["client_id"])
        await socket.wait_for("message")
        await socket.send("send", **fields)
        assert (await socket.wait_for("message"))["message"]["id"] == start["parent_id"]
        assert await socket.wait_for("start", client_id=fields["client_id"]) == start
        async with again(lone_site, socket) as second:
            await second.wait_for("hello")
            await second.send("send", **fields)
            assert await second.wait_for("start", client_id=fields["client_id"]) == start
            await second.wait_for_position(start["inference_id"], 10)
        await socket.stop(start["inference_id"])
        await socket.send("send", **fields)
        assert (await socket.wait_for("message"))["message"]["id"] == start["parent_id"]
        assert len(socket.transcript.of_type("start")) == 2


async def test_a_room_with_a_live_reply_is_busy(lone_site: Site) -> None:
    client_id = str(uuid4())
    async with alices_room(lone_site) as socket:
        inference_id = (await socket.ask("Hello"))["inference_id"]
        await socket.send("send", client_id=client_id, text="Me too")
        assert (await socket.wait_for("error", client_id=client_id))["code"] == "busy"
        await socket.stop(inference_id)


async def test_a_send_right_behind_a_stop_is_answered_twenty_times(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        inference_id = (await socket.ask("Hello"))["inference_id"]
        for number in range(20):
            await socket.wait_for_position(inference_id, 1)
            await socket.send("stop", inference_id=inference_id, position=1)
            following = (await socket.ask(f"Prompt {number}"))["inference_id"]
            end = await socket.wait_for("end", inference_id=inference_id)
            assert (end["status"], end["position"]) == ("stopped", 1)
            inference_id = following
        await socket.stop(inference_id)
    assert socket.transcript.of_type("error") == []


async def test_a_stop_in_the_same_breath_as_the_start_shows_no_token(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        for _ in range(10):
            inference_id = (await socket.ask("Hello"))["inference_id"]
            result = await socket.stop(inference_id, 0)
            assert (result["outcome"], result["position"]) == ("stopped", 0)
            assert (await socket.wait_for("end", inference_id=inference_id))["position"] == 0
            assert socket.text(inference_id) == ""


@pytest.mark.parametrize(("parent", "code"), [(NOWHERE, "not_found"), (None, None)])
async def test_a_parent_is_of_the_room_or_null(lone_site: Site, parent: str | None, code: str | None) -> None:
    client_id = str(uuid4())
    async with alices_room(lone_site) as socket:
        await ask_and_wait(socket)
        await socket.send("send", client_id=client_id, text="Anew", model="fast", parent_id=parent)
        if code:
            assert (await socket.wait_for("error", client_id=client_id))["code"] == code
        else:
            start = await socket.wait_for("start", client_id=client_id)
            message = [frame["message"] for frame in socket.transcript.of_type("message")][-1]
            assert (message["parent_id"], start["parent_id"]) == (None, message["id"])


# regenerate and continue


async def test_regenerate_makes_a_sibling(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        first = await socket.ask("Hello", model="fast")
        await socket.wait_for("end", inference_id=first["inference_id"])
        client_id = str(uuid4())
        await socket.send("regenerate", client_id=client_id, message_id=first["message_id"])
        start = await socket.wait_for("start", client_id=client_id)
        await socket.stop(start["inference_id"])
    assert start["parent_id"] == first["parent_id"]
    assert start["message_id"] != first["message_id"]
    assert len(socket.transcript.of_type("message")) == 1


async def test_a_regenerate_that_is_sent_again_gets_its_start_or_else_its_reply(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        first = await socket.ask("Hello", model="fast")
        await socket.wait_for("end", inference_id=first["inference_id"])
        fields = {"client_id": str(uuid4()), "message_id": first["message_id"]}
        await socket.send("regenerate", **fields)
        start = await socket.wait_for("start", client_id=fields["client_id"])
        await socket.send("regenerate", **fields)
        assert await socket.wait_for("start", client_id=fields["client_id"]) == start
        await socket.stop(start["inference_id"], 0)
        await socket.wait_for("message")
        await socket.send("regenerate", **fields)
        message = (await socket.wait_for("message"))["message"]
    assert (message["id"], message["role"], message["status"]) == (start["message_id"], "assistant", "stopped")
    assert (message["client_id"], message["author"]) == (fields["client_id"], "alice")


async def test_continue_begins_with_the_kept_text_and_no_stop_cuts_into_it(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        first = await socket.ask("Hello")
        kept_length = await socket.wait_for_position(first["inference_id"], 20)
        await socket.stop(first["inference_id"], kept_length)
        await socket.wait_for("end", inference_id=first["inference_id"])
        kept = socket.text(first["inference_id"])
        client_id = str(uuid4())
        await socket.send("continue", client_id=client_id, message_id=first["message_id"])
        inference_id = (await socket.wait_for("start", client_id=client_id))["inference_id"]
        delta = await socket.wait_for("delta", inference_id=inference_id)
        assert (delta["from"], delta["text"][:kept_length]) == (0, kept)
        await socket.wait_for_position(inference_id, kept_length + 10)
        result = await socket.stop(inference_id, 3)
        assert (result["outcome"], result["position"]) == ("stopped", kept_length)
        await socket.wait_for("end", inference_id=inference_id)
        assert socket.text(inference_id) == kept


async def test_a_prompt_is_no_reply_that_could_be_asked_again(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        start = await socket.ask("Hello", model="fast")
        await socket.wait_for("end", inference_id=start["inference_id"])
        for frame_type in ("regenerate", "continue"):
            client_id = str(uuid4())
            await socket.send(frame_type, client_id=client_id, message_id=start["parent_id"])
            assert (await socket.wait_for("error", client_id=client_id))["code"] == "not_found"


# follow


async def test_follow_from_the_start_the_middle_and_beyond_the_end_of_what_has_ended(lone_site: Site) -> None:
    async with alices_room(lone_site) as asking:
        inference_id = await ask_and_wait(asking)
        whole = asking.text(inference_id)
    for position in (0, 7, len(whole) - 1, len(whole), len(whole) + 5, 10**12):
        async with again(lone_site, asking) as late:
            await late.follow(inference_id, position)
            end = await late.wait_for("end", inference_id=inference_id)
            assert end["position"] == len(whole)
            assert late.text(inference_id) == whole[position:]


async def test_following_twice_sends_nothing_twice(lone_site: Site) -> None:
    async with alices_room(lone_site) as asking:
        inference_id = (await asking.ask("Hello"))["inference_id"]
        async with again(lone_site, asking) as late:
            for position in (0, 0, 5):
                await late.follow(inference_id, position)
            await late.wait_for_position(inference_id, 40)
            await asking.stop(inference_id, 40)
            await late.wait_for("end", inference_id=inference_id)
            assert late.text(inference_id) == asking.text(inference_id)


async def test_a_live_reply_is_followed_from_where_the_link_broke(lone_site: Site) -> None:
    async with alices_room(lone_site) as asking:
        inference_id = (await asking.ask("Hello"))["inference_id"]
        position = await asking.wait_for_position(inference_id, 10)
        async with again(lone_site, asking) as late:
            await late.follow(inference_id, position)
            await late.wait_for_position(inference_id, position + 20)
            await asking.stop(inference_id, position + 20)
            await late.wait_for("end", inference_id=inference_id)
            await asking.wait_for("end", inference_id=inference_id)
            assert late.text(inference_id) == asking.text(inference_id)[position:]


async def test_what_is_not_in_the_room_can_not_be_followed(lone_site: Site) -> None:
    async with alices_room(lone_site) as elsewhere, alices_room(lone_site) as socket:
        foreign = await ask_and_wait(elsewhere)
        for inference_id in (foreign, NOWHERE):
            await socket.follow(inference_id)
            assert (await socket.wait_for("error", inference_id=inference_id))["code"] == "not_found"


# ping


async def test_a_ping_is_answered_with_its_number_if_it_had_one(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        await socket.wait_for("hello")
        await socket.send("ping", n=7)
        assert await socket.wait_for("pong") == {"type": "pong", "n": 7}
        await socket.send("ping")
        assert await socket.wait_for("pong") == {"type": "pong"}


async def test_a_client_that_answers_no_ping_is_held_back_and_then_gets_the_rest_merged(
    lone_site: Site, model_server: ModelServer
) -> None:
    size, chunks = 8000, 60
    model_server.script(
        "torrent",
        {"steps": [{"text": "x" * size, "repeat": chunks}, {"finish": "stop"}, {"done": True}]},
    )
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room(), answers_pings=False) as slow, again(lone_site, slow) as fast:
        await fast.wait_for("hello")
        inference_id = (await slow.ask("Hello", model="torrent"))["inference_id"]
        await fast.wait_for("end", inference_id=inference_id)
        await slow.wait_for_position(inference_id, 200_000)
        result = await slow.stop(inference_id, size * chunks)  # overtakes what waits
        assert result["outcome"] == "already_finished"
        held_back = slow.position(inference_id)
        assert held_back < 300_000
        pings = slow.transcript.of_type("ping")
        assert len(pings) >= 3
        slow.answers_pings = True
        await slow.send("pong", n=pings[-1]["n"])
        await slow.wait_for("end", inference_id=inference_id)
        assert slow.text(inference_id) == fast.text(inference_id) == "x" * size * chunks


# the socket itself


async def test_closing_the_socket_does_not_end_the_reply(lone_site: Site) -> None:
    async with alices_room(lone_site) as asking:
        inference_id = (await asking.ask("Hello"))["inference_id"]
        position = await asking.wait_for_position(inference_id, 10)
        await asking.abort()
    async with again(lone_site, asking) as late:
        await late.follow(inference_id, position)
        await late.wait_for_position(inference_id, position + 20)
        await late.stop(inference_id)


async def test_a_stop_counts_when_the_socket_closes_behind_it(lone_site: Site) -> None:
    async with alices_room(lone_site) as asking:
        inference_id = (await asking.ask("Hello"))["inference_id"]
        await asking.wait_for_position(inference_id, 10)
        await asking.send("stop", inference_id=inference_id, position=5)
    async with again(lone_site, asking) as late:
        await late.follow(inference_id)
        end = await late.wait_for("end", inference_id=inference_id)
        assert (end["status"], end["position"]) == ("stopped", 5)


async def test_a_prompt_counts_when_the_socket_closes_behind_it(lone_site: Site) -> None:
    async with alices_room(lone_site) as asking:
        await asking.wait_for("hello")
        await asking.send("send", client_id=str(uuid4()), text="Hello")
    async with asyncio.timeout(10):
        while True:
            async with again(lone_site, asking) as late:
                hello = await late.wait_for("hello")
                if hello["live"]:
                    break
    async with again(lone_site, asking) as late:
        await late.stop(hello["live"][0]["inference_id"])


async def test_nobody_is_told_to_sign_in_after_the_handshake(lone_site: Site) -> None:
    nobody = RoomClient(lone_site.url, NOWHERE, cookies={})
    await nobody.connect()
    assert await nobody.wait_closed() == 4401
    await nobody.close()


@pytest.mark.parametrize("room_id", [NOWHERE, "no-uuid", "%00", "1"])
async def test_a_room_that_is_none_is_4404(lone_site: Site, room_id: str) -> None:
    socket = await lone_site.account("alice").open_room(room_id).connect()
    assert await socket.wait_closed() == 4404
    await socket.close()


async def test_a_room_of_somebody_else_is_4404(lone_site: Site) -> None:
    async with alices_room(lone_site) as socket:
        charlies = await again(lone_site, socket, "charlie").connect()
        assert await charlies.wait_closed() == 4404
        await charlies.close()


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil"])
async def test_a_foreign_origin_gets_403_at_the_handshake(lone_site: Site, origin: str) -> None:
    alice = lone_site.account("alice")
    with pytest.raises(websockets.InvalidStatus) as caught:
        await alice.open_room(alice.create_room(), origin=origin).connect()
    assert caught.value.response.status_code == 403


@pytest.mark.parametrize("address", ["/ws/", "/ws/nowhere/", "/ws/rooms/x/y/", "/nowhere%00/"])
async def test_a_socket_at_no_address_of_ours_is_refused_without_a_fault(lone_site: Site, address: str) -> None:
    with pytest.raises(websockets.InvalidStatus) as caught:
        await websockets.connect(lone_site.url.replace("http", "ws", 1) + address)
    assert caught.value.response.status_code == 403
