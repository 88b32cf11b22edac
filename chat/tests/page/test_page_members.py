"""Sharing a room as people do it in the browser, and the pages of an account."""

from __future__ import annotations

from playwright.sync_api import expect

from chat.tests.page.axe import violations
from chat.tests.page.conftest import NewScreen
from chat.tests.page.screen import Screen, Wire


def let_in(screen: Screen, name: str, role: str) -> None:
    """On the page of the members."""
    screen.page.get_by_label("User name").fill(name)
    screen.page.get_by_label("Role", exact=True).select_option(role)
    screen.page.get_by_role("button", name="Add").click()
    expect(screen.page.get_by_role("status")).to_have_text(f"{name} is in the chat now.")


def test_a_reader_who_becomes_a_writer_gets_the_box_at_once_and_loses_the_room_with_the_membership(
    alice: Screen, new_screen: NewScreen
) -> None:
    reader = new_screen("rita")
    address = alice.page.url
    alice.page.get_by_role("button", name="Options of this chat").click()
    alice.page.get_by_role("link", name="Members…").click()
    let_in(alice, "rita", "reader")
    reader.page.goto(address)
    expect(reader.page.get_by_text("Writing is for its owners and writers.")).to_be_visible()
    expect(reader.box).to_have_count(0)
    alice.page.get_by_label("Role of rita", exact=True).select_option("writer")
    alice.page.get_by_role("button", name="Save the role of rita").click()
    expect(reader.box).to_be_visible()
    expect(reader.page.locator("#shared")).to_contain_text("2")
    alice.page.get_by_role("button", name="Remove rita").click()
    expect(reader.page.get_by_text("This chat is no longer here.")).to_be_visible()


def test_a_role_that_changed_before_the_page_had_its_link_is_shown_as_soon_as_it_has(
    alice: Screen, new_screen: NewScreen
) -> None:
    reader = new_screen("rita")
    wire = Wire(reader)
    wire.is_down = True
    address = alice.page.url
    alice.page.goto(f"{address}members/")
    let_in(alice, "rita", "reader")
    reader.page.goto(address)
    expect(reader.page.get_by_text("Writing is for its owners and writers.")).to_be_visible()
    alice.page.get_by_label("Role of rita", exact=True).select_option("writer")
    alice.page.get_by_role("button", name="Save the role of rita").click()
    expect(alice.page.get_by_role("status")).not_to_have_text("rita is in the chat now.")
    wire.mend()
    expect(reader.box).to_be_visible()


def test_whoever_is_alone_is_told_of_others_when_they_come(alice: Screen, new_screen: NewScreen) -> None:
    new_screen("bob")
    owner = new_screen(beside=alice)
    owner.page.goto(f"{alice.page.url}members/")
    expect(alice.page.locator("#shared")).to_be_hidden()
    let_in(owner, "bob", "writer")
    expect(alice.page.locator("#shared")).to_contain_text("2")


def test_axe_finds_nothing_on_the_pages_of_members_and_account(alice: Screen, new_screen: NewScreen) -> None:
    new_screen("bob")
    phone = new_screen("alice", viewport={"width": 390, "height": 780}, color_scheme="dark")
    phone.open(f"{alice.page.url.removeprefix(alice.site_url)}members/")
    let_in(phone, "bob", "writer")
    assert violations(phone) == []
    phone.open("/accounts/everywhere/")
    phone.page.get_by_label("Your password").fill("wrong")
    phone.page.get_by_role("button", name="Sign out everywhere").click()
    expect(phone.page.get_by_text("That is not your password.")).to_be_visible()
    assert violations(phone) == []
    for path in ("", "password/", "password/reset/"):
        phone.open(f"/accounts/{path}")
        phone.page.emulate_media(color_scheme="light")
        assert violations(phone) == [], path
