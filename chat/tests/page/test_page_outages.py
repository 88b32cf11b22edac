"""The database away under a browser: what the person sees, and that nothing typed is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from chat.tests.page.axe import violations
from chat.tests.page.conftest import MODEL, Model, NewScreen
from chat.tests.page.screen import Screen
from testing.model_server import ModelServer
from testing.proxy import FaultProxy
from testing.services import PostgresServer, RedisServer
from testing.workers import Site


@pytest.fixture(scope="module")
def database(postgres_server: PostgresServer) -> Iterator[FaultProxy]:
    """The way of this module's site to it."""
    with FaultProxy(postgres_server.port) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def site(
    postgres_server: PostgresServer, database: FaultProxy, session_redis: RedisServer, model_server: ModelServer
) -> Iterator[Site]:
    """One of their own: what these tests do to it must not reach the others."""
    variables = {"CHAT_MODELS": MODEL, "CHAT_DEFAULT_MODEL": MODEL, "LIMITS": "off", "DATABASE_TIMEOUT_SECONDS": "1"}
    with postgres_server.new_database() as url:
        through = url.replace(f":{postgres_server.port}/", f":{database.port}/")
        with Site(
            1, database_url=through, redis_url=session_redis.url, openai_base_url=model_server.url, **variables
        ) as running:
            yield running


def end(database: FaultProxy) -> None:
    database.refuse()
    database.reset_all()


def expect_outage(screen: Screen) -> None:
    expect(screen.page.get_by_role("heading", name="Not just now")).to_be_visible()


def test_a_first_prompt_is_sent_again_by_a_button_and_answered(
    new_screen: NewScreen, database: FaultProxy, model: Model
) -> None:
    model.says("Here I am.")
    screen = new_screen("alice")
    screen.open("/rooms/")
    end(database)
    screen.ask("Are you there?")
    expect_outage(screen)
    assert violations(screen) == []
    screen.page.get_by_role("button", name="Send it again").click()
    expect_outage(screen)
    database.accept()
    screen.press_until("Send it again", screen.reply)
    expect(screen.prompts.last).to_contain_text("Are you there?")
    expect(screen.content).to_have_text("Here I am.")


def test_a_page_that_did_not_come_is_asked_for_again(alice: Screen, database: FaultProxy) -> None:
    address = alice.page.url
    end(database)
    alice.page.reload()
    expect_outage(alice)
    database.accept()
    alice.press_until("Try again", alice.box)
    assert alice.page.url == address
