"""What a person's role lets them do over the socket and the pages, and what happens when it changes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import psycopg
import pytest

from testing.client import RoomClient
from testing.workers import Site

pytestmark = pytest.mark.processes

CLOSED_SECONDS = 10.0


def change(site: Site, query: str, *values: object) -> None:
    with psycopg.connect(site.variables["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(query, values)


def admit(site: Site, room_id: str, username: str, role: str) -> None:
    """What the owner does in the admin."""
    site.account(username)
    change(
        site,
        "INSERT INTO chat_membership (room_id, user_id, role) SELECT %s, id, %s FROM auth_user WHERE username = %s"
        " ON CONFLICT (room_id, user_id) DO UPDATE SET role = excluded.role",
        *(room_id, role, username),
    )


@asynccontextmanager
async def live_room(site: Site) -> AsyncIterator[tuple[str, str, RoomClient]]:
    """Alice's room with a live reply: its id, the inference's, and her socket. She stops it in the end."""
    room_id = site.account("alice").create_room()
    async with site.account_at(site.workers[0], "alice").open_room(room_id) as alice:
        inference_id = (await alice.ask("Hello"))["inference_id"]
        await alice.wait_for_position(inference_id, 10)
        yield room_id, inference_id, alice
        await alice.stop(inference_id)


async def test_a_reader_may_follow_but_neither_ask_nor_stop(site: Site) -> None:
    async with live_room(site) as (room_id, inference_id, alice):
        admit(site, room_id, "rita", "reader")
        async with site.account_at(site.workers[1], "rita").open_room(room_id) as rita:
            await rita.follow(inference_id)
            await rita.wait_for_position(inference_id, 20)
            assert (await rita.stop(inference_id, 5))["outcome"] == "not_found"
            assert (await site.account_at(site.workers[2], "rita").astop(inference_id)).status_code == 404
            for frame_type, more in (("send", {"text": "Hi"}), ("regenerate", {"message_id": str(uuid4())})):
                client_id = str(uuid4())
                await rita.send(frame_type, client_id=client_id, **more)
                assert (await rita.wait_for("error", client_id=client_id))["code"] == "not_found"
            await rita.wait_for_position(inference_id, alice.position(inference_id) + 5)
        assert alice.transcript.of_type("end") == []


async def test_a_writer_may_ask_and_stop_what_somebody_else_has_asked(site: Site) -> None:
    async with live_room(site) as (room_id, inference_id, alice):
        admit(site, room_id, "bob", "writer")
        async with site.account_at(site.workers[1], "bob").open_room(room_id) as bob:
            await bob.follow(inference_id)
            position = await bob.wait_for_position(inference_id, 20)
            assert (await bob.stop(inference_id, position))["outcome"] == "stopped"
            start = await bob.ask("And I?", model="fast")
            await alice.wait_for("end", inference_id=start["inference_id"], status="completed")
            told = [frame["message"]["author"] for frame in alice.transcript.of_type("message")]
            assert told == ["alice", "bob"]


async def test_only_the_owner_may_delete_a_room(site: Site) -> None:
    room_id = site.account("alice").create_room()
    admit(site, room_id, "bob", "writer")
    bob = site.account("bob")
    form = {"csrfmiddlewaretoken": bob.http.cookies["csrftoken"]}
    assert bob.http.post(f"/rooms/{room_id}/delete/", data=form).status_code == 404
    assert bob.get(f"/rooms/{room_id}/").status_code == 200
    site.account("alice").post_form(f"/rooms/{room_id}/delete/", {})
    assert bob.get(f"/rooms/{room_id}/").status_code == 404


async def test_a_socket_is_closed_when_its_membership_ends_and_the_reply_goes_on(site: Site) -> None:
    async with live_room(site) as (room_id, inference_id, alice):
        admit(site, room_id, "bob", "writer")
        bob = await site.account_at(site.workers[1], "bob").open_room(room_id).connect()
        await bob.wait_for("hello")
        change(site, "DELETE FROM chat_membership WHERE room_id = %s AND role = 'writer'", room_id)
        assert (await bob.stop(inference_id, 0))["outcome"] == "not_found"
        assert await bob.wait_closed(timeout_seconds=CLOSED_SECONDS) == 4404
        await bob.close()
        await alice.wait_for_position(inference_id, alice.position(inference_id) + 5)


async def test_a_socket_is_closed_when_its_session_or_its_account_ends(site: Site) -> None:
    room_id = site.account("alice").create_room()
    for username in ("logout", "password", "deactivated"):
        admit(site, room_id, username, "writer")
    sockets = {}
    for number, username in enumerate(("logout", "password", "deactivated")):
        sockets[username] = await site.account_at(site.workers[number], username).open_room(room_id).connect()
        await sockets[username].wait_for("hello")
    await asyncio.to_thread(site.account("logout").log_out)
    change(site, "UPDATE auth_user SET password = 'x' WHERE username = 'password'")
    change(site, "UPDATE auth_user SET is_active = false WHERE username = 'deactivated'")
    codes = await asyncio.gather(*(s.wait_closed(timeout_seconds=CLOSED_SECONDS) for s in sockets.values()))
    assert codes == [4401, 4401, 4401]
    await asyncio.gather(*(socket.close() for socket in sockets.values()))


async def test_a_room_that_is_deleted_while_it_streams_closes_its_sockets_and_nothing_comes_back(site: Site) -> None:
    alice = site.account("alice")
    room_id = alice.create_room()
    socket = await site.account_at(site.workers[0], "alice").open_room(room_id).connect()
    inference_id = (await socket.ask("Hello"))["inference_id"]
    await socket.wait_for_position(inference_id, 20)
    await asyncio.to_thread(alice.post_form, f"/rooms/{room_id}/delete/", {})
    assert await socket.wait_closed(timeout_seconds=CLOSED_SECONDS) == 4404
    await socket.close()
    assert alice.get(f"/rooms/{room_id}/").status_code == 404
    with psycopg.connect(site.variables["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT 1 FROM chat_inference WHERE id = %s", [inference_id]).fetchone() is None


async def test_a_role_that_grows_counts_at_once(site: Site) -> None:
    room_id = site.account("alice").create_room()
    admit(site, room_id, "rita", "reader")
    async with site.account_at(site.workers[1], "rita").open_room(room_id) as rita:
        await rita.wait_for("hello")
        admit(site, room_id, "rita", "writer")
        start = await rita.ask("May I?", model="fast")
        await rita.wait_for("end", inference_id=start["inference_id"], status="completed")
