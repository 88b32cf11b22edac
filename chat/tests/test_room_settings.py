"""Setting up a room from its page: who may change what, and how the other tabs hear of it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.test import AsyncClient

from chat.models import Room
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
