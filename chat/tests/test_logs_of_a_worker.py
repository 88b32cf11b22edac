"""What a real worker logs of prompts, stops and failures: with ids, and never what was said or what is secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from chat.tests.conftest import NewSite
from chat.tests.program import Program, make_token
from testing.client import Account
from testing.model_server import ModelServer
from testing.workers import Site

pytestmark = pytest.mark.processes

PROMPT = "Tell nobody that the treasure lies under the old lighthouse"
REPLY = "I have already told the seagulls everything about it"
ECHOED = {"error": {"message": f"can't read: {PROMPT[10:40]}", "type": "invalid_request_error"}}
METRICS_TOKEN = "a-token-that-prometheus-has"
API_KEY = "sk-a-key-of-the-model-server"

Line = dict[str, Any]


@pytest.fixture(scope="module")
def talkative(new_site: NewSite, model_server: ModelServer) -> Iterator[Site]:
    """One worker that logs as much as it can."""
    model_server.script("seagulls", {"steps": [{"text": REPLY}, {"finish": "stop"}, {"done": True}]})
    model_server.script("parrot", {"status": 400, "json": ECHOED})
    with new_site(
        1,
        OPENAI_API_KEY=API_KEY,
        CHAT_DEFAULT_MODEL="steady",
        METRICS_TOKEN=METRICS_TOKEN,
        LOG_FORMAT="json",
        LOG_LEVEL="DEBUG",
    ) as site:
        yield site


def lines_of(site: Site) -> list[Line]:
    return [json.loads(line) for line in site.workers[0].log().splitlines()]


async def logged(site: Site, **wanted: object) -> list[Line]:
    """The lines with these fields, once there are any."""
    async with asyncio.timeout(10):
        while not (found := [line for line in lines_of(site) if wanted.items() <= line.items()]):  # noqa: ASYNC110  # a log has no event
            await asyncio.sleep(0.05)
    return found


async def ask(alice: Account, model: str) -> str:
    async with alice.open_room(alice.create_room()) as socket:
        inference_id: str = (await socket.ask(PROMPT, model=model))["inference_id"]
        await socket.wait_for("end", inference_id=inference_id)
    return inference_id


async def test_every_line_is_json_and_those_of_an_inference_carry_its_id_and_that_of_its_socket(
    talkative: Site,
) -> None:
    alice = talkative.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        inference_id = (await socket.ask("Hello"))["inference_id"]
        position = await socket.wait_for_position(inference_id, 20)
        await socket.stop(inference_id, position)
    await logged(talkative, method="WEBSOCKET")
    found = await logged(talkative, inference_id=inference_id)
    assert [line["message"].split()[0] for line in found if line["logger"] == "inference.chronicle"] == [
        *("started", "first", "stop", "stopped", "stop")
    ]
    assert len({line["socket_id"] for line in found}) == 1


async def test_the_id_of_a_request_is_in_its_line_and_in_what_it_has_begun(talkative: Site) -> None:
    token = make_token(talkative.account("alice"))
    async with Program(talkative.url, token) as program:
        room = await program.post("/rooms", title="Letters")
        response = await program.http.post(
            f"/rooms/{room['id']}/ask", json={"text": "Hi", "model": "echo"}, headers={"X-Request-ID": "my-own-id"}
        )
    assert response.headers["x-request-id"] == "my-own-id"
    (line,) = await logged(talkative, request_id="my-own-id", logger="chatsite.requests")
    assert (line["method"], line["path"], line["status"]) == ("POST", f"/api/v1/rooms/{room['id']}/ask", 200)
    inference_id = response.json()["inference"]["inference_id"]
    assert {line["request_id"] for line in await logged(talkative, inference_id=inference_id)} == {"my-own-id"}


async def test_nothing_that_was_said_or_is_secret_is_logged(talkative: Site) -> None:
    alice = talkative.account("alice")
    token = make_token(alice)
    for model in ("seagulls", "parrot"):
        inference_id = await ask(alice, model)
    async with Program(talkative.url, token) as program:
        await program.http.get("/rooms", params={"after": PROMPT})
        await program.http.post("/rooms", content=f'{{"title": "{PROMPT}", "no": "{REPLY}"}}')
    alice.http.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
    alice.http.get(f"/rooms/found/?q={PROMPT}")
    for link in ("invited/SECRET-of-an-invitation/", "password/reset/MQ/SECRET-of-a-reset/"):
        alice.http.get(f"/accounts/{link}")
    await logged(talkative, path="/accounts/password/reset/...")
    (line,) = await logged(talkative, inference_id=inference_id, level="WARNING")
    assert line["message"].startswith("failed: model_refused_request")
    log = talkative.workers[0].log()
    for secret in (*alice.cookies.values(), alice.password, token, METRICS_TOKEN, API_KEY, "SECRET-of"):
        assert secret not in log
    for said in (PROMPT[10:30], REPLY[10:30]):
        assert said not in log
