"""People talk with the model on the page: signing up, asking, reading, reloading."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from chat.tests.page.conftest import Model, NewScreen
from chat.tests.page.screen import Screen
from testing.workers import Site

MARKDOWN = """# Title

Some **bold**, `code` and **"강조"**는 [a link](https://example.com/).

```python
def f(x):
    return x + 1
```

| a | b |
|---|--:|
| 1 | 2 |

- one
- two
"""
PIECES = [MARKDOWN[start : start + 5] for start in range(0, len(MARKDOWN), 5)]


def test_a_person_signs_up_asks_and_reads_the_reply(new_screen: NewScreen, site: Site, model: Model) -> None:
    model.says("Hello ", "there.")
    screen = new_screen("passer-by")
    screen.page.context.clear_cookies()
    screen.open("/accounts/signup/")
    screen.page.get_by_label("Username").fill("alice-from-the-form")
    screen.page.get_by_label("Password", exact=True).fill("correct horse battery staple")
    screen.page.get_by_label("Password confirmation").fill("correct horse battery staple")
    screen.page.get_by_role("button", name="Sign up").click()
    screen.page.wait_for_url("**/rooms/")
    screen.ask("Good morning")
    screen.expect_status("completed")
    expect(screen.content).to_have_text("Hello there.")
    expect(screen.prompts).to_have_text(re.compile("Good morning"))
    expect(screen.page.locator("#title")).to_have_text("Good morning")
    expect(screen.page.locator("nav [aria-current]")).to_have_text("Good morning")


def test_a_reply_reads_the_same_live_and_after_a_reload(alice: Screen, model: Model) -> None:
    model.says(*PIECES)
    alice.ask()
    alice.expect_status("completed")
    live = alice.html()
    assert len(live) == 5
    assert '<span class="k">def</span>' in live[2]
    alice.page.reload()
    alice.expect_button("send")
    assert alice.html() == live


def test_a_reload_in_mid_reply_shows_what_was_there_and_goes_on(alice: Screen, model: Model) -> None:
    half = MARKDOWN.index("return") // 5
    model.says(*PIECES[:half], None, *PIECES[half:])
    alice.ask()
    expect(alice.content).to_contain_text("def f(x)")
    before = alice.html()
    # The page is rendered from the last checkpoint, so it may show less for a moment, but the socket brings the rest.
    alice.page.reload()
    expect(alice.content).to_contain_text("def f(x)")
    alice.page.wait_for_function("count => document.querySelectorAll('.block').length >= count", arg=len(before))
    alice.expect_button("stop")
    model.go()
    alice.expect_status("completed")
    live = alice.html()
    alice.page.reload()
    alice.expect_button("send")
    assert alice.html() == live


def test_leaving_a_room_and_coming_back_finds_the_reply_going_on(alice: Screen, model: Model) -> None:
    model.says("first ", None, "second")
    alice.ask()
    expect(alice.content).to_have_text("first")
    room = alice.page.url
    alice.open("/rooms/")
    alice.page.goto(room)
    expect(alice.content).to_have_text("first")
    alice.expect_button("stop")
    model.go()
    expect(alice.content).to_have_text("first second")


def test_another_tab_shows_prompt_and_reply_as_they_come(alice: Screen, new_screen: NewScreen, model: Model) -> None:
    other = new_screen(beside=alice)
    other.page.goto(alice.page.url)
    model.says("one ", None, "two")
    alice.ask("From the first tab")
    expect(other.prompts).to_have_text(re.compile("From the first tab"))
    expect(other.content).to_have_text("one")
    model.go()
    other.expect_status("completed")
    alice.expect_status("completed")
    assert other.html() == alice.html()


def test_a_prompt_is_shown_as_it_was_typed(alice: Screen, model: Model) -> None:
    model.says("ok")
    alice.ask("**not bold** <b>x</b>\n  two\n\nfour")
    expect(alice.prompts.locator(".text")).to_have_text("**not bold** <b>x</b>\n  two\n\nfour")
    alice.page.reload()
    assert alice.prompts.locator(".text").inner_text() == "**not bold** <b>x</b>\n  two\n\nfour"


def test_hostile_text_stays_text_everywhere(alice: Screen, model: Model) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(1)</script>[x](javascript:alert(1))"
    model.says(hostile[:20], hostile[20:])
    alice.ask(hostile)
    alice.expect_status("completed")
    alice.page.reload()
    for place in ("#log", "nav", "#title"):
        assert alice.page.locator(place).locator("img, script, [onerror], a[href^=javascript]").count() == 0
    expect(alice.content).to_contain_text("<script>alert(1)</script>")


def test_reasoning_is_open_while_it_comes_and_folds_when_the_answer_begins(alice: Screen, model: Model) -> None:
    model.says(None, "The answer.", reasoning=("Let me ", "think."))
    alice.ask()
    expect(alice.reasoning).to_have_text("Let me think.")
    expect(alice.reasoning).to_be_visible()
    model.go()
    expect(alice.content).to_have_text("The answer.")
    expect(alice.reasoning).to_be_hidden()
    alice.page.reload()
    alice.reply.locator("summary").click()
    expect(alice.reasoning).to_have_text("Let me think.")


def test_a_reply_cut_at_the_models_limit_says_so_and_can_be_continued(alice: Screen, model: Model) -> None:
    model.says("As long as", finish="length")
    alice.ask()
    expect(alice.state).to_have_text("The reply reached its length limit")
    model.says(" it goes.")
    alice.action("continue").click()
    alice.expect_status("completed")
    expect(alice.replies).to_have_count(1)
    expect(alice.content).to_have_text("As long as it goes.")


def test_a_failing_model_is_told_in_words_and_can_be_tried_again(alice: Screen, model: Model) -> None:
    model.answers(401)
    alice.ask()
    alice.expect_status("failed")
    expect(alice.state).to_have_text("The model server refused this site's key.")
    live = alice.state.text_content() or ""
    alice.page.reload()
    expect(alice.state).to_have_text(live)
    model.says("Now it works.")
    alice.action("regenerate").click()
    expect(alice.content).to_have_text("Now it works.")
    expect(alice.replies).to_have_count(1)


def test_regenerate_puts_another_reply_in_the_place_of_the_last(alice: Screen, model: Model) -> None:
    model.says("first")
    alice.ask()
    expect(alice.content).to_have_text("first")
    alice.expect_button("send")
    model.says("second")
    alice.action("regenerate").click()
    expect(alice.content).to_have_text("second")
    alice.expect_button("send")
    alice.page.reload()
    expect(alice.replies).to_have_count(1)
    expect(alice.content).to_have_text("second")
