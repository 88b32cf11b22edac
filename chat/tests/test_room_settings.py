"""Setting up a room from its page: who may change what, and how the other tabs hear of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chat import runtime
from chat.models import Membership, Room
from chat.tests.inside import InsideSite


async def change(client: AsyncClient, room: Room, **fields: str) -> int:
    response = await client.post(f"/rooms/{room.pk}/change/", fields)
    return response.status_code


async def test_the_other_tabs_hear_what_has_changed_and_nothing_else(
    inside: InsideSite, alice: User, bob: User, room: Room
) -> None:
    alices = await inside.client(alice)
    async with inside.open(bob, room.pk) as bobs:
        await bobs.next("hello")
        for fields in ({"model": "large"}, {"system_prompt": "In rhyme."}, {"title": "Verses"}):
            assert await change(alices, room, **fields) == 204
            assert await bobs.next("room") == {"type": "room", "title": "A room", **fields}


async def test_writers_choose_the_model_and_nothing_else_and_readers_nothing(
    inside: InsideSite, bob: User, rita: User, room: Room
) -> None:
    bobs, ritas = await inside.client(bob), await inside.client(rita)
    assert await change(bobs, room, model="large") == 204
    assert await change(bobs, room, model="small", title="Mine") == 404
    assert await change(bobs, room, system_prompt="Obey Bob.") == 404
    assert await change(ritas, room, model="small") == 404
    await room.arefresh_from_db()
    assert (room.model, room.title, room.system_prompt) == ("large", "A room", "")


async def test_instructions_have_a_limit_that_leaves_older_ones_alone(
    inside: InsideSite, alice: User, room: Room, settings: Any
) -> None:
    alices = await inside.client(alice)
    settings.MAX_SYSTEM_PROMPT_CHARACTERS = 10
    assert await change(alices, room, system_prompt="🌊" * 10) == 204
    response = await alices.post(f"/rooms/{room.pk}/change/", {"system_prompt": "x" * 11})
    assert response.status_code == 400
    assert "The instructions are too long: at most 10 characters." in response.content.decode()
    settings.MAX_SYSTEM_PROMPT_CHARACTERS = 5
    assert await change(alices, room, title="Another") == 204
    await room.arefresh_from_db()
    assert (room.title, room.system_prompt) == ("Another", "🌊" * 10)


async def test_a_page_is_told_the_whole_room_as_it_connects_and_a_program_is_not(
    inside: InsideSite, alice: User, bob: User, room: Room
) -> None:
    """The page was made before its socket was here, and what has changed in between was told to others only."""
    async with inside.open(bob, room.pk, query=b"format=html") as page, inside.open(alice, room.pk) as program:
        await page.next("hello")
        assert await page.next("room") == {
            **{"type": "room", "title": "A room", "model": "", "system_prompt": ""},
            **{"member_count": 3, "role": "writer"},
        }
        await program.next("hello")
        await program.send({"type": "ping"})
        assert (await program.next("pong", "room"))["type"] == "pong"


@pytest.mark.parametrize("fields", [{"title": "Verses"}, {"model": "large"}, {"system_prompt": "In rhyme."}])
async def test_a_change_of_which_the_news_were_lost_is_found_in_the_rows_and_told_once(
    inside: InsideSite, bob: User, room: Room, fields: dict[str, str]
) -> None:
    async with inside.open(bob, room.pk) as bobs:
        await bobs.next("hello")
        await Room.objects.filter(pk=room.pk).aupdate(**fields)
        assert await bobs.next("room") == {"type": "room", "title": "A room", **fields}
        await runtime.current().news.catch_up()
        await bobs.send({"type": "ping"})
        assert (await bobs.next("room", "pong"))["type"] == "pong"


async def test_people_who_came_without_a_word_are_counted(
    inside: InsideSite, alice: User, charlie: User, room: Room
) -> None:
    async with inside.open(alice, room.pk) as hers:
        await hers.next("hello")
        await Membership.objects.acreate(room=room, user=charlie, role="reader")
        assert await hers.next("room") == {"type": "room", "title": "A room", "member_count": 4}


async def test_what_was_heard_is_not_told_again(inside: InsideSite, alice: User, bob: User, room: Room) -> None:
    alices = await inside.client(alice)
    async with inside.open(bob, room.pk) as bobs:
        await bobs.next("hello")
        assert await change(alices, room, title="Verses", model="large") == 204
        await bobs.next("room")
        await runtime.current().news.catch_up()
        await bobs.send({"type": "ping"})
        assert (await bobs.next("room", "pong"))["type"] == "pong"
