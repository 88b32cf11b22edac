"""A reply seen from another worker than its owner's: second tabs, reloads, lost links; to the character, always."""

from __future__ import annotations

import asyncio

import pytest

from testing.client import Account, RoomClient
from testing.model_server import ModelServer
from testing.workers import Site

pytestmark = pytest.mark.processes

WHOLE = len("".join(f"{number} " for number in range(40)))


def alice_at(site: Site, number: int) -> Account:
    return site.account_at(site.workers[number], "alice")


def new_room(site: Site) -> str:
    return site.account("alice").create_room()


async def ends_alike(*sockets: RoomClient, inference_id: str) -> str:
    """All of them show the same text at the end, which is returned."""
    ends = [await socket.wait_for("end", inference_id=inference_id, timeout_seconds=15) for socket in sockets]
    assert len({(end["status"], end["position"]) for end in ends}) == 1
    texts = {socket.text(inference_id) for socket in sockets}
    assert len(texts) == 1
    text = texts.pop()
    assert len(text) == ends[0]["position"]
    return text


async def test_a_reply_comes_by_itself_to_tabs_on_every_worker(site: Site) -> None:
    """From its first character, however fast the first tokens are."""
    room_id = new_room(site)
    async with (
        alice_at(site, 0).open_room(room_id) as owner,
        alice_at(site, 1).open_room(room_id) as second,
        alice_at(site, 2).open_room(room_id) as third,
    ):
        await second.wait_for("hello")
        await third.wait_for("hello")
        for model in ("fast", "reasoning", "echo", "fast"):
            inference_id = (await owner.ask("Hello there", model=model))["inference_id"]
            await ends_alike(owner, second, third, inference_id=inference_id)
        messages = [
            [frame["message"]["id"] for frame in s.transcript.of_type("message")] for s in (owner, second, third)
        ]
        assert messages[0] == messages[1] == messages[2]
        assert len(messages[0]) == 4


async def test_a_reload_in_mid_reply_shows_the_whole_text_and_goes_on(site: Site) -> None:
    room_id = new_room(site)
    async with alice_at(site, 0).open_room(room_id) as owner:
        inference_id = (await owner.ask("Hello"))["inference_id"]
        await owner.wait_for_position(inference_id, 30)
        for number in (0, 1, 2):
            async with alice_at(site, number).open_room(room_id) as late:
                live = (await late.wait_for("hello"))["live"]
                assert [entry["inference_id"] for entry in live] == [inference_id]
                await late.follow(inference_id)
                await late.wait_for_position(inference_id, owner.position(inference_id) + 10)
                assert owner.text(inference_id).startswith(late.text(inference_id)[:30])
        async with alice_at(site, 1).open_room(room_id) as last:
            await last.follow(inference_id)
            position = await last.wait_for_position(inference_id, owner.position(inference_id) + 5)
            await last.stop(inference_id, position)
            await ends_alike(owner, last, inference_id=inference_id)


async def test_twenty_lost_links_lose_and_double_nothing(site: Site) -> None:
    room_id = new_room(site)
    async with alice_at(site, 0).open_room(room_id) as owner:
        inference_id = (await owner.ask("Hello", model="long"))["inference_id"]
        shown, position = "", 0
        for number in range(20):
            socket = await alice_at(site, number % 3).open_room(room_id).connect()
            await socket.follow(inference_id, position)
            await socket.wait_for_position(inference_id, position + 5)
            await socket.abort()
            await socket.close()
            shown += socket.text(inference_id)
            position = socket.position(inference_id)
            assert len(shown) == position
        async with alice_at(site, 1).open_room(room_id) as last:
            await last.follow(inference_id, position)
            await last.stop(inference_id)
            await last.wait_for("end", inference_id=inference_id)
            await owner.wait_for("end", inference_id=inference_id)
            whole = (shown + last.text(inference_id))[: owner.position(inference_id)]
            assert whole == owner.text(inference_id)


async def test_following_just_as_it_ends_gets_the_tail_and_the_end(site: Site, model_server: ModelServer) -> None:
    """Twenty times, at twenty moments around the end."""
    room_id = new_room(site)
    model_server.script(
        "short", {"steps": [{"text": "{n} ", "repeat": 40, "pace_seconds": 0.005}, {"finish": "stop"}, {"done": True}]}
    )
    async with alice_at(site, 0).open_room(room_id) as owner:
        for number in range(20):
            inference_id = (await owner.ask("Hello", model="short"))["inference_id"]
            await owner.wait_for_position(inference_id, WHOLE - number)
            async with alice_at(site, 1).open_room(room_id) as late:
                await late.follow(inference_id, 5)
                # An `end` may have come to the room before this socket asked to follow.
                await late.wait_for_position(inference_id, WHOLE)
                await owner.wait_for("end", inference_id=inference_id)
                assert late.text(inference_id) == owner.text(inference_id)[5:]


async def test_following_from_another_worker_right_at_the_start_misses_no_token(site: Site) -> None:
    room_id = new_room(site)
    async with alice_at(site, 0).open_room(room_id) as owner, alice_at(site, 1).open_room(room_id) as late:
        await late.wait_for("hello")
        for _ in range(10):
            inference_id = (await owner.ask("Hello", model="long"))["inference_id"]
            await late.follow(inference_id, 0)
            position = await late.wait_for_position(inference_id, 20)
            await late.stop(inference_id, position)
            await ends_alike(owner, late, inference_id=inference_id)


async def test_what_ended_long_ago_is_followed_on_any_worker_from_any_position(site: Site) -> None:
    room_id = new_room(site)
    async with alice_at(site, 0).open_room(room_id) as owner:
        inference_id = (await owner.ask("Hello", model="fast"))["inference_id"]
        await owner.wait_for("end", inference_id=inference_id)
        whole = owner.text(inference_id)
    for position in (0, 11, len(whole), len(whole) + 9):
        async with alice_at(site, 1).open_room(room_id) as late:
            await late.follow(inference_id, position)
            assert (await late.wait_for("end", inference_id=inference_id))["position"] == len(whole)
            assert late.text(inference_id) == whole[position:]


async def test_a_slow_tab_gets_larger_deltas_and_no_hole_and_slows_nobody(site: Site) -> None:
    room_id = new_room(site)
    async with alice_at(site, 0).open_room(room_id) as fast, alice_at(site, 1).open_room(room_id) as slow:
        await slow.wait_for("hello")
        inference_id = (await fast.ask("Hello", model="long"))["inference_id"]
        slow.pause_reading()
        await fast.wait_for_position(inference_id, 2000)
        slow.resume_reading()
        position = await slow.wait_for_position(inference_id, 2000)
        await slow.stop(inference_id, position)
        await ends_alike(fast, slow, inference_id=inference_id)


async def test_a_stop_on_one_worker_cuts_the_screens_on_all(site: Site) -> None:
    """Each of them may have shown more already; the position of the stop counts."""
    room_id = new_room(site)
    sockets = [alice_at(site, number).open_room(room_id) for number in (0, 1, 2)]
    for socket in sockets:
        await socket.connect()
        await socket.wait_for("hello")
    inference_id = (await sockets[0].ask("Hello"))["inference_id"]
    for socket in sockets:
        await socket.wait_for_position(inference_id, 60)
    result = await sockets[2].stop(inference_id, 33)
    assert (result["outcome"], result["position"]) == ("stopped", 33)
    assert len(await ends_alike(*sockets, inference_id=inference_id)) == 33
    await asyncio.gather(*(socket.close() for socket in sockets))


async def test_the_model_server_is_asked_once_however_many_follow(site: Site, model_server: ModelServer) -> None:
    room_id = new_room(site)
    model_server.script(
        "followed", {"steps": [{"text": "{n} ", "repeat": 50, "pace_seconds": 0.05}, {"finish": "stop"}]}
    )
    async with (
        alice_at(site, 0).open_room(room_id) as owner,
        alice_at(site, 1).open_room(room_id) as second,
        alice_at(site, 1).open_room(room_id) as third,
    ):
        await second.wait_for("hello")
        await third.wait_for("hello")
        inference_id = (await owner.ask("Hello", model="followed"))["inference_id"]
        await ends_alike(owner, second, third, inference_id=inference_id)
    assert len(await asyncio.to_thread(model_server.requests, "followed")) == 1
