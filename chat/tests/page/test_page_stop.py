"""Stop on the page: what was on the screen at the press is what is saved, in every tab, and after a reload."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from chat.tests.page.conftest import Model, NewScreen
from chat.tests.page.screen import Screen, Wire
from testing.server_process import wait_until
from testing.services import PostgresServer


def assert_same_after_reload(screen: Screen) -> None:
    live, state = screen.html(), screen.state.text_content()
    screen.page.reload()
    screen.expect_button("send")
    assert screen.html() == live
    assert screen.state.text_content() == state


def test_the_text_at_the_press_is_the_text_that_stays(alice: Screen, new_screen: NewScreen, model: Model) -> None:
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    model.says_slowly("word 🌊 **강조** ", 500)
    alice.ask()
    expect(alice.content).to_contain_text("word 🌊 강조 word")
    shown = alice.button.evaluate(
        "button => { button.click(); return document.querySelector('[data-part=content]').textContent; }"
    )
    alice.expect_status("stopped")
    assert alice.text().rstrip() == shown.rstrip()
    expect(alice.state).to_have_text("Stopped")
    other.expect_status("stopped")
    assert other.html() == alice.html()
    assert_same_after_reload(alice)


def test_what_arrives_after_the_press_is_not_shown(new_screen: NewScreen, model: Model) -> None:
    """The stop is held up on its way while the reply goes on: the screen stands still, and is then cut to the press."""
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    model.says("before ", "the press", None, " and after it", None)
    alice.ask()
    expect(alice.content).to_have_text("before the press")
    wire.holds_from_page = lambda frame: frame["type"] == "stop"
    alice.button.click()
    alice.expect_button("stopping")
    expect(alice.state).to_have_text("Stopping…")
    model.go()
    wait_until_page(alice, lambda: any(" and after it" in str(frame.get("patches")) for frame in wire.received))
    expect(alice.content).to_have_text("before the press")
    expect(alice.state).to_have_text("Still stopping…")
    wire.release()
    alice.expect_status("stopped")
    expect(alice.content).to_have_text("before the press")
    assert_same_after_reload(alice)


def test_a_stop_that_comes_after_the_end_cuts_back_to_what_was_seen(new_screen: NewScreen, model: Model) -> None:
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    model.says("seen", None, " and unseen")
    alice.ask()
    expect(alice.content).to_have_text("seen")
    wire.holds_from_page = lambda frame: frame["type"] == "stop"
    alice.button.click()
    model.go()
    expect(other.content).to_have_text("seen and unseen")
    other.expect_status("completed")
    wire.release()
    for screen in (alice, other):
        screen.expect_status("stopped")
        expect(screen.content).to_have_text("seen")
    assert_same_after_reload(alice)


def test_a_stop_before_the_reply_has_begun_lets_no_word_through(new_screen: NewScreen, model: Model) -> None:
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    model.says("not ", "one ", "word")
    wire.holds_from_site = lambda frame: frame["type"] in {"start", "delta", "end"}
    alice.ask()
    alice.expect_button("stop")
    alice.button.click()
    alice.expect_button("stopping")
    wait_until_page(alice, lambda: any(frame["type"] == "start" for frame in wire.received))
    wire.release()
    alice.expect_status("stopped")
    expect(alice.content).to_have_text("")
    assert [frame["position"] for frame in wire.sent if frame["type"] == "stop"] == [0]
    assert_same_after_reload(alice)


def test_a_silent_model_can_be_stopped_and_the_next_prompt_is_answered(alice: Screen, model: Model) -> None:
    model.is_silent()
    alice.ask()
    expect(alice.reply).to_have_attribute("data-status", "pending")
    alice.button.click()
    alice.expect_status("stopped")
    model.says("answered")
    alice.ask("again")
    expect(alice.content).to_have_text("answered")


def test_reasoning_can_be_stopped(alice: Screen, model: Model) -> None:
    model.says(None, "never", reasoning=("Let me ", "think"))
    alice.ask()
    expect(alice.reasoning).to_have_text("Let me think")
    alice.button.click()
    alice.expect_status("stopped")
    alice.page.reload()
    expect(alice.reasoning).to_have_text("Let me think")
    expect(alice.content).to_have_text("")


def test_another_tab_stops_and_both_show_the_same(alice: Screen, new_screen: NewScreen, model: Model) -> None:
    model.says_slowly("word ", 500)
    alice.ask()
    expect(alice.content).to_contain_text("word")
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    expect(other.content).to_contain_text("word word")
    other.button.click()
    other.expect_status("stopped")
    alice.expect_status("stopped")
    alice.expect_button("send")
    assert alice.html() == other.html()


def test_escape_stops_and_the_focus_stays_where_it_was(alice: Screen, model: Model) -> None:
    model.says("text", None)
    alice.ask()
    expect(alice.content).to_have_text("text")
    alice.page.keyboard.press("Escape")
    alice.expect_status("stopped")
    expect(alice.box).to_be_focused()


def test_escape_that_closes_a_menu_does_not_stop(alice: Screen, model: Model) -> None:
    model.says("text", None, " more")
    alice.ask()
    expect(alice.content).to_have_text("text")
    alice.page.get_by_role("button", name="Options of this chat").click()
    alice.page.get_by_role("button", name="Delete…").click()
    alice.page.keyboard.press("Escape")
    expect(alice.page.locator("#room-menu")).to_be_hidden()
    alice.expect_button("stop")
    model.go()
    expect(alice.content).to_have_text("text more")


def test_a_stopped_reply_is_continued_from_where_it_was_cut(alice: Screen, model: Model) -> None:
    model.says("The first half", None)
    alice.ask()
    expect(alice.content).to_have_text("The first half")
    alice.button.click()
    alice.expect_status("stopped")
    model.says(" and the second.")
    alice.action("continue").click()
    expect(alice.content).to_have_text("The first half and the second.")
    expect(alice.replies).to_have_count(1)


def test_a_stop_pressed_while_the_link_is_down_goes_first_when_it_is_back(new_screen: NewScreen, model: Model) -> None:
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    model.says("kept", None, " not kept")
    alice.ask()
    expect(alice.content).to_have_text("kept")
    wire.cut()
    alice.button.click()
    expect(alice.state).to_have_text("Stopping as soon as the connection is back…")
    model.go()
    wire.sent.clear()
    wire.mend()
    alice.expect_status("stopped")
    expect(alice.content).to_have_text("kept")
    assert wire.types_sent()[:2] == ["stop", "follow"]
    assert_same_after_reload(alice)


def test_a_stop_outlives_a_reload_that_comes_before_its_answer(new_screen: NewScreen, model: Model) -> None:
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    model.says("kept", None, " not kept", None)
    alice.ask()
    expect(alice.content).to_have_text("kept")
    wire.holds_from_page = lambda frame: frame["type"] == "stop"
    alice.button.click()
    alice.expect_button("stopping")
    wire.holds_from_page = lambda frame: False
    alice.page.reload()
    alice.expect_status("stopped")
    expect(alice.content).to_have_text("kept")


def test_a_late_stop_in_another_tab_is_seen_after_a_broken_link(new_screen: NewScreen, model: Model) -> None:
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    model.says("seen", None, " and unseen")
    alice.ask()
    other = new_screen(beside=alice)
    other_wire = Wire(other)
    other.page.goto(alice.page.url)
    expect(other.content).to_have_text("seen")
    other_wire.holds_from_page = lambda frame: frame["type"] == "stop"
    other.button.click()
    model.go()
    expect(alice.content).to_have_text("seen and unseen")
    alice.expect_status("completed")
    wire.cut()
    other_wire.release()
    other.expect_status("stopped")
    wire.mend()
    alice.expect_status("stopped")
    expect(alice.content).to_have_text("seen")


def test_while_the_database_is_away_the_page_says_that_the_stop_is_not_settled(
    alice: Screen, postgres_server: PostgresServer, model: Model
) -> None:
    model.says("kept", None)
    alice.ask()
    expect(alice.content).to_have_text("kept")
    postgres_server.pause()
    try:
        alice.button.click()
        expect(alice.state).to_have_text(re.compile("Still stopping…|The stop is not written down yet"))
        alice.expect_button("stopping")
        expect(alice.content).to_have_text("kept")
    finally:
        postgres_server.resume()
    alice.expect_status("stopped")
    expect(alice.content).to_have_text("kept")
    assert_same_after_reload(alice)


def test_a_second_press_changes_nothing(alice: Screen, model: Model) -> None:
    model.says("text", None)
    alice.ask()
    expect(alice.content).to_have_text("text")
    alice.button.evaluate("button => { button.click(); button.click(); }")
    alice.expect_status("stopped")
    model.says("next")
    alice.ask()
    alice.expect_status("completed")


def test_a_double_click_on_send_does_not_stop_what_it_sent(alice: Screen, model: Model) -> None:
    model.says("one", None, " two")
    alice.box.fill("Hello")
    alice.button.dblclick()
    expect(alice.content).to_have_text("one")
    model.go()
    alice.expect_status("completed")
    expect(alice.prompts).to_have_count(1)


def wait_until_page(screen: Screen, is_true: object) -> None:
    """`wait_until` that lets the browser's events through meanwhile."""
    assert callable(is_true)

    def check() -> object:
        screen.page.evaluate("1")
        return is_true()

    wait_until(check, "the frame on the wire")
