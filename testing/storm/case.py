"""One inference of a storm: who asked, who pressed Stop, and what the screens showed. `verdict` judges it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg

from testing.client import Account
from testing.model_server import Record
from testing.storm.replies import Reply
from testing.storm.stage import Stage
from testing.storm.tab import PATIENCE_SECONDS, Impatient, Tab
from testing.workers import Worker

HTTP_PAUSE_SECONDS = 0.5
AGREE_SECONDS = 20.0
LOOK_SECONDS = 0.05
TOLD_SECONDS = 1.0
"""How soon a second tab is told of a new reply (CASES 51)."""


@dataclass
class Press:
    """One press of Stop: the text on the screen that asked, when it was sent on its way, and what came of it."""

    shown: str
    position: int | None
    sent_at: float
    outcome: str = ""
    answered: int | None = None
    answered_at: float = 0.0


@dataclass
class Case:
    """What happened in one inference. Times are `time.monotonic()`."""

    number: int
    stage: Stage
    person: Account
    room_id: str
    dice: random.Random
    scenario: str = ""
    reply: Reply = field(default_factory=lambda: Reply("", []))
    owner: Worker | None = None
    inference_id: str = ""
    asked_at: float = 0.0
    started_at: float = 0.0
    told_at: float | None = None
    ended_at: float = 0.0
    agreed_at: float = 0.0
    """When all screens showed the same."""
    has_next_prompt_at: float = float("inf")
    presses: list[Press] = field(default_factory=list)
    screens: dict[str, str] = field(default_factory=dict)
    requests: list[Record] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    tabs: list[Tab] = field(default_factory=list)

    @property
    def model(self) -> str:
        """A name of its own, so that the model server's journal tells what belongs to this case."""
        return f"storm-{self.number}"

    async def open(self, address: Callable[[], str] | None = None) -> Tab:
        """A tab of the room, on any worker."""
        tab = Tab(self.person, self.room_id, address or self.stage.any_url)
        self.tabs.append(tab)
        await tab.open()
        return tab

    async def begin(self, reply: Reply, *, watchers: int = 1) -> Tab:
        """Open the tabs and ask for this reply on some worker; gives the tab that asked. The others are `tabs[1:]`."""
        self.reply = reply
        await asyncio.to_thread(self.stage.model.script, self.model, *reply.scripts)
        self.owner = self.stage.any_worker()
        first = self.owner.url
        addresses = iter([first])
        asking = await self.open(lambda: next(addresses, "") or self.stage.any_url())
        for _ in range(watchers):
            await self.open()
        self.asked_at = time.monotonic()
        inference_id = await asking.ask(f"Prompt {self.number}", model=self.model)
        self.started_at = time.monotonic()
        if asking.attempts > 1 or next(addresses, None):
            self.owner = None
        self.inference_id = inference_id or await self._by_the_row()
        return asking

    async def note_when_others_are_told(self) -> None:
        """Wait for the `start` in the second tab."""
        if len(self.tabs) > 1 and await self.tabs[1].wait_for_start(self.inference_id, TOLD_SECONDS):
            self.told_at = time.monotonic()

    async def press(self, tab: Tab, *, position: int | None = None, delay_seconds: float = 0.0) -> Press:
        """Stop over the tab's socket, at `position` or else where its screen stands, so long after the press."""
        press = self._press(tab, position)
        await asyncio.sleep(delay_seconds)
        press.sent_at = time.monotonic()
        result = await tab.stop(self.inference_id, press.position)
        press.outcome, press.answered, press.answered_at = result["outcome"], result["position"], time.monotonic()
        return press

    async def press_by_http(self, tab: Tab, *, is_at_screen: bool = True) -> Press:
        """Stop over HTTP, where the tab's screen stands or without a position."""
        press = self._press(tab, None)
        press.position = press.position if is_at_screen else None
        answer = await self._post(press)
        press.outcome, press.answered, press.answered_at = answer["outcome"], answer["position"], time.monotonic()
        return press

    async def settle(self) -> None:
        """Wait for the end in every tab; note what they show, and what a fresh one is shown."""
        try:
            for tab in self.tabs:
                await tab.show(self.inference_id)
            for tab in self.tabs:
                await tab.wait_for_end(self.inference_id)
            self.ended_at = time.monotonic()
            await self._note_fresh_screen()
        except Impatient as error:
            self.violations.append(f"I3 {error}")

    async def ask_next(self, tab: Tab) -> None:
        """Another prompt, which has to be answered."""
        self.has_next_prompt_at = time.monotonic()
        text = f"and then {self.number}"
        model = f"{self.model}-next"
        await asyncio.to_thread(self.stage.model.script, model, {"steps": [{"echo": True}, {"finish": "stop"}]})
        inference_id = await tab.ask(text, model=model)
        if inference_id is None:
            return
        end = await tab.wait_for_end(inference_id)
        if end["status"] != "completed" and end["status"] != "interrupted":
            self.violations.append(f"I4 the next prompt ended with {end}")
        elif end["status"] == "completed" and tab.shown(inference_id) != text:
            self.violations.append(f"I4 the next prompt was answered {tab.shown(inference_id)!r}")

    async def finish(self) -> None:
        """Close the tabs and read the model server's journal."""
        for tab in self.tabs:
            await tab.close()
        self.requests = await asyncio.to_thread(self.stage.model.requests, self.model)
        for name in (self.model, f"{self.model}-next"):
            await asyncio.to_thread(self.stage.model.unscript, name)

    def note_screens(self) -> None:
        """What all tabs show now."""
        for index, tab in enumerate(self.tabs):
            self.screens[f"tab {index}"] = tab.shown(self.inference_id)

    def describe(self) -> list[str]:
        """What there is to know about a case that went wrong; times in seconds after the prompt."""
        presses = [
            f"    press at {press.position} sent {self._at(press.sent_at)}: {press.outcome} {press.answered}"
            f" {self._at(press.answered_at)}"
            for press in self.presses
        ]
        screens = [f"    {name}: {len(shown)} characters" for name, shown in self.screens.items()]
        requests = [
            f"    model {self._at(record.started_at)} {record.state} {record.chunks_sent} chunks"
            f" {self._at(record.ended_at)}"
            for record in self.requests
        ]
        times = f"    asked {self.asked_at:.1f}, started {self._at(self.started_at)}, ended {self._at(self.ended_at)}"
        return [times, *presses, *requests, *screens, *(f"    {frame}" for tab in self.tabs for frame in tab.ends)]

    def _at(self, moment: float | None) -> str:
        return f"{moment - self.asked_at:+.2f}" if moment else "never"

    async def _note_fresh_screen(self) -> None:
        fresh = await self.open()
        await fresh.show(self.inference_id)
        await fresh.wait_for_end(self.inference_id)
        # A later end may still be on its way to some; the verdict knows how long it may take.
        for _ in range(int(AGREE_SECONDS / LOOK_SECONDS)):
            self.note_screens()
            if len(set(self.screens.values())) == 1 and await self._is_in_the_row():
                break
            await asyncio.sleep(LOOK_SECONDS)
        self.agreed_at = time.monotonic()

    async def _is_in_the_row(self) -> bool:
        query = "SELECT position FROM chat_inference WHERE id = %s"
        with suppress(psycopg.Error):
            ((position,),) = [row.values() for row in await self.stage.aquery(query, self.inference_id)]
            return bool(position == len(self.screens["tab 0"]))
        return False

    def _press(self, tab: Tab, position: int | None) -> Press:
        shown = tab.shown(self.inference_id)
        press = Press(shown, len(shown) if position is None else min(position, len(shown)), time.monotonic())
        self.presses.append(press)
        return press

    async def _post(self, press: Press) -> dict[str, Any]:
        body = {"inference_id": self.inference_id} | ({} if press.position is None else {"position": press.position})
        headers = {"X-CSRFToken": self.person.cookies["csrftoken"]}
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        async with httpx.AsyncClient(cookies=self.person.cookies, trust_env=False, timeout=10) as http:
            for _ in range(int(PATIENCE_SECONDS / HTTP_PAUSE_SECONDS)):
                with suppress(httpx.HTTPError):
                    url = f"{self.stage.any_url()}/api/v1/inference/stop"
                    response = await http.post(url, json=body, headers=headers)
                    if response.status_code in {200, 202, 404}:
                        return dict(response.json())
                if time.monotonic() > give_up_at:
                    break
                await asyncio.sleep(HTTP_PAUSE_SECONDS)
        raise Impatient("no answer to a stop by HTTP")

    async def _by_the_row(self) -> str:
        rows = await self.stage.aquery("SELECT id FROM chat_inference WHERE model = %s", self.model)
        return str(rows[0]["id"])
