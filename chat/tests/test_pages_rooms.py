"""The pages about rooms, without a browser: who finds, changes and exports what, and what the lists say."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from chat.models import Message, Room
from chat.prompts import send
from chat.tests.people import ask_of, complete, live
from inference.journal import Status


def found(client: Client, words: str) -> list[str]:
    """The titles that a search lists."""
    page = client.get("/rooms/found/", {"q": words}).content.decode()
    return re.findall(r"data-room-link=[^>]*>([^<]*)<", page)


@pytest.fixture
def alices(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def first_prompt(user: User, room: Room, text: str) -> UUID:
    """A version of the first prompt with a reply that has ended."""
    taken = send(ask_of(user, room), text, None, has_parent=True)
    complete(live(taken), f"reply to {text}")
    assert taken.prompt is not None
    return taken.prompt.pk


def say(room: Room, text: str) -> None:
    Message.objects.create(room=room, role=Message.Role.USER, text=text, status=Message.Status.SENT)


def test_a_search_finds_words_of_titles_and_of_messages(alices: Client, alice: User, room: Room) -> None:
    say(room, "About rivers and stones")
    Room.objects.create_for(alice, title="River bank")
    assert found(alices, "river") == ["River bank", "A room"]
    assert found(alices, "rivers A") == ["A room"]
    assert found(alices, "nowhere") == []


def test_words_of_one_search_may_stand_in_different_messages_and_list_a_room_once(alices: Client, room: Room) -> None:
    for text in ("one river", "two rivers", "a stone"):
        say(room, text)
    assert found(alices, "river stone") == ["A room"]


def test_a_search_finds_nothing_of_others(client: Client, room: Room, charlie: User) -> None:
    say(room, "secret")
    client.force_login(charlie)
    assert found(client, "secret") == []
    assert found(client, "A room") == []


def test_percent_and_underscore_are_no_wild_cards(alices: Client, room: Room) -> None:
    assert found(alices, "A%room") == []
    assert found(alices, "_") == []


def test_rooms_stand_under_the_days_of_the_persons_own_calendar(alices: Client, room: Room) -> None:
    """Ten hours ago may be yesterday or today; in two zones a day apart it is not the same."""
    now = timezone.now()
    Room.objects.filter(pk=room.pk).update(updated_at=now - timedelta(hours=1))
    names = set()
    for hours in range(-12, 15):
        alices.cookies["zone"] = f"Etc/GMT{-hours:+d}"
        names |= set(re.findall(r"<h2>(Today|Yesterday)</h2>", alices.get("/rooms/found/").content.decode()))
    assert names == {"Today", "Yesterday"}


@pytest.mark.parametrize("zone", ["", "../../etc/passwd", "America", "No/Such", "\x00", "x" * 5000])
def test_a_strange_zone_is_no_zone(alices: Client, room: Room, zone: str) -> None:
    alices.cookies["zone"] = zone
    assert alices.get("/rooms/found/").status_code == 200


def test_old_rooms_stand_under_their_month(alices: Client, room: Room) -> None:
    Room.objects.filter(pk=room.pk).update(updated_at="2024-02-10T12:00:00Z")
    assert "<h2>February 2024</h2>" in alices.get("/rooms/").content.decode()


def test_only_the_owner_is_offered_to_rename_and_delete(client: Client, room: Room, alice: User, bob: User) -> None:
    for user, count in ((alice, 1), (bob, 0)):
        client.force_login(user)
        assert client.get("/rooms/found/").content.decode().count("data-room-options") == count


def test_an_old_path_is_shown_with_ways_to_the_other_versions(alices: Client, alice: User, room: Room) -> None:
    first, second = first_prompt(alice, room, "first text"), first_prompt(alice, room, "second text")
    newest = alices.get(f"/rooms/{room.pk}/").content.decode()
    assert "second text" in newest
    assert "first text" not in newest.split('id="log"')[1]
    assert f'href="?at={first}"' in newest
    older = alices.get(f"/rooms/{room.pk}/", {"at": str(first)}).content.decode()
    assert "first text" in older
    assert "data-is-older-path" in older
    assert f'href="?at={second}"' in older


def test_an_address_that_leads_nowhere_shows_the_newest_path(alices: Client, alice: User, room: Room) -> None:
    first_prompt(alice, room, "the text")
    for at in (str(uuid4()), "nonsense", ""):
        page = alices.get(f"/rooms/{room.pk}/", {"at": at})
        assert "the text" in page.content.decode()
        assert page.context["is_newest_path"]


def test_messages_before_one_come_fifty_at_a_time(alices: Client, room: Room) -> None:
    parent = None
    for number in range(120):
        parent = Message.objects.create(room=room, role="user", text=f"text {number}.", status="sent", parent=parent)
    page = alices.get(f"/rooms/{room.pk}/")
    assert "text 70." in page.content.decode()
    assert "text 69." not in page.content.decode()
    assert "data-earlier=" in page.content.decode()
    first = page.context["messages"][0].id
    earlier = alices.get(f"/rooms/{room.pk}/earlier/", {"before": str(first)})
    shown = re.findall(r"text (\d+)\.", earlier.content.decode())
    assert shown == [str(number) for number in range(20, 70)]
    last = alices.get(f"/rooms/{room.pk}/earlier/", {"before": str(earlier.context["messages"][0].id)})
    assert len(last.context["messages"]) == 20
    assert "data-earlier=" not in last.content.decode()


def test_exports_hold_the_path_or_the_whole_tree(alices: Client, alice: User, room: Room) -> None:
    first, _second = first_prompt(alice, room, "first text"), first_prompt(alice, room, "second text")
    markdown = alices.get(f"/rooms/{room.pk}/export.md")
    assert markdown["Content-Disposition"] == 'attachment; filename="a-room.md"'
    shown = "# A room\n\n## alice\n\nsecond text\n\n## Assistant (default)\n\nreply to second text\n"
    assert markdown.content.decode() == shown
    assert "first text" in alices.get(f"/rooms/{room.pk}/export.md", {"at": str(first)}).content.decode()
    data = alices.get(f"/rooms/{room.pk}/export.json").json()
    assert [message["text"] for message in data["messages"]] == [
        "first text",
        "reply to first text",
        "second text",
        "reply to second text",
    ]


def test_a_page_and_an_export_name_the_model_of_each_reply_whatever_its_name(
    alices: Client, alice: User, room: Room
) -> None:
    for name in ("<b>small</b>", "two\n\n# lines"):
        complete(live(send(ask_of(alice, room, model=name), "A question", None, has_parent=False)), "An answer")
    broken = live(send(ask_of(alice, room, model="third"), "A question", None, has_parent=False))
    complete(broken, "An", status=Status.INTERRUPTED)
    names = re.findall(r"<span data-model>([^<]*)</span>", alices.get(f"/rooms/{room.pk}/").content.decode())
    assert names == ["&lt;b&gt;small&lt;/b&gt;", "two\n\n# lines", "third", ""]
    markdown = alices.get(f"/rooms/{room.pk}/export.md").content.decode()
    marks = re.findall(r"^## Assistant \((.*)\)$", markdown, re.MULTILINE)
    assert marks == ["<b>small</b>", "two # lines", "third, interrupted"]


@pytest.mark.parametrize("path", ["", "earlier/", "export.md", "export.json", "members/"])
def test_nobody_else_gets_anything_of_a_room(client: Client, room: Room, charlie: User, path: str) -> None:
    assert client.get(f"/rooms/{room.pk}/{path}").status_code == 302
    client.force_login(charlie)
    assert client.get(f"/rooms/{room.pk}/{path}").status_code == 404


def test_a_hostile_title_is_text_wherever_it_stands(alices: Client, alice: User) -> None:
    title = "\"><img src=x onerror=alert(1)>'{{ 7 }}</script>"
    room = Room.objects.create_for(alice, title=title)
    for path in ("/rooms/", "/rooms/found/", f"/rooms/{room.pk}/"):
        page = alices.get(path).content.decode()
        assert "<img src=x" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert alices.get(f"/rooms/{room.pk}/export.md")["Content-Type"] == "text/markdown; charset=utf-8"


def test_a_prompt_whose_author_is_gone_still_has_a_heading(alices: Client, bob: User, room: Room) -> None:
    first_prompt(bob, room, "Hello")
    bob.delete()
    page = alices.get(f"/rooms/{room.pk}/").content.decode()
    assert re.search(r"<h2>\s*Somebody\s*</h2>", page)
