"""The box to write in, and how the page moves while a reply grows."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chat.tests.page.conftest import Model, NewScreen
from chat.tests.page.screen import Screen

FROM_END = "box => box.scrollHeight - box.scrollTop - box.clientHeight"


def test_shift_enter_breaks_the_line_and_the_draft_outlives_a_reload(alice: Screen) -> None:
    alice.box.focus()
    alice.page.keyboard.type("a")
    alice.page.keyboard.press("Shift+Enter")
    alice.page.keyboard.type("b")
    expect(alice.box).to_have_value("a\nb")
    alice.page.reload()
    expect(alice.box).to_have_value("a\nb")


def test_the_enter_that_ends_a_korean_syllable_sends_once_and_whole(alice: Screen, model: Model) -> None:
    model.says("네")
    alice.box.focus()
    keyboard = alice.page.context.new_cdp_session(alice.page)
    keyboard.send("Input.imeSetComposition", {"text": "안녕", "selectionStart": 2, "selectionEnd": 2})
    process_key = {"type": "rawKeyDown", "key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229}
    keyboard.send("Input.dispatchKeyEvent", process_key)
    expect(alice.prompts).to_have_count(0)
    keyboard.send("Input.insertText", {"text": "안녕"})
    alice.page.keyboard.press("Enter")
    alice.expect_status("completed")
    expect(alice.prompts.locator(".text")).to_have_text("안녕")
    expect(alice.prompts).to_have_count(1)


def test_escape_that_ends_a_composition_stops_no_reply(alice: Screen, model: Model) -> None:
    model.says("text", None, " more")
    alice.ask()
    expect(alice.content).to_have_text("text")
    keyboard = alice.page.context.new_cdp_session(alice.page)
    keyboard.send("Input.imeSetComposition", {"text": "안", "selectionStart": 1, "selectionEnd": 1})
    alice.page.keyboard.press("Escape")
    alice.expect_button("stop")
    model.go()
    expect(alice.content).to_have_text("text more")


def test_white_space_alone_is_not_sent(alice: Screen) -> None:
    alice.ask("  \n ")
    expect(alice.button).to_have_attribute("aria-disabled", "true")
    expect(alice.prompts).to_have_count(0)


def test_enter_while_a_reply_grows_keeps_the_draft(alice: Screen, model: Model) -> None:
    model.says("text", None)
    alice.ask()
    expect(alice.content).to_have_text("text")
    alice.ask("the next thought")
    expect(alice.box).to_have_value("the next thought")
    expect(alice.prompts).to_have_count(1)
    model.go()
    alice.expect_button("send")


def test_a_prompt_that_is_too_long_is_kept_and_not_sent(alice: Screen) -> None:
    long = "x" * 40_000
    alice.ask(long)
    expect(alice.button).to_have_attribute("aria-disabled", "true")
    expect(alice.box).to_have_value(long)
    expect(alice.prompts).to_have_count(0)


def test_on_a_phone_enter_breaks_the_line_and_nothing_runs_over_the_edge(new_screen: NewScreen, model: Model) -> None:
    phone = new_screen("alice", viewport={"width": 390, "height": 780}, is_mobile=True, has_touch=True)
    phone.open_new_room()
    model.says("```\n" + "wide " * 60 + "\n```\n\n" + "| a " * 30 + "|\n" + "|---" * 30 + "|\n\n" + "w" * 300)
    phone.box.tap()
    phone.page.keyboard.type("a")
    phone.page.keyboard.press("Enter")
    phone.page.keyboard.type("b")
    expect(phone.box).to_have_value("a\nb")
    phone.button.tap()
    phone.expect_status("completed")
    assert phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    phone.page.get_by_role("button", name="Chats").tap()
    expect(phone.page.get_by_role("navigation")).to_be_visible()
    phone.page.get_by_role("button", name="Close").tap()
    expect(phone.page.get_by_role("navigation")).to_be_hidden()


def test_the_page_follows_the_end_but_never_moves_a_reader_who_scrolled_up(alice: Screen, model: Model) -> None:
    alice.page.set_viewport_size({"width": 900, "height": 500})
    lines = "".join(f"line {n}\n\n" for n in range(40))
    model.says(lines, None, lines, None, "the end")
    alice.ask()
    box = alice.page.get_by_role("main")
    expect(alice.content).to_contain_text("line 39")
    alice.page.wait_for_function(f"({FROM_END})(document.getElementById('main')) < 48")
    alice.page.mouse.move(400, 250)
    alice.page.mouse.wheel(0, -300)
    jump = alice.page.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_visible()
    top = box.evaluate("box => box.scrollTop")
    model.go()
    expect(alice.content.locator("p", has_text="line 39")).to_have_count(2)
    assert box.evaluate("box => box.scrollTop") == pytest.approx(top, abs=2)
    jump.click()
    expect(jump).to_be_hidden()
    model.go()
    expect(alice.content).to_contain_text("the end")
    alice.page.wait_for_function(f"({FROM_END})(document.getElementById('main')) < 48")


def test_code_and_replies_can_be_copied(alice: Screen, model: Model) -> None:
    alice.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    model.says("Look:\n\n```py\nx = 1\n```\n")
    alice.ask()
    alice.expect_status("completed")
    alice.reply.get_by_role("button", name="Copy").first.click()
    expect(alice.reply.get_by_role("button", name="Copied")).to_be_visible()
    assert alice.page.evaluate("navigator.clipboard.readText()") == "x = 1\n"
    alice.action("copy").click()
    alice.page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('Look:'))")


def test_the_theme_is_chosen_once_and_painted_by_the_server(alice: Screen) -> None:
    alice.page.get_by_role("button", name="Dark").click()
    expect(alice.page.locator("html")).to_have_attribute("data-theme", "dark")
    assert alice.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(24, 24, 27)"


def test_the_language_is_chosen_once_and_spoken_by_page_and_modules(new_screen: NewScreen, model: Model) -> None:
    screen = new_screen("polyglot")
    screen.open_new_room()
    screen.page.get_by_role("button", name="한국어").click()
    expect(screen.page.locator("html")).to_have_attribute("lang", "ko")
    expect(screen.button).to_have_accessible_name("보내기")
    model.answers(401)
    screen.page.get_by_label("메시지", exact=True).fill("안녕")
    screen.page.keyboard.press("Enter")
    expect(screen.state).to_have_text("모델 서버가 이 사이트의 키를 거부했습니다.")
    screen.page.reload()
    expect(screen.state).to_have_text("모델 서버가 이 사이트의 키를 거부했습니다.")
    screen.page.get_by_role("button", name="English").click()
    expect(screen.page.locator("html")).to_have_attribute("lang", "en")


def test_times_are_those_of_the_persons_zone(new_screen: NewScreen, model: Model) -> None:
    here = new_screen("alice", timezone_id="Asia/Seoul")
    here.open_new_room()
    model.says("answer")
    here.ask()
    here.expect_status("completed")
    there = new_screen("alice", timezone_id="America/New_York")
    there.page.goto(here.page.url)
    moments = [screen.prompts.locator("time") for screen in (here, there)]
    assert moments[0].get_attribute("datetime") is not None
    hour, other_hour = (moment.evaluate("each => new Date(each.dateTime).getHours()") for moment in moments)
    shown, shown_there = (moment.text_content() or "" for moment in moments)
    assert f"{(hour + 11) % 12 + 1}:" in shown
    assert f"{(other_hour + 11) % 12 + 1}:" in shown_there
    assert shown != shown_there
