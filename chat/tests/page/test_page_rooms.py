"""Rooms in the sidebar and in the header: found, renamed, set up, exported, deleted; and the keys for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Locator, expect

from chat.tests.page.axe import violations
from chat.tests.page.conftest import MODEL, Model, NewScreen
from chat.tests.page.screen import Screen, Wire
from chat.tests.page.seeding import add_member
from testing.model_server import ModelServer
from testing.workers import Site

MAX_SYSTEM_PROMPT_CHARACTERS = 16_000


def row(screen: Screen, title: str) -> Locator:
    return screen.page.locator(".room-row").filter(has_text=title)


def choose(screen: Screen, name: str) -> None:
    """Choose from the menu of the room that is open."""
    screen.page.get_by_role("button", name="Options of this chat").click()
    screen.page.locator("#room-menu").get_by_text(name).click()


def test_a_search_finds_a_room_by_what_was_said_in_it(new_screen: NewScreen, model: Model) -> None:
    seeker = new_screen("seeker")
    seeker.account.create_room("Other matters")
    seeker.open_new_room()
    model.says("Of course: the **zeppelin** is an airship.")
    seeker.ask("What flies?")
    seeker.expect_status("completed")
    seeker.page.keyboard.press("Control+KeyK")
    seeker.page.keyboard.type("Zeppelin")
    links = seeker.page.locator("[data-room-link]")
    expect(links).to_have_text(["What flies?"])
    expect(links).to_have_attribute("aria-current", "page")
    expect(seeker.page.locator("#found")).to_have_text("Chats found: 1")
    seeker.page.keyboard.type(" xyz")
    expect(seeker.page.locator("#rooms")).to_contain_text("Nothing found.")
    seeker.page.get_by_label("Search chats").fill("")
    expect(row(seeker, "Other matters")).to_be_visible()


def test_the_arrow_keys_lead_from_the_search_to_a_room(new_screen: NewScreen) -> None:
    seeker = new_screen("walker")
    for title in ("Lower", "Upper"):
        seeker.account.create_room(title)
    seeker.open("/rooms/")
    seeker.page.get_by_label("Search chats").press("ArrowDown")
    seeker.page.keyboard.press("ArrowDown")
    seeker.page.keyboard.press("Enter")
    expect(seeker.page.locator("#title")).to_have_text("Lower")


def test_a_title_is_changed_where_it_stands_and_in_every_tab(alice: Screen, new_screen: NewScreen) -> None:
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    alice.page.locator("#title").dblclick()
    alice.page.keyboard.type("A <b>new</b> name")
    alice.page.keyboard.press("Enter")
    for screen in (alice, other):
        expect(screen.page.locator("#title")).to_have_text("A <b>new</b> name")
        expect(row(screen, "A <b>new</b> name")).to_be_visible()
        expect(screen.page).to_have_title("A <b>new</b> name · Chatsite")


def test_escape_leaves_a_title_as_it_was(alice: Screen) -> None:
    choose(alice, "Rename")
    alice.page.keyboard.type("never")
    alice.page.keyboard.press("Escape")
    expect(alice.page.locator("#title")).to_have_text("New chat")
    expect(alice.page.locator(".rename")).to_have_count(0)


def test_another_room_is_renamed_and_deleted_in_the_sidebar(alice: Screen) -> None:
    alice.account.create_room("Old name")
    alice.page.reload()
    row(alice, "Old name").hover()
    row(alice, "Old name").get_by_role("button", name="Options: Old name").click()
    alice.page.locator("#row-menu").get_by_text("Rename").click()
    alice.page.keyboard.type("Better name")
    alice.page.keyboard.press("Enter")
    expect(row(alice, "Better name").get_by_role("link")).to_be_focused()
    row(alice, "Better name").get_by_role("button", name="Options: Better name").click()
    alice.page.locator("#row-menu").get_by_text("Delete").click()
    dialog = alice.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Better name")
    dialog.get_by_role("button", name="Keep it").click()
    expect(dialog).to_be_hidden()
    row(alice, "Better name").get_by_role("button").click()
    alice.page.locator("#row-menu").get_by_text("Delete").click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    alice.page.wait_for_url("**/rooms/")
    expect(row(alice, "Better name")).to_have_count(0)


def test_instructions_reach_the_model_with_the_next_prompt(
    alice: Screen, model: Model, model_server: ModelServer
) -> None:
    choose(alice, "Instructions")
    alice.page.get_by_label("Instructions", exact=True).fill("Answer in rhyme.")
    alice.page.get_by_role("button", name="Save").click()
    expect(alice.page.get_by_role("dialog")).to_be_hidden()
    model.says("A rhyme in time.")
    alice.ask("Rhyme, please")
    alice.expect_status("completed")
    bodies = [json.dumps(request.body) for request in model_server.requests() if "Rhyme, please" in str(request.body)]
    assert bodies
    assert all("Answer in rhyme." in body for body in bodies)
    choose(alice, "Instructions")
    expect(alice.page.get_by_label("Instructions", exact=True)).to_have_value("Answer in rhyme.")


def test_what_one_tab_sets_up_is_seen_in_the_other_without_a_reload(alice: Screen, new_screen: NewScreen) -> None:
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    picker = other.page.get_by_label("Model", exact=True)
    expect(picker.locator("option")).to_have_text([f"Default: {MODEL}", MODEL])
    alice.page.get_by_label("Model", exact=True).select_option(MODEL)
    expect(picker).to_have_value(MODEL)
    choose(alice, "Instructions")
    alice.page.get_by_label("Instructions", exact=True).fill("Answer in rhyme.")
    alice.page.get_by_role("button", name="Save").click()
    choose(other, "Instructions")
    expect(other.page.get_by_label("Instructions", exact=True)).to_have_value("Answer in rhyme.")


def test_what_was_set_up_while_a_tab_had_no_link_is_seen_when_it_has_one_again(
    alice: Screen, new_screen: NewScreen
) -> None:
    other = new_screen(beside=alice)
    wire = Wire(other)
    wire.is_down = True
    other.page.goto(alice.page.url)
    alice.page.locator("#title").dblclick()
    alice.page.keyboard.type("Verses")
    alice.page.keyboard.press("Enter")
    expect(row(alice, "Verses")).to_be_visible()
    choose(alice, "Instructions")
    alice.page.get_by_label("Instructions", exact=True).fill("Answer in rhyme.")
    alice.page.get_by_role("button", name="Save").click()
    expect(alice.page.get_by_role("dialog")).to_be_hidden()
    expect(other.page.locator("#title")).to_have_text("New chat")
    wire.mend()
    expect(other.page.locator("#title")).to_have_text("Verses")
    choose(other, "Instructions")
    expect(other.page.get_by_label("Instructions", exact=True)).to_have_value("Answer in rhyme.")


def test_instructions_that_are_too_long_are_counted_refused_and_kept_in_the_box(alice: Screen) -> None:
    choose(alice, "Instructions")
    box = alice.page.get_by_label("Instructions", exact=True)
    box.fill("x" * (MAX_SYSTEM_PROMPT_CHARACTERS + 1))
    limit = f"{MAX_SYSTEM_PROMPT_CHARACTERS + 1} / {MAX_SYSTEM_PROMPT_CHARACTERS}"
    expect(alice.page.locator("#system-prompt-counter")).to_have_text(limit)
    alice.page.get_by_role("button", name="Save").click()
    dialog = alice.page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_have_text("The instructions are too long.")
    box.fill("short")
    alice.page.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()


def test_a_writer_chooses_the_model_and_a_reader_is_told_its_name(
    alice: Screen, new_screen: NewScreen, site: Site
) -> None:
    room_id = alice.page.url.split("/")[-2]
    bob, rita = new_screen("bob"), new_screen("rita")
    for screen, role in ((bob, "writer"), (rita, "reader")):
        add_member(site.variables["DATABASE_URL"], room_id, screen.account.username, role)
        screen.page.goto(alice.page.url)
    expect(rita.page.locator("#model-name")).to_have_text("Default model")
    bob.page.get_by_label("Model", exact=True).select_option(MODEL)
    expect(rita.page.locator("#model-name")).to_have_text(MODEL)
    expect(alice.page.get_by_label("Model", exact=True)).to_have_value(MODEL)
    bob.page.get_by_role("button", name="Options of this chat").click()
    expect(bob.page.locator("#room-menu").get_by_text("Instructions")).to_have_count(0)


def test_a_reader_sees_a_reply_come_and_is_offered_nothing_that_is_refused(
    alice: Screen, new_screen: NewScreen, site: Site, model: Model
) -> None:
    rita = new_screen("rita")
    add_member(site.variables["DATABASE_URL"], alice.page.url.split("/")[-2], "rita", "reader")
    rita.page.goto(alice.page.url)
    model.says("one ", None, "two")
    alice.ask("Who reads this?")
    expect(rita.content).to_have_text("one")
    rita.page.keyboard.press("Escape")
    model.go()
    rita.expect_status("completed")
    expect(rita.content).to_have_text("one two")
    expect(rita.box).to_have_count(0)
    expect(rita.page.locator('#log [data-action="edit"], #log [data-action="regenerate"]')).to_have_count(0)
    expect(rita.page.get_by_text("You can read this chat.")).to_be_visible()
    expect(rita.action("copy")).to_be_visible()
    assert violations(rita) == []


def test_the_model_of_a_room_is_chosen_below_the_box_and_kept(alice: Screen) -> None:
    picker = alice.page.get_by_label("Model", exact=True)
    expect(picker.locator("option")).to_have_text([f"Default: {MODEL}", MODEL])
    with alice.page.expect_response("**/change/") as answer:
        picker.select_option(MODEL)
    assert answer.value.status == 204
    alice.page.reload()
    expect(picker).to_have_value(MODEL)


def test_a_reply_names_its_model_while_it_comes_in_each_tab_and_after_a_reload(
    alice: Screen, new_screen: NewScreen, model: Model
) -> None:
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    model.says("one", None, " two")
    alice.ask()
    for screen in (alice, other):
        expect(screen.content).to_have_text("one")
        expect(screen.reply.get_by_role("heading")).to_have_text(f"Assistant said {MODEL}")
    other.page.reload()
    expect(other.reply.get_by_text(MODEL, exact=True)).to_be_visible()
    model.go()
    other.expect_status("completed")
    expect(other.reply.get_by_role("heading")).to_have_text(f"Assistant said {MODEL}")


def test_a_room_is_exported_as_it_is_shown(alice: Screen, model: Model) -> None:
    model.says("**The** reply")
    alice.ask("My question")
    alice.expect_status("completed")
    for name, expected in (("Markdown", "**The** reply"), ("JSON", '"text": "**The** reply"')):
        with alice.page.expect_download() as download:
            choose(alice, f"Export as {name}")
        assert expected in Path(download.value.path()).read_text()


def test_keys_list_themselves_focus_the_box_copy_and_begin_a_new_chat(alice: Screen, model: Model) -> None:
    alice.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    model.says("The words")
    alice.ask()
    alice.expect_status("completed")
    alice.page.keyboard.press("Control+Slash")
    expect(alice.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    alice.page.keyboard.press("Escape")
    expect(alice.page.get_by_role("dialog")).to_be_hidden()
    alice.page.get_by_role("main").focus()
    alice.page.keyboard.press("Shift+Escape")
    expect(alice.box).to_be_focused()
    alice.page.keyboard.press("Control+Shift+KeyC")
    alice.page.wait_for_function("navigator.clipboard.readText().then(text => text === 'The words')")
    alice.page.keyboard.press("Control+Shift+KeyO")
    alice.page.wait_for_url(re.compile(r"/rooms/$"))
    expect(alice.box).to_be_focused()


def test_shift_escape_stops_nothing(alice: Screen, model: Model) -> None:
    model.says("text", None, " more")
    alice.ask()
    expect(alice.content).to_have_text("text")
    alice.page.keyboard.press("Shift+Escape")
    alice.expect_button("stop")
    model.go()
    expect(alice.content).to_have_text("text more")


def test_on_a_phone_the_search_key_opens_the_drawer(new_screen: NewScreen) -> None:
    phone = new_screen("alice", viewport={"width": 390, "height": 780})
    phone.open_new_room()
    phone.page.keyboard.press("Control+KeyK")
    expect(phone.page.get_by_label("Search chats")).to_be_focused()
