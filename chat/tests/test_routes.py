"""Every address of the site, the admin and the API: who gets in, what forgery does, where it leads, what it costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.urls import URLPattern, URLResolver, get_resolver

from chat.models import ApiToken, Membership, Room
from chat.tests.inside import InsideSite
from chat.tests.people import begin, complete

PUBLIC = {
    "/": 302,
    "/accounts/signup/": 200,
    "/accounts/invited/x/": 200,  # where sign-up is open, what the link says does not matter
    "/accounts/login/": 200,
    "/accounts/password/reset/": 200,
    "/accounts/password/reset/x/x/": 200,
    "/api/v1/docs": 200,
    "/api/v1/openapi.json": 200,
    "/language/": 302,  # back to where one was, with nothing changed
    "/admin/login/": 200,
    "/admin/logout/": 302,
    "/healthz": 200,
    "/readyz": 200,
}
"""What anybody may see."""
SENT_AWAY = re.compile(r"^/(accounts|admin)/login/")
VALUES = {"uuid": str(uuid4()), "int": "1"}
ELSEWHERE = "https://evil.example/"
LEADING = ("next", "back", "url", "return", "redirect", "return_to", "popup")


def addresses(resolver: URLResolver | None = None, prefix: str = "/") -> Iterator[str]:
    """All of them, with something in the place of each id."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = prefix + re.sub(r"^\^|\\Z$|\$$|\\", "", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, route)
        elif isinstance(pattern, URLPattern):
            yield re.sub(r"<(?:(\w+):)?\w+>|{\w+}", lambda found: VALUES.get(found[1] or "", "x"), route)


def every_address() -> list[str]:
    # The admin's last is a pattern of everything below it, made to look in vain.
    return sorted({re.sub(r"\(\?P<url>.*", "x", address) for address in addresses()})


async def test_nobody_gets_anything_without_signing_in_but_what_is_public(inside: InsideSite) -> None:
    nobody, seen = await inside.client(None), {}
    for address in every_address():
        answer = await nobody.get(address)
        where = answer.headers.get("Location", "")
        if answer.status_code not in {401, 404, 405} and not SENT_AWAY.match(where):
            seen[address] = answer.status_code
    assert len(every_address()) > 80
    assert seen == PUBLIC


async def test_no_form_of_another_site_does_anything(inside: InsideSite) -> None:
    """Signed in, with all rights, and without the token against forgery."""
    admin = await sync_to_async(User.objects.create_superuser)("root")
    forged = AsyncClient(enforce_csrf_checks=True)
    await forged.aforce_login(admin)
    for address in every_address():
        answer = await forged.post(address, {"title": "x"})
        assert answer.status_code in {403, 404, 405}, (address, answer.status_code)
    assert (await forged.get("/rooms/")).status_code == 200


async def test_no_address_leads_to_another_site(inside: InsideSite) -> None:
    admin = await sync_to_async(User.objects.create_superuser)("root")
    query = "&".join(f"{name}={ELSEWHERE}" for name in LEADING)
    for person in (None, admin):
        browser = await inside.client(person)
        for address in every_address():
            path, fields, headers = f"{address}?{query}", dict.fromkeys(LEADING, ELSEWHERE), {"Referer": ELSEWHERE}
            for answer in (await browser.get(path, headers=headers), await browser.post(path, fields, headers=headers)):
                assert urlsplit(answer.headers.get("Location", "")).netloc == "", address
            if person and "logout" in address:
                await browser.aforce_login(person)


def grow(room: Room, people: int) -> None:
    """More of everything that a page lists."""
    owner = User.objects.get(username="alice")
    for number in range(people):
        Membership.objects.create(room=room, user=User.objects.create_user(f"p{uuid4().hex}"), role="writer")
        complete(begin(owner, room, f"Prompt {number}"), f"Reply {number}")
        ApiToken.objects.make_for(owner, f"token {number}")
        Membership.objects.create(
            room=Room.objects.create_for(owner), user=User.objects.get(username="bob"), role="reader"
        )


@pytest.mark.parametrize(
    "address",
    [
        *("/rooms/", "/rooms/found/?q=Prompt", "/rooms/{room}/", "/rooms/{room}/earlier/?before={message}"),
        *("/rooms/{room}/export.md", "/rooms/{room}/export.json", "/rooms/{room}/members/"),
        *("/accounts/", "/accounts/tokens/"),
        *("/api/v1/rooms", "/api/v1/rooms/{room}", "/api/v1/rooms/{room}/messages", "/api/v1/rooms/{room}/members"),
    ],
)
async def test_a_page_takes_as_many_queries_for_many_as_for_few(
    inside: InsideSite, alice: User, room: Room, address: str
) -> None:
    browser, counts = await inside.client(alice), []
    for people in (2, 6):
        await sync_to_async(grow)(room, people)
        path = address.format(room=room.pk, message=await sync_to_async(_newest)(room))
        await browser.get(path)
        with inside.statements() as statements:
            answer: Any = await browser.get(path)
        assert answer.status_code == 200
        counts.append(len([each for each in statements if not each.startswith("DECLARE")]))
    assert counts[0] == counts[1], counts


def _newest(room: Room) -> UUID:
    newest = room.messages.order_by("created_at").last()
    assert newest is not None
    return newest.pk
