"""A room as a person sees it: one tab of one person, with the words of the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import ConsoleMessage, Locator, Page, WebSocketRoute, expect

from testing.client import Account

Frame = dict[str, Any]

# What Chromium says of a link that breaks and of a site that is away, which is what some tests are about.
BROKEN_LINK = ("WebSocket connection to", "net::ERR_INTERNET_DISCONNECTED", "status of 503")


class Screen:
    """One tab. `faults` is what the browser has complained about."""

    def __init__(self, page: Page, site_url: str, *, account: Account) -> None:
        self.page = page
        self.site_url = site_url
        self.account = account
        self.faults: list[str] = []
        page.set_default_timeout(10_000)
        page.set_default_navigation_timeout(30_000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._listen)

    @property
    def box(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    @property
    def button(self) -> Locator:
        return self.page.locator("#go")

    @property
    def prompts(self) -> Locator:
        return self.page.locator('#log > [data-role="user"]')

    @property
    def replies(self) -> Locator:
        return self.page.locator('#log > [data-role="assistant"]')

    @property
    def reply(self) -> Locator:
        """The latest."""
        return self.replies.last

    @property
    def content(self) -> Locator:
        return self.reply.locator('[data-part="content"]')

    @property
    def reasoning(self) -> Locator:
        return self.reply.locator('[data-part="reasoning"]')

    @property
    def state(self) -> Locator:
        """The line below the latest reply."""
        return self.reply.locator(".state")

    def open(self, path: str) -> None:
        self.page.goto(self.site_url + path)

    def open_new_room(self) -> str:
        room_id = self.account.create_room("")
        self.open(f"/rooms/{room_id}/")
        return room_id

    def press_until(self, name: str, shown: Locator) -> None:
        """Press the button or link of this name, on each page anew, until a page shows that."""
        either = self.page.locator(".button.primary", has_text=name)
        while not shown.is_visible():
            if either.is_visible():
                either.click()
            expect(shown.or_(either)).to_be_visible()

    def ask(self, text: str = "Hello") -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def action(self, name: str) -> Locator:
        """A button of the latest reply: continue, regenerate, copy."""
        return self.reply.locator(f'[data-action="{name}"]')

    def expect_status(self, status: str) -> None:
        expect(self.reply).to_have_attribute("data-status", status, timeout=10_000)

    def expect_button(self, state: str) -> None:
        expect(self.button).to_have_attribute("data-state", state, timeout=10_000)

    def html(self) -> list[str]:
        """The blocks of the latest reply as they stand in the document."""
        script = "blocks => blocks.map(block => block.innerHTML)"
        blocks: list[str] = self.content.locator("> .group > .block").evaluate_all(script)
        return blocks

    def text(self) -> str:
        return self.content.text_content() or ""

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(known in message.text for known in BROKEN_LINK):
            self.faults.append(message.text)


class Wire:
    """Stands between a tab and the site's socket: holds frames back, changes or answers them, cuts the link.

    To be made before the room is opened.
    """

    def __init__(self, screen: Screen) -> None:
        self.sent: list[Frame] = []
        self.received: list[Frame] = []
        self.holds_from_page: Callable[[Frame], bool] = lambda frame: False
        self.holds_from_site: Callable[[Frame], bool] = lambda frame: False
        self.changes: Callable[[Frame], Frame] = lambda frame: frame
        """What becomes of a frame of the site."""
        self.answers: Callable[[Frame], Frame | None] = lambda frame: None
        """What a frame of the page is answered with, in the site's stead; None lets it through."""
        self.is_down = False
        self._held: list[Callable[[], None]] = []
        self._links: list[WebSocketRoute] = []
        screen.page.route_web_socket("**/ws/**", self._connect)

    def release(self) -> None:
        """Send what was held back, and hold nothing any more."""
        self.holds_from_page = self.holds_from_site = lambda frame: False
        held, self._held = self._held, []
        for send in held:
            send()

    def cut(self, *, code: int = 1012) -> None:
        """The link breaks, and stays broken until `mend`."""
        self.is_down = True
        for link in self._links:
            link.close(code=code)
        self._links.clear()

    def mend(self) -> None:
        self.is_down = False

    def types_sent(self) -> list[str]:
        return [frame["type"] for frame in self.sent]

    def _connect(self, link: WebSocketRoute) -> None:
        if self.is_down:
            link.close(code=1012)
            return
        self._links.append(link)
        site = link.connect_to_server()
        link.on_message(lambda text: self._from_page(json.loads(str(text)), link, site))
        site.on_message(lambda text: self._from_site(json.loads(str(text)), link))

    def _from_page(self, frame: Frame, link: WebSocketRoute, site: WebSocketRoute) -> None:
        self.sent.append(frame)
        answer = self.answers(frame)
        if answer is not None:
            self._from_site(answer, link)
        else:
            self._pass(frame, site.send, is_held=self.holds_from_page(frame))

    def _from_site(self, frame: Frame, link: WebSocketRoute) -> None:
        self.received.append(frame)
        self._pass(self.changes(frame), link.send, is_held=self.holds_from_site(frame))

    def _pass(self, frame: Frame, send: Callable[[str], None], *, is_held: bool) -> None:
        if is_held:
            self._held.append(lambda: send(json.dumps(frame)))
        else:
            send(json.dumps(frame))
