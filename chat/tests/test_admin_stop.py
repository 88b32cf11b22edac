"""An admin stops a live reply that is none of theirs, on three real workers."""

from __future__ import annotations

import asyncio
from typing import cast

import psycopg
import pytest

from testing.client import Account
from testing.workers import Site

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def root(site: Site) -> Account:
    account = site.account("root")
    with psycopg.connect(site.variables["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("UPDATE auth_user SET is_staff = true, is_superuser = true WHERE username = 'root'")
    return account


async def test_the_reply_ends_everywhere_and_the_row_tells_who_did_it(site: Site, root: Account) -> None:
    room_id = await asyncio.to_thread(site.account("alice").create_room)
    async with site.account_at(site.workers[0], "alice").open_room(room_id) as socket:
        inference_id = (await socket.ask("Tell me"))["inference_id"]
        await socket.wait_for_position(inference_id, 30)
        elsewhere = site.account_at(site.workers[1], "root")
        await asyncio.to_thread(elsewhere.post_form, f"/admin/chat/inference/{inference_id}/stop/", {})
        end = await socket.wait_for("end", inference_id=inference_id)
        assert (end["status"], end["position"]) == ("stopped", len(socket.text(inference_id)))
    page = (await asyncio.to_thread(elsewhere.get, f"/admin/chat/inference/{inference_id}/change/")).text
    assert f"Stopped at {end['position']} characters." in page
    assert f"Cut here, at {end['position']} characters." in page
    state = site.account("alice").get(f"/api/v1/inference/{inference_id}").json()
    assert (state["stop"]["by"], state["stop"]["source"]) == ("root", "admin")


async def test_all_that_are_selected_are_stopped_together(site: Site, root: Account) -> None:
    rooms = [await asyncio.to_thread(site.account(name).create_room) for name in ("alice", "bob")]
    async with (
        site.account("alice").open_room(rooms[0]) as first,
        site.account("bob").open_room(rooms[1]) as second,
    ):
        ids = [(await socket.ask("Tell me"))["inference_id"] for socket in (first, second)]
        chosen = {"action": "stop_selected", "index": "0", "_selected_action": ids}
        await asyncio.to_thread(root.post_form, "/admin/chat/inference/", cast(dict[str, str], chosen))
        for socket, inference_id in zip((first, second), ids, strict=True):
            assert (await socket.wait_for("end", inference_id=inference_id))["status"] == "stopped"


async def test_a_member_of_no_room_stops_nothing_by_api_even_as_an_admin(site: Site, root: Account) -> None:
    room_id = await asyncio.to_thread(site.account("alice").create_room)
    async with site.account("alice").open_room(room_id) as socket:
        inference_id = (await socket.ask("Tell me"))["inference_id"]
        answer = await root.astop(inference_id)
        assert (answer.status_code, answer.json()["outcome"]) == (404, "not_found")
        await socket.stop(inference_id)
