"""A site whose Redis and PostgreSQL speak TLS and want a password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING
from testing.secured import QUOTED, SecuredPostgres, SecuredRedis, certificate_of
from testing.storm.room import open_room
from testing.workers import Site, Worker

pytestmark = pytest.mark.processes

TALK: Script = {"steps": [OPENING, {"text": "{n}:{word} ", "repeat": 600, "pace_seconds": 0.05}, *ENDING]}


@pytest.fixture(scope="module")
def secured(model_server: ModelServer) -> Iterator[Site]:
    """Two workers."""
    certificate, _ = certificate_of("127.0.0.1")
    with (
        SecuredPostgres() as postgres,
        SecuredRedis() as redis,
        Site(
            2,
            database_url=postgres.create_database("site"),
            redis_url=redis.url,
            openai_base_url=model_server.url,
            REDIS_CA_FILE=str(certificate),
            CHAT_DEFAULT_MODEL="steady",
        ) as site,
    ):
        yield site


async def test_a_stop_is_confirmed_across_workers_over_tls(secured: Site, model_server: ModelServer) -> None:
    async with open_room(secured, model_server, TALK) as room:
        inference_id = await room.ask()
        position = await room.other.wait_for_position(inference_id, 30)
        assert (await room.other.stop(inference_id, position))["outcome"] == "stopped"
        for end in await room.ends(inference_id):
            assert (end["status"], end["position"]) == ("stopped", position)


def test_the_database_lets_nobody_in_without_tls(secured: Site) -> None:
    """Otherwise the test above would show nothing."""
    plain = secured.variables["DATABASE_URL"].replace("sslmode=verify-full", "sslmode=disable")
    with pytest.raises(psycopg.OperationalError, match="no encryption"):
        psycopg.connect(plain)


async def test_a_redis_that_can_not_show_who_it_is_is_not_talked_to(secured: Site) -> None:
    """A certificate of the same address that somebody else has made."""
    stranger, _ = certificate_of("127.0.0.1", "somebody else's")
    with Worker({**secured.variables, "REDIS_CA_FILE": str(stranger)}) as worker:
        url = f"{worker.url}/readyz"
        response = await asyncio.to_thread(httpx.get, url, timeout=15, trust_env=False)
        assert (response.status_code, response.json()["redis"], response.json()["database"]) == (503, False, True)
        assert "CERTIFICATE_VERIFY_FAILED" in worker.log()
        assert QUOTED not in worker.log()
