"""The limits as clients meet them, on a site with narrow ones."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from pytest_django.fixtures import Settings

from chat.runtime import reply_limits
from chat.tests.program import Program, make_token
from inference.runner import NO_LIMITS, ReplyLimits
from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING
from testing.services import PROJECT, site_environment
from testing.workers import Site

MAX_REPLY_CHARACTERS = 50
STREAMS = 3
TALK: Script = {"steps": [OPENING, {"text": "{n}:{word} ", "repeat": 600, "pace_seconds": 0.02}, *ENDING]}
SILENCE: Script = {"steps": [OPENING, {"text": "Well"}, {"stall": True}]}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory, model_server: ModelServer) -> Iterator[Site]:
    """One worker on SQLite."""
    database_url = f"sqlite:///{tmp_path_factory.mktemp('site') / 'site.sqlite3'}"
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=PROJECT, env=site_environment(DATABASE_URL=database_url), check=True)
    limits = {"MAX_LIVE_PER_PERSON": 1, "MAX_SOCKETS_PER_PERSON": STREAMS, "MAX_REPLY_CHARACTERS": MAX_REPLY_CHARACTERS}
    variables = {name: str(value) for name, value in limits.items()}
    with Site(1, database_url=database_url, openai_base_url=model_server.url, **variables) as site:
        yield site


@pytest.mark.processes
async def test_a_reply_that_grows_too_long_is_cut_and_the_model_is_freed(
    narrow: Site, model_server: ModelServer
) -> None:
    model_server.script("talkative", TALK)
    talker = narrow.account("talker")
    async with talker.open_room(talker.create_room()) as socket:
        inference_id = (await socket.ask("Go on", model="talkative"))["inference_id"]
        end = await socket.wait_for("end", inference_id=inference_id)
        assert (end["status"], end["finish_reason"], end["position"]) == ("completed", "length", MAX_REPLY_CHARACTERS)
        assert len(socket.text(inference_id)) == MAX_REPLY_CHARACTERS
    request = model_server.requests("talkative")[-1]
    await asyncio.to_thread(model_server.wait_closed, request.id, 2)


@pytest.mark.processes
async def test_one_reply_too_many_is_refused_with_when_to_try_again_and_taken_right_behind_a_stop(
    narrow: Site, model_server: ModelServer
) -> None:
    model_server.script("silent", SILENCE)
    asker = narrow.account("asker")
    here, there = asker.create_room(), asker.create_room()
    async with asker.open_room(here) as first, asker.open_room(there) as second:
        inference_id = (await first.ask("Hello", model="silent"))["inference_id"]
        client_id = str(uuid.uuid4())
        await second.send("send", client_id=client_id, text="Me too", model="silent")
        refusal = await second.wait_for("error", client_id=client_id)
        assert (refusal["code"], refusal["retry_after"]) == ("rate_limited", 5)
        async with Program(narrow.url, make_token(asker)) as program:
            answer = await program.http.post(f"/rooms/{there}/ask", json={"text": "Me too"})
            assert (answer.status_code, answer.headers["Retry-After"]) == (429, "5")
        await first.stop(inference_id)
        await second.ask("Me too", model="silent")


@pytest.mark.processes
async def test_one_event_stream_too_many_is_refused_before_anything_is_asked(
    narrow: Site, model_server: ModelServer
) -> None:
    model_server.script("silent", SILENCE)
    follower = narrow.account("follower")
    room_id = follower.create_room()
    async with (
        follower.open_room(room_id) as socket,
        Program(narrow.url, make_token(follower)) as program,
        AsyncExitStack() as streams,
    ):
        inference_id = (await socket.ask("Hello", model="silent"))["inference_id"]
        path = f"/inference/{inference_id}/events"
        followed = [await streams.enter_async_context(program.events("GET", path)) for _ in range(STREAMS)]
        for frames in followed:
            await anext(frames)
        refused = await program.http.get(path)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
        asked = await program.http.post(f"/rooms/{room_id}/ask", json={"text": "Hello", "stream": True})
        assert asked.status_code == 429
        assert len((await program.get(f"/rooms/{room_id}/messages"))["messages"]) == 2
        await streams.aclose()
        await _until_free(program, path)


async def _until_free(program: Program, path: str) -> None:
    async with asyncio.timeout(10):
        while True:
            async with program.http.stream("GET", path) as response:
                if response.status_code == 200:
                    return


def test_a_reply_gets_the_limits_of_the_settings(settings: Settings) -> None:
    settings.MAX_REPLY_CHARACTERS, settings.MAX_REPLY_SECONDS = 7, 1.5
    assert reply_limits() == ReplyLimits(characters=7, seconds=1.5)
    settings.LIMITS = False
    assert reply_limits() == NO_LIMITS
