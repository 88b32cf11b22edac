"""Every state that a message or the page can be in: its words, its actions, axe, and a picture in var/screenshots/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import ViewportSize, expect

from chat.tests.conftest import NewSite
from chat.tests.page.axe import violations
from chat.tests.page.conftest import PAGE, Model, NewScreen
from chat.tests.page.screen import Screen, Wire
from chat.tests.page.seeding import add_messages
from testing.services import PROJECT
from testing.workers import Site

PICTURES = PROJECT / "var" / "screenshots"
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}
SIZES: dict[str, ViewportSize] = {"desk": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 780}}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LOOKED_AT_BY_AXE = {("desk", "light"), ("phone", "dark")}
MAX_PROMPT_CHARACTERS = 200
MAX_HISTORY = 300


@pytest.fixture(scope="module")
def strict_site(new_site: NewSite) -> Iterator[Site]:
    """A site that lets a person ask once a minute, and not much, in one room."""
    limits = {"PROMPTS_PER_MINUTE": 1, "MAX_PROMPT_CHARACTERS": MAX_PROMPT_CHARACTERS, "MAX_ROOMS_PER_PERSON": 1}
    variables = {name: str(value) for name, value in limits.items()} | {"MAX_HISTORY_CHARACTERS": str(MAX_HISTORY)}
    with new_site(2, **PAGE | variables | {"LIMITS": "on"}) as running:
        yield running


def look(screen: Screen, name: str) -> None:
    """A picture in the light and in the dark, on a desk and on a phone; axe finds nothing in two of the four."""
    before = screen.page.viewport_size
    assert before is not None
    for place, size in SIZES.items():
        screen.page.set_viewport_size(size)
        for scheme in SCHEMES:
            screen.page.emulate_media(color_scheme=scheme)
            if (place, scheme) in LOOKED_AT_BY_AXE:
                assert violations(screen) == []
            screen.page.screenshot(path=PICTURES / f"{name}-{place}-{scheme}.png")
    screen.page.emulate_media(color_scheme="light")
    screen.page.set_viewport_size(before)


def offers(screen: Screen) -> list[str]:
    """The actions of the latest reply that a person sees."""
    names = screen.reply.locator("[data-action]").evaluate_all(
        "all => all.filter(each => each.checkVisibility()).map(each => each.dataset.action)"
    )
    return [str(name) for name in names]


def test_waiting_says_so_after_a_while(alice: Screen, model: Model) -> None:
    model.is_silent()
    alice.ask()
    alice.expect_status("pending")
    expect(alice.state).to_have_text("Waiting for the model…", timeout=15_000)
    assert offers(alice) == []
    look(alice, "waiting")
    alice.button.click()
    alice.expect_status("stopped")
    expect(alice.content).to_have_text("")
    expect(alice.state).to_have_text("Stopped")
    assert offers(alice) == ["regenerate"]
    look(alice, "stopped-empty")


def test_streaming_and_stopped(alice: Screen, model: Model) -> None:
    model.says("What the model says, ", None)
    alice.ask()
    expect(alice.content).to_have_text("What the model says,")
    look(alice, "streaming")
    alice.button.click()
    alice.expect_status("stopped")
    expect(alice.state).to_have_text("Stopped")
    assert offers(alice) == ["continue", "regenerate", "copy"]
    look(alice, "stopped")


def test_failed_before_any_text(alice: Screen, model: Model) -> None:
    model.answers(401)
    alice.ask()
    alice.expect_status("failed")
    assert offers(alice) == ["regenerate"]
    reference = alice.reply.locator(".reference")
    expect(reference).to_have_text(f"Reference {alice.reply.get_attribute('data-inference-id')}")
    look(alice, "failed-empty")
    alice.page.reload()
    expect(reference).to_have_text(f"Reference {alice.reply.get_attribute('data-inference-id')}")


def test_failed_after_some_text(alice: Screen, model: Model) -> None:
    model.breaks_after("The beginning of an answer")
    alice.ask()
    alice.expect_status("failed")
    expect(alice.content).to_have_text("The beginning of an answer")
    expect(alice.state).to_have_text("The reply was cut off on its way from the model.")
    assert offers(alice) == ["continue", "regenerate", "copy"]
    look(alice, "failed")
    model.says("and its end")
    alice.action("continue").click()
    alice.expect_status("completed")
    expect(alice.content).to_have_text("The beginning of an answerand its end")


@pytest.mark.parametrize(
    ("finish", "words"),
    [
        ("length", "The reply reached its length limit"),
        ("content_filter", "The model's filter ended the reply"),
    ],
)
def test_ended_by_a_limit_or_a_filter(alice: Screen, model: Model, finish: str, words: str) -> None:
    model.says("As far as it went", finish=finish)
    alice.ask()
    expect(alice.state).to_have_text(words)
    assert ("continue" in offers(alice)) == (finish == "length")
    look(alice, finish)
    alice.page.reload()
    expect(alice.state).to_have_text(words)


def test_interrupted_offers_to_go_on(new_screen: NewScreen, model: Model, own_site: Site) -> None:
    alice = new_screen("alice", site=own_site)
    alice.open_new_room()
    model.says("what came ", None)
    alice.ask()
    expect(alice.content).to_have_text("what came")
    for worker in own_site.workers:
        worker.terminate()
    for worker in own_site.workers:
        worker.wait(20)
    expect(alice.page.locator("#link-state")).to_have_text("Reconnecting…")
    look(alice, "restarting")
    for worker in own_site.workers:
        worker.launch()
    for worker in own_site.workers:
        worker.start(timeout_seconds=90)
    expect(alice.reply).to_have_attribute("data-status", "interrupted", timeout=30_000)
    assert offers(alice) == ["continue", "regenerate", "copy"]
    look(alice, "interrupted")


@pytest.fixture
def own_site(new_site: NewSite) -> Iterator[Site]:
    """A site that a test may stop; it does not wait long for replies."""
    with new_site(2, **PAGE, DRAIN_SECONDS="1") as running:
        yield running


def test_offline_and_not_sent(new_screen: NewScreen) -> None:
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    alice.page.context.set_offline(True)
    wire.cut()
    expect(alice.page.locator("#link-state")).to_have_text("You are offline")
    alice.ask("typed on a train")
    expect(alice.prompts.locator(".state")).to_have_text("Sending…")
    look(alice, "offline")
    alice.button.click()
    expect(alice.prompts.locator(".state")).to_have_text("Not sent. You stopped it before it left.")
    look(alice, "not-sent")
    alice.page.context.set_offline(False)


def test_a_tab_too_many(new_screen: NewScreen) -> None:
    alice = new_screen("alice")
    wire = Wire(alice)
    alice.open_new_room()
    wire.cut(code=4429)
    expect(alice.page.locator("#link-state")).to_contain_text("Too many tabs are open.")
    look(alice, "too-many-tabs")


def test_signed_out(new_screen: NewScreen) -> None:
    leaver = new_screen("another-leaver")
    leaver.open_new_room()
    expect(leaver.page.locator("#model option")).to_have_count(2)
    leaver.account.log_out()
    expect(leaver.page.locator("#link-state")).to_contain_text("You are signed out.", timeout=15_000)
    look(leaver, "signed-out")


def test_rate_limited_says_when_to_try_again_and_keeps_the_text(
    new_screen: NewScreen, model: Model, strict_site: Site
) -> None:
    hasty = new_screen("hasty", site=strict_site)
    hasty.open_new_room()
    model.says("answer")
    hasty.ask("one")
    hasty.expect_status("completed")
    hasty.ask("two")
    state = hasty.prompts.last.locator(".state")
    expect(state).to_have_text(re.compile(r"Not sent\. That was a lot at once\. Try again in \d+ s\."))
    look(hasty, "rate-limited")
    hasty.prompts.last.get_by_role("button", name="Edit").click()
    expect(hasty.box).to_have_value("two")


def test_too_long_is_counted_and_not_sent(new_screen: NewScreen, strict_site: Site) -> None:
    writer = new_screen("writer", site=strict_site)
    writer.open_new_room()
    writer.box.fill("x" * (MAX_PROMPT_CHARACTERS + 1))
    expect(writer.page.locator("#counter")).to_have_text(f"{MAX_PROMPT_CHARACTERS + 1} / {MAX_PROMPT_CHARACTERS}")
    expect(writer.button).to_have_attribute("aria-disabled", "true")
    look(writer, "too-long")


def test_a_chat_too_many_is_refused_and_its_prompt_is_back_in_the_box(new_screen: NewScreen, strict_site: Site) -> None:
    collector = new_screen("collector", site=strict_site)
    collector.open_new_room()
    collector.open("/rooms/")
    collector.box.fill("one more")
    collector.box.press("Enter")
    expect(collector.page.get_by_role("alert")).to_contain_text("You have 1 chats")
    expect(collector.box).to_have_value("one more")
    look(collector, "too-many-rooms")
    assert "409" in collector.faults.pop()  # the browser says it too


def test_what_the_model_is_no_longer_sent_is_said_and_kept_up_to_date(
    new_screen: NewScreen, model: Model, strict_site: Site
) -> None:
    talker = new_screen("talker", site=strict_site)
    room_id = talker.account.create_room("")
    add_messages(strict_site.variables["DATABASE_URL"], room_id, 4, reply="x" * MAX_HISTORY)
    talker.open(f"/rooms/{room_id}/")
    note = talker.page.locator("#left-out")
    expect(note).to_have_text("The oldest 3 messages are no longer sent to the model.")
    model.says("answer")
    talker.ask("more")
    expect(note).to_have_text("The oldest 4 messages are no longer sent to the model.")
    talker.page.screenshot(path=PICTURES / "left-out.png")


def test_a_shorter_path_leaves_nothing_out_any_more(new_screen: NewScreen, model: Model, strict_site: Site) -> None:
    editor = new_screen("editor", site=strict_site)
    room_id = editor.account.create_room("")
    add_messages(strict_site.variables["DATABASE_URL"], room_id, 4, reply="x" * MAX_HISTORY)
    editor.open(f"/rooms/{room_id}/")
    expect(editor.page.locator("#left-out")).to_be_visible()
    model.says("answer")
    editor.prompts.first.hover()
    editor.prompts.first.get_by_role("button", name="Edit").click()
    editor.page.get_by_label("Edit the message").fill("from the start")
    editor.page.get_by_label("Edit the message").press("Enter")
    expect(editor.content).to_have_text("answer")
    expect(editor.replies).to_have_count(1)
    expect(editor.page.locator("#left-out")).to_be_hidden()


def test_menus_sheets_and_editing(alice: Screen, model: Model) -> None:
    model.says("answer")
    alice.ask()
    alice.expect_status("completed")
    alice.page.get_by_role("button", name="Options of this chat").click()
    look(alice, "menu")
    alice.page.locator("#room-menu").get_by_text("Instructions").click()
    look(alice, "instructions")
    alice.page.keyboard.press("Escape")
    alice.page.keyboard.press("Control+Slash")
    look(alice, "shortcuts")
    alice.page.keyboard.press("Escape")
    alice.prompts.hover()
    alice.prompts.get_by_role("button", name="Edit").click()
    look(alice, "editing")
    model.says("another")
    alice.page.get_by_label("Edit the message").press("Enter")
    expect(alice.content).to_have_text("another")
    look(alice, "versions")


def test_a_phone_in_korean(new_screen: NewScreen, model: Model) -> None:
    phone = new_screen("alice", locale="ko-KR", **PHONE)
    phone.open("/rooms/")
    look(phone, "phone-korean-welcome")
    phone.open_new_room()
    model.says('**"강조"**는 이렇게 보입니다.\n\n```py\nprint("안녕")\n```\n', None)
    phone.page.locator("#prompt").fill("안녕하세요")
    phone.button.tap()
    expect(phone.content).to_contain_text("강조")
    phone.page.locator("#title").tap()  # so that the two presses are no double tap
    phone.button.tap()
    phone.expect_status("stopped")
    expect(phone.state).to_have_text("중지됨")
    look(phone, "phone-korean")
    phone.page.get_by_role("button", name="채팅", exact=True).tap()
    look(phone, "phone-korean-drawer")


def test_forced_colours_leave_every_control_an_edge(new_screen: NewScreen, model: Model) -> None:
    screen = new_screen("alice", forced_colors="active")
    screen.open_new_room()
    model.says("answer")
    screen.ask()
    screen.expect_status("completed")
    assert violations(screen) == []
    screen.page.screenshot(path=PICTURES / "forced-colours.png")
    for control in (screen.button, screen.page.get_by_role("button", name="System")):
        assert control.evaluate("each => getComputedStyle(each).borderTopStyle") == "solid"


def test_reduced_motion_leaves_a_dot_that_stands_still(new_screen: NewScreen, model: Model) -> None:
    screen = new_screen("alice", reduced_motion="reduce")
    screen.open_new_room()
    model.says("text", None)
    screen.ask()
    expect(screen.content).to_have_text("text")
    dot = "(part, name) => getComputedStyle(part, '::after')[name]"
    assert screen.content.evaluate(dot, "content") == '""'
    assert screen.content.evaluate(dot, "animationName") == "none"
    model.go()
    screen.expect_button("send")
