"""Texts that no database can hold, sent to the API: replaced as on the socket, or refused, and never a fault."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse

from chat.models import Room
from chat.tests.inside import InsideSite

HALF = rb"\ud83d"
REPLACED = "\N{REPLACEMENT CHARACTER}"


async def send(inside: InsideSite, person: User, path: str, body: bytes, method: str = "POST") -> tuple[int, Any]:
    client = await inside.client(person)
    response = await client.generic(method, f"/api/v1{path}", body, content_type="application/json")
    assert isinstance(response, HttpResponse)
    return response.status_code, response.json()


@pytest.mark.parametrize("sent", [HALF, rb"\udc00", rb"\u0000", b"\xed\xa0\xbd"])
async def test_what_no_row_can_hold_is_replaced_or_refused_wherever_there_is_text(
    inside: InsideSite, alice: User, room: Room, sent: bytes
) -> None:
    for path, body, method in (
        ("/rooms", b'{"title": "a %s"}', "POST"),
        (f"/rooms/{room.pk}", b'{"title": "a %s"}', "PATCH"),
        (f"/rooms/{room.pk}/ask", b'{"text": "a %s"}', "POST"),
        (f"/rooms/{room.pk}/ask", b'{"text": "a", "model": "%s"}', "POST"),
        (f"/rooms/{room.pk}/ask", b'{"text": "a", "client_id": "%s"}', "POST"),
        (f"/rooms/{room.pk}/ask", b'{"%s": "a"}', "POST"),
        (f"/rooms/{room.pk}/members", b'{"username": "%s", "role": "reader"}', "POST"),
        ("/inference/stop", b'{"inference_id": "%s"}', "POST"),
        ("/inference/stop", b'"%s"', "POST"),
    ):
        status, answer = await send(inside, alice, path, body % sent, method)
        assert status in {200, 201, 400, 404}, (path, body, answer)


async def test_half_a_pair_in_a_prompt_is_replaced_as_on_the_socket(
    inside: InsideSite, alice: User, room: Room
) -> None:
    status, answer = await send(inside, alice, f"/rooms/{room.pk}/ask", b'{"text": "a %s b"}' % HALF)
    assert (status, answer["prompt"]["text"]) == (200, f"a {REPLACED} b")


async def test_a_whole_pair_is_one_character(inside: InsideSite, alice: User) -> None:
    status, answer = await send(inside, alice, "/rooms", rb'{"title": "\ud83d\ude00"}')
    assert (status, answer["title"]) == (201, "\N{GRINNING FACE}")
