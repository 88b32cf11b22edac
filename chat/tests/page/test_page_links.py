"""Lost links on the page: nothing typed is lost, nothing is doubled, and the page says where it stands."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from chat.tests.page.conftest import Model, NewScreen
from chat.tests.page.screen import Screen, Wire


def room_with_wire(new_screen: NewScreen) -> tuple[Screen, Wire]:
    screen = new_screen("alice")
    wire = Wire(screen)
    screen.open_new_room()
    return screen, wire


def test_a_reply_is_whole_after_many_broken_links(new_screen: NewScreen, model: Model) -> None:
    alice, wire = room_with_wire(new_screen)
    texts = [f"\n\n**{n}** `x{n}`" for n in range(6)]
    model.says(*[piece for text in texts for piece in (text, None)])
    alice.ask()
    for n in range(6):
        expect(alice.content).to_contain_text(f"x{n}")
        wire.cut()
        wire.mend()
        model.go()
    alice.expect_status("completed")
    live = alice.html()
    alice.page.reload()
    alice.expect_button("send")
    assert alice.html() == live
    assert len(live) == 6


def test_what_was_typed_while_the_link_was_down_arrives_once(new_screen: NewScreen, model: Model) -> None:
    alice, wire = room_with_wire(new_screen)
    model.says("answer")
    wire.cut()
    alice.ask("typed while away")
    expect(alice.prompts.locator(".state")).to_have_text("Sending…")
    expect(alice.page.locator("#link-state")).to_have_text("Reconnecting…")
    wire.mend()
    expect(alice.content).to_have_text("answer", timeout=20_000)
    expect(alice.page.locator("#link-state")).to_be_hidden()
    alice.page.reload()
    expect(alice.prompts).to_have_count(1)
    expect(alice.replies).to_have_count(1)


def test_what_was_sent_but_not_confirmed_is_not_sent_twice(new_screen: NewScreen, model: Model) -> None:
    alice, wire = room_with_wire(new_screen)
    model.says("answer")
    wire.holds_from_site = lambda frame: frame["type"] in ("message", "start", "delta", "end", "room")
    alice.ask("once")
    expect(alice.prompts.locator(".state")).to_have_text("Sending…")
    wire.cut()
    wire.holds_from_site = lambda frame: False
    wire.mend()
    expect(alice.content).to_have_text("answer", timeout=20_000)
    expect(alice.prompts).to_have_count(1)
    expect(alice.replies).to_have_count(1)


def test_an_unsent_prompt_survives_a_reload(new_screen: NewScreen, model: Model) -> None:
    alice, wire = room_with_wire(new_screen)
    model.says("answer")
    wire.cut()
    alice.ask("kept over the reload")
    alice.page.reload()
    expect(alice.prompts).to_have_text(re.compile("kept over the reload"))
    wire.mend()
    expect(alice.content).to_have_text("answer", timeout=20_000)


def test_a_prompt_stopped_before_it_left_can_be_taken_back(new_screen: NewScreen) -> None:
    alice, wire = room_with_wire(new_screen)
    wire.cut()
    alice.ask("never mind")
    alice.button.click()
    expect(alice.prompts.locator(".state")).to_have_text("Not sent. You stopped it before it left.")
    alice.prompts.get_by_role("button", name="Edit").click()
    expect(alice.box).to_have_value("never mind")
    expect(alice.prompts).to_have_count(0)


def test_a_failed_prompt_offers_retry_and_edit_and_loses_nothing(new_screen: NewScreen, model: Model) -> None:
    """Busy: another tab asks while this one believes that the room is idle."""
    alice, wire = room_with_wire(new_screen)
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    model.says("first", None)
    wire.holds_from_site = lambda frame: frame["type"] in ("message", "start", "delta")
    other.ask("from the other tab")
    expect(other.content).to_have_text("first")
    alice.ask("too early")
    expect(alice.prompts.locator(".state").last).to_have_text("Not sent. Another reply is still being written.")
    model.go()
    other.expect_status("completed")
    wire.release()
    model.says("second")
    alice.prompts.last.get_by_role("button", name="Retry").click()
    expect(alice.content).to_have_text("second")


def test_a_signed_out_page_says_so_and_leads_back(new_screen: NewScreen) -> None:
    leaver = new_screen("leaver")
    leaver.open_new_room()
    # Its request for the models would otherwise come too late, and fail.
    expect(leaver.page.locator("#model option")).to_have_count(2)
    leaver.account.log_out()
    state = leaver.page.locator("#link-state")
    expect(state).to_contain_text("You are signed out.", timeout=15_000)
    state.get_by_role("link", name="Sign in again").click()
    leaver.page.wait_for_url(re.compile(r"/accounts/login/\?next=%2Frooms%2F"))


def test_a_deleted_room_says_that_it_is_gone(alice: Screen, new_screen: NewScreen) -> None:
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    other.page.get_by_role("button", name="Options of this chat").click()
    other.page.get_by_role("button", name="Delete…").click()
    other.page.get_by_role("button", name="Delete", exact=True).click()
    other.page.wait_for_url("**/rooms/")
    expect(alice.page.locator("#link-state")).to_contain_text("This chat is no longer here.", timeout=15_000)


def test_a_socket_too_many_says_so_and_tries_again_by_itself(new_screen: NewScreen, model: Model) -> None:
    alice = new_screen("alice")
    alice.page.clock.install()
    wire = Wire(alice)
    alice.open_new_room()
    model.says("answer")
    wire.cut(code=4429)
    expect(alice.page.locator("#link-state")).to_contain_text("Too many tabs are open.")
    wire.mend()
    alice.ask("typed meanwhile")
    alice.page.clock.fast_forward(31_000)
    expect(alice.content).to_have_text("answer")
    expect(alice.page.locator("#link-state")).to_be_hidden()


def test_a_socket_closed_for_want_of_answers_comes_back_and_goes_on(new_screen: NewScreen, model: Model) -> None:
    alice, wire = room_with_wire(new_screen)
    model.says("before ", None, "after")
    alice.ask()
    expect(alice.content).to_have_text("before")
    wire.cut(code=4408)
    wire.mend()
    model.go()
    expect(alice.content).to_have_text("before after")
    alice.expect_status("completed")


def test_a_reply_that_could_not_be_followed_is_followed_again(new_screen: NewScreen, model: Model) -> None:
    alice, wire = room_with_wire(new_screen)
    model.says("before ", None, "after")
    alice.ask()
    expect(alice.content).to_have_text("before")
    wire.answers = lambda frame: (
        {"type": "error", "code": "unavailable", "detail": "", "inference_id": frame["inference_id"]}
        if frame["type"] == "follow" and wire.types_sent().count("follow") < 3
        else None
    )
    wire.cut()
    wire.mend()
    model.go()
    expect(alice.content).to_have_text("before after")
    expect(alice.page.locator("#notice")).to_be_hidden()
    assert wire.types_sent().count("follow") == 3


def test_a_reply_that_ended_while_the_link_was_down_is_fetched(new_screen: NewScreen, model: Model) -> None:
    """Its request is sent again and answered by the message that the reply has become, without a `start`."""
    alice, wire = room_with_wire(new_screen)
    model.says("one")
    alice.ask()
    expect(alice.content).to_have_text("one")
    alice.expect_button("send")
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    model.says("two")
    wire.holds_from_site = lambda frame: frame["type"] in ("message", "start", "delta", "end")
    alice.action("regenerate").click()
    expect(other.content).to_have_text("two")
    other.expect_status("completed")
    known = alice.reply.get_attribute("data-message-id")
    # As if the greeting had been written a moment earlier: the page would fetch the room at once otherwise.
    wire.changes = lambda frame: (
        {**frame, "last_message_id": known}
        if frame["type"] == "hello" and wire.types_sent().count("regenerate") < 2
        else frame
    )
    wire.cut()
    wire.holds_from_site = lambda frame: False
    wire.mend()
    expect(alice.content).to_have_text("two")
    expect(alice.reply.locator(".versions span")).to_have_text("2/2")
