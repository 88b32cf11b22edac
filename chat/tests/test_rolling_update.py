"""All workers are replaced, one by one, while people talk: DESIGN section 7, and what deploy/k8s does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from chat.tests.conftest import NewSite
from testing.model_server import ModelServer, Script
from testing.model_server.script import numbered_text
from testing.storm.tab import Tab
from testing.workers import Site, Worker

pytestmark = pytest.mark.processes

WORD = "{n}:{word} "
WORDS = 40
TALK: Script = {"steps": [{"text": WORD, "repeat": WORDS, "pace_seconds": 0.05}, {"finish": "stop"}]}
WHOLE = "".join(numbered_text(WORD, number) for number in range(WORDS))
MODEL = "rolling"
PEOPLE = 6
DRAIN_SECONDS = 20


@pytest.fixture
def site(new_site: NewSite, model_server: ModelServer) -> Iterator[Site]:
    """Two workers of the old version."""
    model_server.script(MODEL, TALK)
    with new_site(2, CHAT_DEFAULT_MODEL=MODEL, DRAIN_SECONDS=str(DRAIN_SECONDS), LIMITS="off") as running:
        yield running


async def talk(site: Site, name: str, updated: asyncio.Event) -> int:
    """Ask, read to the end, ask again until the update is done; gives how many prompts were asked."""
    account = await asyncio.to_thread(site.account, name)
    tab = Tab(account, await asyncio.to_thread(account.create_room), lambda: site.url)
    await tab.open()
    asked = 0
    while not updated.is_set():
        tab.attempts = 0
        inference_id = await tab.ask(f"Prompt {asked}", model=MODEL)
        asked += 1
        if inference_id is not None:
            end = await tab.wait_for_end(inference_id)
            assert (end["status"], tab.shown(inference_id)) == ("completed", WHOLE)
    await tab.close()
    return asked


async def replace_all(site: Site, started: ExitStack) -> None:
    """A new one comes up, then an old one is told to go and ends by itself when its replies have ended."""
    serving = list(site.workers)
    for old in site.workers:
        new = Worker(site.variables)
        serving.append(await asyncio.to_thread(started.enter_context, new))
        site.proxy.set_backends([worker.port for worker in serving])
        old.terminate()
        assert await asyncio.to_thread(old.wait, DRAIN_SECONDS) == 0
        serving.remove(old)
        site.proxy.set_backends([worker.port for worker in serving])


async def test_an_update_under_load_loses_no_token_and_no_prompt(site: Site) -> None:
    updated = asyncio.Event()
    with ExitStack() as started:
        async with asyncio.TaskGroup() as everybody:
            talks = [everybody.create_task(talk(site, f"person{number}", updated)) for number in range(PEOPLE)]
            await replace_all(site, started)
            updated.set()
    with psycopg.connect(site.variables["DATABASE_URL"]) as connection:
        prompts = connection.execute("SELECT count(*) FROM chat_message WHERE role = 'user'").fetchone()
        others = connection.execute(
            "SELECT status, text FROM chat_message WHERE role <> 'user' AND text <> %s", [WHOLE]
        )
        assert prompts == (sum(talk.result() for talk in talks),)
        assert others.fetchall() == []
