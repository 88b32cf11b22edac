"""Prompts that are edited, replies that are asked for again, and the ways between their versions."""

from __future__ import annotations

from playwright.sync_api import expect

from chat.tests.page.conftest import Model, NewScreen
from chat.tests.page.screen import Screen, Wire


def converse(screen: Screen, model: Model, text: str, reply: str) -> None:
    model.says(reply)
    screen.ask(text)
    expect(screen.content).to_have_text(reply)
    screen.expect_button("send")


def edit(screen: Screen, number: int, text: str) -> None:
    prompt = screen.prompts.nth(number)
    prompt.hover()
    prompt.get_by_role("button", name="Edit").click()
    prompt.get_by_label("Edit the message").fill(text)
    prompt.get_by_label("Edit the message").press("Enter")


def texts(screen: Screen) -> list[str]:
    shown = screen.page.locator('#log .text, #log [data-part="content"]').all_text_contents()
    return [text.strip() for text in shown]


def test_an_edited_prompt_takes_the_place_of_the_old_one_and_both_can_be_read(
    alice: Screen, new_screen: NewScreen, model: Model
) -> None:
    converse(alice, model, "first", "one")
    converse(alice, model, "second", "two")
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    model.says("three")
    edit(alice, 0, "changed")
    for screen in (alice, other):
        expect(screen.content).to_have_text("three")
        expect(screen.prompts.locator(".versions span")).to_have_text("2/2")
        assert texts(screen) == ["changed", "three"]
    alice.page.get_by_label("Previous version").first.click()
    expect(alice.prompts).to_have_count(2)
    assert texts(alice) == ["first", "one", "second", "two"]
    alice.page.get_by_label("Next version").first.click()
    expect(alice.prompts).to_have_count(1)
    assert texts(alice) == ["changed", "three"]
    alice.page.reload()
    assert texts(alice) == ["changed", "three"]


def test_a_reply_asked_for_again_can_be_paged_at_once(alice: Screen, model: Model) -> None:
    converse(alice, model, "question", "one")
    for number in ("two", "three"):
        model.says(number)
        alice.action("regenerate").click()
        expect(alice.content).to_have_text(number)
        alice.expect_button("send")
    expect(alice.reply.locator(".versions span")).to_have_text("3/3")
    alice.reply.get_by_label("Previous version").click()
    expect(alice.content).to_have_text("two")
    expect(alice.reply.locator(".versions span")).to_have_text("2/3")


def test_what_is_sent_from_an_older_version_follows_that_version(alice: Screen, model: Model) -> None:
    converse(alice, model, "question", "one")
    model.says("two")
    alice.action("regenerate").click()
    expect(alice.content).to_have_text("two")
    alice.expect_button("send")
    alice.reply.get_by_label("Previous version").click()
    expect(alice.content).to_have_text("one")
    converse(alice, model, "after one", "three")
    assert "?at=" not in alice.page.url
    assert texts(alice) == ["question", "one", "after one", "three"]
    alice.page.reload()
    assert texts(alice) == ["question", "one", "after one", "three"]


def test_a_reader_of_an_older_version_is_not_taken_away_from_it(
    alice: Screen, new_screen: NewScreen, model: Model
) -> None:
    converse(alice, model, "question", "one")
    model.says("two")
    alice.action("regenerate").click()
    expect(alice.content).to_have_text("two")
    alice.expect_button("send")
    reader = new_screen(beside=alice)
    reader.page.goto(alice.page.url)
    reader.reply.get_by_label("Previous version").click()
    expect(reader.content).to_have_text("one")
    converse(alice, model, "more", "three")
    expect(reader.content).to_have_text("one")
    assert texts(reader) == ["question", "one"]


def test_escape_leaves_a_prompt_as_it_was(alice: Screen, model: Model) -> None:
    converse(alice, model, "question", "one")
    alice.prompts.hover()
    alice.prompts.get_by_role("button", name="Edit").click()
    alice.page.get_by_label("Edit the message").fill("never")
    alice.page.keyboard.press("Escape")
    expect(alice.prompts.locator(".text")).to_have_text("question")
    expect(alice.prompts.get_by_role("button", name="Edit")).to_be_focused()


def test_nothing_is_edited_while_a_reply_is_written(alice: Screen, model: Model) -> None:
    model.says("text", None)
    alice.ask()
    expect(alice.content).to_have_text("text")
    alice.prompts.hover()
    expect(alice.prompts.get_by_role("button", name="Edit")).to_have_count(0)
    model.go()
    alice.expect_button("send")
    alice.prompts.hover()
    expect(alice.prompts.get_by_role("button", name="Edit")).to_be_visible()


def test_an_edited_prompt_that_is_refused_leaves_the_old_path_to_be_seen(new_screen: NewScreen, model: Model) -> None:
    """Busy: another tab asks while this one believes that the room is idle."""
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    converse(alice, model, "question", "one")
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    wire.holds_from_site = lambda frame: frame["type"] in ("message", "start", "delta")
    model.says("two", None)
    other.ask("more")
    expect(other.content).to_have_text("two")
    edit(alice, 0, "changed")
    expect(alice.prompts.last.locator(".state")).to_have_text("Not sent. Another reply is still being written.")
    assert texts(alice) == ["question", "one", "changed"]
    model.go()
    other.expect_status("completed")
    wire.release()
    expect(alice.replies).to_have_count(2)
    model.says("three")
    alice.prompts.last.get_by_role("button", name="Retry").click()
    expect(alice.content).to_have_text("three")
    assert texts(alice) == ["changed", "three"]


def test_an_edited_prompt_that_is_taken_back_returns_to_the_box(new_screen: NewScreen, model: Model) -> None:
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    converse(alice, model, "question", "one")
    wire.cut()
    edit(alice, 0, "changed")
    expect(alice.prompts.locator(".text")).to_have_text("changed")
    alice.button.click()
    alice.prompts.last.get_by_role("button", name="Edit").click()
    expect(alice.box).to_have_value("changed")
    assert texts(alice) == ["question", "one"]
