"""Stop on three real workers with a real Redis: from the owner, from another worker, by HTTP."""

from __future__ import annotations

import asyncio

import pytest

from testing.client import RoomClient
from testing.model_server import ModelServer
from testing.workers import Site

pytestmark = pytest.mark.processes


async def saved_text(site: Site, room_id: str, inference_id: str, worker_index: int = 2) -> str:
    """What a fresh socket on another worker is shown of the reply."""
    account = site.account_at(site.workers[worker_index], "alice")
    async with account.open_room(room_id) as late:
        await late.follow(inference_id)
        await late.wait_for("end", inference_id=inference_id)
        return late.text(inference_id)


async def test_a_stop_from_another_worker_ends_the_reply_where_the_screen_stood(
    site: Site, model_server: ModelServer
) -> None:
    room_id = site.account("alice").create_room()
    owner, other = (site.account_at(worker, "alice") for worker in site.workers[:2])
    async with owner.open_room(room_id) as asking, other.open_room(room_id) as stopping:
        await stopping.wait_for("hello")
        inference_id = (await asking.ask("Hello"))["inference_id"]
        position = await stopping.wait_for_position(inference_id, 40)
        result = await stopping.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position)
        shown = stopping.text(inference_id)[:position]
        for socket in (asking, stopping):
            end = await socket.wait_for("end", inference_id=inference_id)
            assert (end["status"], end["position"]) == ("stopped", position)
            assert socket.text(inference_id) == shown
    record = await asyncio.to_thread(model_server.requests, "steady")
    await asyncio.to_thread(model_server.wait_closed, record[-1].id)
    assert await saved_text(site, room_id, inference_id) == shown


async def test_a_stop_by_http_without_a_position_cuts_where_the_owner_stands(site: Site) -> None:
    room_id = site.account("alice").create_room()
    async with site.account_at(site.workers[0], "alice").open_room(room_id) as asking:
        inference_id = (await asking.ask("Hello"))["inference_id"]
        await asking.wait_for_position(inference_id, 20)
        response = await site.account_at(site.workers[1], "alice").astop(inference_id)
        assert response.status_code == 200
        answer = response.json()
        assert answer["outcome"] == "stopped"
        end = await asking.wait_for("end", inference_id=inference_id)
        assert end["position"] == answer["position"] == len(asking.text(inference_id))


async def test_the_second_press_learns_that_it_was_not_the_first(site: Site) -> None:
    room_id = site.account("alice").create_room()
    async with site.account_at(site.workers[0], "alice").open_room(room_id) as asking:
        inference_id = (await asking.ask("Hello"))["inference_id"]
        position = await asking.wait_for_position(inference_id, 20)
        first = await asking.stop(inference_id, position)
        second = await asking.stop(inference_id, 3)
        assert (first["outcome"], second["outcome"]) == ("stopped", "already_stopped")
        assert second["position"] == position


async def test_the_next_prompt_after_a_stop_is_answered_and_carries_the_cut_text(
    site: Site, model_server: ModelServer
) -> None:
    room_id = site.account("alice").create_room()
    async with site.account_at(site.workers[0], "alice").open_room(room_id) as asking:
        inference_id = (await asking.ask("First"))["inference_id"]
        position = await asking.wait_for_position(inference_id, 20)
        await asking.send("stop", inference_id=inference_id, position=position)
        following = await asking.ask("Second", model="echo")
        await asking.wait_for("end", inference_id=following["inference_id"], status="completed")
        assert asking.text(following["inference_id"]) == "Second"
        cut = asking.text(inference_id)[:position]
    request = (await asyncio.to_thread(model_server.requests, "echo"))[-1]
    assert request.body["messages"] == [
        {"role": "user", "content": "First"},
        {"role": "assistant", "content": cut},
        {"role": "user", "content": "Second"},
    ]


async def test_a_stop_before_the_first_token_saves_nothing_and_frees_the_model(
    site: Site, model_server: ModelServer
) -> None:
    room_id = site.account("alice").create_room()
    async with site.account_at(site.workers[0], "alice").open_room(room_id) as asking:
        inference_id = (await asking.ask("Hello", model="silent"))["inference_id"]
        request = await asyncio.to_thread(model_server.wait_request, "silent")
        result = await asking.stop(inference_id, 0)
        assert (result["outcome"], result["position"]) == ("stopped", 0)
        await asyncio.to_thread(model_server.wait_closed, request.id)
        assert (await asking.wait_for("end", inference_id=inference_id))["status"] == "stopped"


async def assert_unknown(socket: RoomClient, inference_id: str) -> None:
    result = await socket.stop(inference_id, 0)
    assert (result["outcome"], result["position"]) == ("not_found", None)


async def test_a_stop_for_somebody_elses_inference_is_answered_like_one_for_none(site: Site) -> None:
    room_id = site.account("alice").create_room()
    charlies_room = site.account("charlie").create_room()
    async with (
        site.account_at(site.workers[0], "alice").open_room(room_id) as alice,
        site.account_at(site.workers[1], "charlie").open_room(charlies_room) as charlie,
    ):
        inference_id = (await alice.ask("Hello"))["inference_id"]
        await alice.wait_for_position(inference_id, 10)
        await assert_unknown(charlie, inference_id)
        await assert_unknown(charlie, "00000000-0000-4000-8000-000000000000")
        response = await site.account_at(site.workers[2], "charlie").astop(inference_id, 0)
        assert (response.status_code, response.json()["outcome"]) == (404, "not_found")
        await alice.wait_for_position(inference_id, 100)
        await alice.stop(inference_id)
