"""The page for people with screen readers and keyboards."""

from __future__ import annotations

from playwright.sync_api import expect

from chat.tests.page.axe import violations
from chat.tests.page.conftest import Model, NewScreen
from chat.tests.page.screen import Screen

REPLY = """# Title

Text with [a link](https://example.com).

```py
x = 1  # c
```

| a |
|---|
| 1 |

| b |
|---|
| 2 |

- [x] y
"""


def test_axe_finds_nothing_on_the_forms(new_screen: NewScreen) -> None:
    screen = new_screen()
    screen.page.context.clear_cookies()
    for path in ("/accounts/signup/", "/accounts/login/"):
        screen.open(path)
        assert violations(screen) == []
    screen.page.get_by_label("Username").fill("nobody")
    screen.page.get_by_label("Password").fill("wrong")
    screen.page.get_by_role("button", name="Log in").click()
    expect(screen.page.get_by_role("alert")).to_be_visible()
    assert violations(screen) == []


def test_axe_finds_nothing_in_a_room_in_any_state(alice: Screen, model: Model) -> None:
    assert violations(alice) == []
    model.says(REPLY, None)
    alice.ask()
    expect(alice.content).to_contain_text("Title")
    assert violations(alice) == []
    alice.button.click()
    alice.expect_status("stopped")
    assert violations(alice) == []


def test_axe_finds_nothing_in_the_dark_on_a_phone(new_screen: NewScreen, model: Model) -> None:
    options = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True, "color_scheme": "dark"}
    phone = new_screen("alice", **options)
    phone.open("/rooms/")
    assert violations(phone) == []
    phone.open_new_room()
    model.says(REPLY)
    phone.ask()
    phone.button.tap()
    phone.expect_status("completed")
    assert violations(phone) == []
    phone.page.get_by_role("button", name="Chats").tap()
    assert violations(phone) == []


def test_screen_readers_hear_states_and_finished_blocks_but_no_tokens(alice: Screen, model: Model) -> None:
    status, spoken = alice.page.locator("#status"), alice.page.locator("#spoken")
    model.says("First para", "graph.\n\n", "Second", None, " one.")
    alice.ask()
    expect(status).to_have_text("Assistant is replying")
    expect(spoken).to_have_text("First paragraph.")
    expect(alice.page.get_by_role("log")).to_have_attribute("aria-live", "off")
    model.go()
    expect(status).to_have_text("Reply finished")
    expect(spoken).to_contain_text("Second one.")


def test_a_stop_is_announced_and_the_button_names_what_it_does(alice: Screen, model: Model) -> None:
    model.says("text", None)
    expect(alice.button).to_have_accessible_name("Send")
    alice.ask()
    expect(alice.content).to_have_text("text")
    expect(alice.button).to_have_accessible_name("Stop reply")
    alice.button.focus()
    alice.page.keyboard.press("Enter")
    alice.expect_status("stopped")
    expect(alice.page.locator("#status")).to_have_text("Reply stopped")
    expect(alice.button).to_be_focused()
