"""Every id kind × every verb × every role: who is refused learns nothing, changes nothing, and costs the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.urls import URLPattern, URLResolver, get_resolver

from chat.tests.inside import Frame, InsideSite, InsideSocket
from chat.tests.matrix import EVERY_ROLE, VERBS, Ids, Verb, World, everything, furnish, make_world, unknown_ids

CHANGING = re.compile(r'(?<=name="csrfmiddlewaretoken" value=")\w+')
REFUSED = {401, 404}

OUTSIDE = ("outsider", "anonymous", "deactivated")


class Answer(NamedTuple):
    """What comes back, without the ids that were sent, and the queries it took."""

    status: int
    text: str
    queries: list[str]


@pytest.fixture
async def world(inside: InsideSite) -> World:
    return await sync_to_async(make_world)()


def filled(value: Any, ids: Ids) -> Any:
    return json.loads(re.sub(r"{(\w+)}", lambda match: ids[match[1]], json.dumps(value)))


def hidden(text: str, ids: Mapping[str, str]) -> str:
    for value in ids.values():
        text = re.sub(rf"\b{value}\b", "ID", text)
    return CHANGING.sub("CHANGING", text)


async def ask(inside: InsideSite, verb: Verb, ids: Ids, *, person: User | None, secret: str = "") -> Answer:
    """Make the request by the person's session, or by a token alone."""
    client = await inside.client(None if secret else person)
    options: dict[str, Any] = {"headers": {"Authorization": f"Bearer {secret}"}} if secret else {}
    body = filled(verb.body, ids)
    if verb.method != "GET":
        options |= {"data": body, "content_type": "application/json"} if verb.is_api else {"data": body}
    with inside.statements() as statements:
        answer = await getattr(client, verb.method.lower())(filled(verb.path, ids), **options)
        content = await _content(answer)
    where = unquote(answer.headers.get("Location", ""))
    return Answer(answer.status_code, hidden(content + where, ids), statements)


async def _content(answer: Any) -> str:
    if not answer.streaming:
        return str(answer.content.decode())
    return "".join([part.decode() async for part in answer.streaming_content])


def is_refused(answer: Answer) -> bool:
    return answer.status in REFUSED or (answer.status == 302 and "/accounts/login/" in answer.text)


@pytest.mark.parametrize("role", EVERY_ROLE)
@pytest.mark.parametrize("way", ["session", "token"])
async def test_whoever_may_not_is_answered_as_if_it_did_not_exist_and_changes_nothing(
    inside: InsideSite, world: World, role: str, way: str
) -> None:
    before = await sync_to_async(everything)()
    secret = world.secrets.get(role, "none") if way == "token" else ""
    for verb in VERBS:
        if role in verb.roles or (way == "token" and not verb.is_api):
            continue
        real = await ask(inside, verb, world.own, person=world.people[role], secret=secret)
        assert is_refused(real), (str(verb), real)
        if role in OUTSIDE:
            unknown = await ask(inside, verb, unknown_ids(), person=world.people[role], secret=secret)
            assert (str(verb), real) == (str(verb), unknown)
    assert await sync_to_async(everything)() == before


@pytest.mark.parametrize("role", ["owner", "writer", "reader"])
async def test_whoever_may_is_not_refused(inside: InsideSite, world: World, role: str) -> None:
    """Otherwise the refusals would mean nothing."""
    for verb in VERBS:
        if role not in verb.roles:
            continue
        ids = world.own if verb.method == "GET" else await sync_to_async(furnish)(world.people)
        answer = await ask(inside, verb, ids, person=world.people[role])
        assert answer.status < 400 and not is_refused(answer), (str(verb), answer)


async def test_an_id_from_elsewhere_is_answered_like_one_that_does_not_exist(inside: InsideSite, world: World) -> None:
    """For each id of a request in turn, by the owner, who may do everything with the right ones."""
    before = await sync_to_async(everything)()
    for verb, name in [(each, name) for each in VERBS for name in sorted(each.ids)]:
        foreign = await ask(inside, verb, world.own | {name: world.foreign[name]}, person=world.people["owner"])
        unknown = await ask(inside, verb, world.own | {name: unknown_ids()[name]}, person=world.people["owner"])
        assert (str(verb), name, foreign) == (str(verb), name, unknown)
        if verb.method != "GET":
            assert is_refused(foreign), (str(verb), name, foreign)
    assert await sync_to_async(everything)() == before


def test_the_table_has_every_address_that_takes_an_id() -> None:
    known = {re.sub(r"{\w+}", "*", verb.path.split("?")[0]) for verb in VERBS}
    addresses = {re.sub(r"<[^>]+>|{\w+}", "*", route) for route in routes() if re.search("[<{]", route)}
    assert addresses - known == {"/accounts/invited/*/", "/accounts/password/reset/*/*/"}, "what opens by a secret"


def routes(resolver: URLResolver | None = None, prefix: str = "/") -> list[str]:
    """The addresses of pages and API. The admin has permissions of its own, and the last is that of nothing."""
    found = []
    for pattern in (resolver or get_resolver()).url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            found.append(route)
        elif not route.startswith("/admin/"):
            found += routes(pattern, route)
    return [route for route in found if route != "/api/<path:rest>"]


async def frame_answer(inside: InsideSite, socket: InsideSocket, frame_type: str, ids: Ids) -> tuple[Frame, list[str]]:
    with inside.statements() as statements:
        await socket.send({"type": frame_type, **frames_for(ids)[frame_type]})
        answer = await socket.next("error", "stop_result", "start", "end")
    for name in ("client_id", "inference_id", "message_id", "parent_id"):
        answer.pop(name, None)
    return answer, statements


def frames_for(ids: Ids) -> dict[str, Frame]:
    return {
        "send": {"client_id": str(uuid4()), "text": "Hi", "parent_id": ids["message"]},
        "regenerate": {"client_id": str(uuid4()), "message_id": ids["message"]},
        "continue": {"client_id": str(uuid4()), "message_id": ids["message"]},
        "stop": {"inference_id": ids["inference"], "position": 2},
        "follow": {"inference_id": ids["inference"], "position": 0},
    }


@pytest.mark.parametrize(("role", "code"), [("outsider", 4404), ("anonymous", 4401), ("deactivated", 4401)])
async def test_who_may_not_come_in_is_closed_alike_for_a_room_and_for_none(
    inside: InsideSite, world: World, role: str, code: int
) -> None:
    found = []
    await inside.client(world.people[role])
    for room_id in (world.own["room"], unknown_ids()["room"]):
        with inside.statements() as statements:
            async with inside.open(world.people[role], room_id) as socket:
                assert await socket.next("hello", "close") == {"type": "close", "code": code}
        found.append(statements)
    assert found[0] == found[1]


@pytest.mark.parametrize("role", ["owner", "writer", "reader"])
async def test_a_frame_does_what_the_role_allows_and_only_in_its_own_room(
    inside: InsideSite, world: World, role: str
) -> None:
    for frame_type in frames_for(unknown_ids()):
        own = await sync_to_async(furnish)(world.people)
        before = await sync_to_async(everything)()
        async with inside.open(world.people[role], own["room"]) as socket:
            await socket.next("hello")
            foreign = await frame_answer(inside, socket, frame_type, world.foreign)
            assert foreign == await frame_answer(inside, socket, frame_type, unknown_ids())
            assert is_not_found(foreign[0])
            assert await sync_to_async(everything)() == before
            answer, _ = await frame_answer(inside, socket, frame_type, own)
            assert is_not_found(answer) is (role == "reader" and frame_type != "follow")


def is_not_found(answer: Frame) -> bool:
    return "not_found" in (answer.get("code"), answer.get("outcome"))


async def test_a_token_opens_no_socket_and_no_page(inside: InsideSite, world: World) -> None:
    headers = {"Authorization": f"Bearer {world.secrets['owner']}"}
    for verb in VERBS:
        if not verb.is_api and verb.method == "GET":
            answer = await AsyncClient().get(filled(verb.path, world.own), headers=headers)
            assert answer.status_code == 302, verb
