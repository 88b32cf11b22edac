"""Workers that restart or die under an open page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from chat.tests.conftest import NewSite
from chat.tests.page.conftest import PAGE, Model
from chat.tests.page.screen import Screen
from testing.server_process import wait_until
from testing.workers import Site

START_SECONDS = 90


@pytest.fixture(scope="module")
def site(new_site: NewSite) -> Iterator[Site]:
    """One of their own: what these tests do to it must not reach the others."""
    with new_site(2, **PAGE) as running:
        yield running


def start_again(site: Site) -> None:
    for worker in site.workers:
        worker.launch()
    for worker in site.workers:
        worker.start(timeout_seconds=START_SECONDS)


def test_a_restarting_worker_loses_no_word(alice: Screen, site: Site, model: Model) -> None:
    model.says("before ", None, "after")
    alice.ask()
    expect(alice.content).to_have_text("before")
    for worker in site.workers:
        worker.terminate()
    model.go()
    for worker in site.workers:
        assert worker.wait(10) == 0
    start_again(site)
    alice.expect_status("completed")
    expect(alice.content).to_have_text("before after")
    expect(alice.page.locator("#link-state")).to_be_hidden(timeout=20_000)


def test_a_killed_worker_leaves_a_reply_that_says_so_and_can_be_continued(
    alice: Screen, site: Site, model: Model
) -> None:
    model.says("what came ", None)
    alice.ask()
    expect(alice.content).to_have_text("what came")
    path = alice.page.url.removeprefix(alice.site_url)
    wait_until(lambda: "what came" in alice.account.get(path).text, "the text has been saved")
    for worker in site.workers:
        worker.kill()
    start_again(site)
    expect(alice.reply).to_have_attribute("data-status", "interrupted", timeout=30_000)
    expect(alice.state).to_have_text("The reply was cut off")
    expect(alice.content).to_have_text("what came")
    model.says("and the rest.")
    alice.action("continue").click()
    expect(alice.content).to_have_text("what came and the rest.")
