"""The page where there is much of everything."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chat.tests.page.conftest import Model, NewScreen
from chat.tests.page.screen import Screen
from chat.tests.page.seeding import add_messages, add_rooms
from testing.workers import Site

REPLY = "A paragraph of **some** words.\n\n- one\n- two\n\n```py\nx = 1\n```\n"


def top_of(screen: Screen, text: str) -> float:
    box = screen.page.locator("#log").get_by_text(text, exact=True).bounding_box()
    assert box is not None
    return box["y"]


def test_a_long_room_begins_at_its_end_and_loads_the_rest_without_moving_the_reader(alice: Screen, site: Site) -> None:
    room_id = alice.page.url.split("/")[-2]
    add_messages(site.variables["DATABASE_URL"], room_id, 400, reply=REPLY)
    alice.page.reload()
    expect(alice.page.locator("#log > .message")).to_have_count(50)
    expect(alice.page.get_by_text("Prompt 399")).to_be_in_viewport()
    alice.page.get_by_role("main").press("Home")
    earlier = alice.page.get_by_role("button", name="Load earlier")
    for loaded in (100, 150):
        expect(earlier).to_be_in_viewport()
        first = f"Prompt {401 - loaded + 50}"
        before = top_of(alice, first)
        earlier.click()
        expect(alice.page.locator("#log > .message")).to_have_count(loaded)
        assert top_of(alice, first) == pytest.approx(before, abs=80)  # the button above it has gone
        alice.page.get_by_role("main").press("Home")


def test_a_reply_in_a_long_room_comes_as_in_a_short_one(alice: Screen, site: Site, model: Model) -> None:
    room_id = alice.page.url.split("/")[-2]
    add_messages(site.variables["DATABASE_URL"], room_id, 400, reply=REPLY)
    alice.page.reload()
    model.says("the ", "answer")
    alice.ask("one more")
    expect(alice.content).to_have_text("the answer")
    expect(alice.content).to_be_in_viewport()
    expect(alice.page.locator("#log > .message")).to_have_count(52)


def test_a_thousand_rooms_are_listed_searched_and_come_back(new_screen: NewScreen, site: Site) -> None:
    collector = new_screen("collector")
    add_rooms(site.variables["DATABASE_URL"], "collector", 1000)
    collector.open("/rooms/")
    links = collector.page.locator("[data-room-link]")
    expect(links).to_have_count(1000)
    search = collector.page.get_by_label("Search chats")
    search.fill("number 777")
    expect(links).to_have_text(["Room number 777"])
    search.press("Escape")
    expect(links).to_have_count(1000)
    links.last.scroll_into_view_if_needed()
    expect(links.last).to_have_text("Room number 1000")


def test_fifty_thousand_characters_arrive_whole_and_are_there_after_a_reload(alice: Screen, model: Model) -> None:
    line = "Line {n} with **bold** text, `code` and plain words to make it as long as a line is.\n\n"
    model.says_slowly(line, 600, pace_seconds=0.005)
    alice.ask()
    alice.expect_button("stop")
    expect(alice.button).to_have_attribute("data-state", "send", timeout=60_000)
    live = alice.html()
    assert len(live) == 600
    assert len(alice.text()) > 40_000
    alice.page.reload()
    assert alice.html() == live
