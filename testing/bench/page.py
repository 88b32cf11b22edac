"""Section `page`: what a delta costs the browser, early and late in one long reply, and does the page stay awake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from playwright.async_api import CDPSession, Page, async_playwright

from testing.bench import markdown
from testing.bench.load import Place
from testing.bench.servers import Ground, UvloopWorker
from testing.bench.table import Table
from testing.model_server import ModelServer, Step
from testing.process_usage import cpu_seconds
from testing.workers import Worker

MODEL = "page"
REPLY_CHARACTERS = 51_000
CHUNK_CHARACTERS = 5
CHUNKS_PER_SECOND = 200
WINDOWS = ((500, 3_500), (47_500, 50_500))
"""Between which lengths of the reply, in characters, a window is measured: what a reply of 2 kB has at its end."""
REPLIES = {
    "plain words": "Water runs down the hill and nobody has to tell it where to go.\n\n" * 900,
    **markdown.REPLIES,
}
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
REPLY_SECONDS = 300
DURATIONS = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
# The longest wait of a task that another one has put off: a key pressed then would have waited as long.
WATCH_FOR_WAITS = """() => {
  window.longestWait = 0;
  let due = performance.now() + 20;
  setInterval(() => {
    window.longestWait = Math.max(window.longestWait, performance.now() - due);
    due = performance.now() + 20;
  }, 20);
}"""


@dataclass(frozen=True)
class Moment:
    """Where the browser and the worker stand: seconds that each has spent since it began."""

    at: float
    delta_count: int
    browser: dict[str, float]
    worker_seconds: float


class Tab:
    """One tab of Chromium in a room, with its deltas counted."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page = page
        self.length = 0
        self.delta_count = 0
        self._session = session
        self._heard = asyncio.Condition()
        self._length_wanted = 0
        self._reached = asyncio.Event()
        page.on("websocket", lambda socket: socket.on("framereceived", self._count))

    async def wait_for_length(self, length: int) -> None:
        """Returns with the delta that brings the reply to so many characters."""
        self._length_wanted = length
        self._reached.clear()
        if self.length < length:
            async with asyncio.timeout(REPLY_SECONDS):
                await self._reached.wait()

    async def moment(self, worker: Worker) -> Moment:
        metrics = (await self._session.send("Performance.getMetrics"))["metrics"]
        spent = {metric["name"]: metric["value"] for metric in metrics}
        durations = {name: spent[name] for name in DURATIONS}
        return Moment(spent["Timestamp"], self.delta_count, durations, cpu_seconds(worker.process.pid))

    def _count(self, text: str | bytes) -> None:
        frame = json.loads(text)
        if frame["type"] != "delta":
            return
        self.delta_count += 1
        self.length = frame["position"]
        if self.length >= self._length_wanted:
            self._reached.set()


async def run(ground: Ground) -> Table:
    table = Table(
        f"A delta in the browser, {CHUNKS_PER_SECOND} chunks a second of {CHUNK_CHARACTERS} characters",
        [
            "reply",
            "at",
            "deltas/s",
            "ms per delta",
            "script",
            "style",
            "layout",
            "main thread",
            "worker",
            "longest wait",
        ],
    )
    with ModelServer() as model, _worker(ground, model) as worker:
        for place, (name, source) in zip(ground.rooms(worker, len(REPLIES)), REPLIES.items(), strict=True):
            model.script(MODEL, {"steps": _steps(source)})
            async with _open(place) as tab:
                await _measure(table, name, tab, worker)
    table.notes.append("Milliseconds of the tab's main thread; `longest wait` is that of a timer that was due.")
    return table


def _worker(ground: Ground, model: ModelServer) -> Worker:
    return ground.worker(UvloopWorker, OPENAI_BASE_URL=model.url, CHAT_DEFAULT_MODEL=MODEL)


async def _measure(table: Table, name: str, tab: Tab, worker: Worker) -> None:
    await tab.page.evaluate(WATCH_FOR_WAITS)
    await tab.page.locator("#prompt").fill("Go")
    await tab.page.locator("#prompt").press("Enter")
    for start, end in WINDOWS:
        await tab.wait_for_length(start)
        await tab.page.evaluate("window.longestWait = 0")
        before = await tab.moment(worker)
        await tab.wait_for_length(end)
        after = await tab.moment(worker)
        wait = await tab.page.evaluate("window.longestWait")
        table.add(name, f"{end // 1000} kB", *_cells(before, after), f"{wait:.0f} ms")


def _cells(before: Moment, after: Moment) -> list[str]:
    seconds, deltas = after.at - before.at, after.delta_count - before.delta_count
    task, *parts = (after.browser[name] - before.browser[name] for name in DURATIONS)
    worker = after.worker_seconds - before.worker_seconds
    shares = (f"{share / seconds:.0%}" for share in (task, worker))
    script, layout, style = parts
    costs = (f"{part / deltas * 1000:.2f}" for part in (task, script, style, layout))
    return [f"{deltas / seconds:.1f}", *costs, *shares]


def _steps(source: str) -> list[Step]:
    text = source[:REPLY_CHARACTERS]
    pieces = [text[start : start + CHUNK_CHARACTERS] for start in range(0, len(text), CHUNK_CHARACTERS)]
    return [{"texts": pieces, "pace_seconds": 1 / CHUNKS_PER_SECOND}, {"finish": "stop"}, {"done": True}]


@asynccontextmanager
async def _open(place: Place) -> AsyncIterator[Tab]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = await browser.new_context(viewport={"width": 1440, "height": 900})
        url = f"http://127.0.0.1:{place.port}"
        cookies = (cookie.partition("=") for cookie in place.cookie.split("; "))
        await context.add_cookies([{"name": name, "value": value, "url": url} for name, _, value in cookies])
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab = Tab(page, session)
        await page.goto(f"{url}/rooms/{place.room_id}/")
        yield tab
        await browser.close()
