"""Fixtures of the browser tests: a site of two workers, a scripted model, and people with a Chromium each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from chat.tests.conftest import NewSite
from chat.tests.page.screen import Screen
from testing.client import Account
from testing.model_server import ModelServer, Step
from testing.services import PROJECT
from testing.workers import Site

MODEL = "page"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]

# A machine that runs other tests beside these is slow, not wrong.
expect.set_options(timeout=15_000)

NewScreen = Callable[..., Screen]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/page/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.processes)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": "/usr/bin/chromium", "args": ARGUMENTS}


@pytest.fixture(scope="session", autouse=True)
def translations() -> None:
    """Compile them, as `make run` does before the site starts."""
    command = [sys.executable, "-m", "babel.messages.frontend", "-q", "compile", "-d", "locale", "-D", "django"]
    subprocess.run(command, cwd=PROJECT, check=True)


PAGE = {"CHAT_MODELS": MODEL, "CHAT_DEFAULT_MODEL": MODEL, "LIMITS": "off"}
"""Settings of a site for the browser tests."""


@pytest.fixture(scope="session")
def site(new_site: NewSite) -> Iterator[Site]:
    """One site for the browser tests; each has a room of its own."""
    with new_site(2, **PAGE) as running:
        yield running


@pytest.fixture
def model(model_server: ModelServer) -> Iterator[Model]:
    yield Model(model_server)
    model_server.unscript(MODEL)


@pytest.fixture(scope="session")
def kept_contexts(browser: Browser) -> Iterator[dict[str, BrowserContext]]:
    """By person and site: nobody loads the modules and styles of the page again for every test."""
    kept: dict[str, BrowserContext] = {}
    yield kept
    for context in kept.values():
        context.close()


@pytest.fixture
def new_screen(browser: Browser, site: Site, kept_contexts: dict[str, BrowserContext]) -> Iterator[NewScreen]:
    """`new_screen("alice")` gives a browser of that person; `new_screen(beside=screen)` a second tab.

    Another site than the common one is named by `site=…`; further options are those of a browser context.
    What the browser complains about (a policy, a fault in a module) fails the test.
    """
    contexts: list[BrowserContext] = []
    screens: list[Screen] = []

    def make(name: str = "alice", *, beside: Screen | None = None, site: Site = site, **options: Any) -> Screen:
        account = beside.account if beside else site.account(name)
        if beside:
            context = beside.page.context
        elif options:
            context = browser.new_context(**options)
            contexts.append(context)
        else:
            key = f"{name} {site.url}"
            context = kept_contexts[key] = kept_contexts.get(key) or browser.new_context()
        page = context.new_page()
        if not beside:
            make_clean(context, page, account)
        screens.append(Screen(page, account.site_url, account=account))
        return screens[-1]

    yield make
    for screen in screens:
        screen.page.close()
    for context in contexts:
        context.close()
    assert [fault for screen in screens for fault in screen.faults] == []


def make_clean(context: BrowserContext, page: Page, account: Account) -> None:
    """Leave nothing in the browser but what was loaded, and the person signed in."""
    url = account.site_url
    context.set_offline(False)
    context.clear_permissions()
    context.clear_cookies()
    context.add_cookies([{"name": name, "value": value, "url": url} for name, value in account.cookies.items()])
    session = context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "local_storage"})
    session.detach()


@pytest.fixture
def alice(new_screen: NewScreen) -> Screen:
    """Alice in a new room."""
    screen = new_screen("alice")
    screen.open_new_room()
    return screen


class Model:
    """What the scripted model says. `None` in a script waits until the test says `go()`."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server

    def says(self, *texts: str | None, reasoning: tuple[str, ...] = (), finish: str = "stop") -> None:
        thoughts: list[Step] = [{"reasoning": text} for text in reasoning]
        steps: list[Step] = [{"wait_go": True} if text is None else {"text": text} for text in texts]
        self._server.script(MODEL, {"steps": [*thoughts, *steps, {"finish": finish}, {"done": True}]})

    def says_slowly(self, text: str, count: int, pace_seconds: float = 0.02) -> None:
        repeated: Step = {"text": text, "repeat": count, "pace_seconds": pace_seconds}
        self._server.script(MODEL, {"steps": [repeated, {"finish": "stop"}, {"done": True}]})

    def answers(self, status: int) -> None:
        self._server.script(MODEL, {"status": status, "json": {"error": {"message": "no"}}})

    def breaks_after(self, text: str) -> None:
        self._server.script(MODEL, {"steps": [{"text": text}, {"sleep_seconds": 0.5}, {"rst": True}]})

    def is_silent(self) -> None:
        self._server.script(MODEL, {"steps": [{"stall": True}]})

    def go(self) -> None:
        self._server.go(MODEL)
