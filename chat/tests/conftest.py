"""Sites of real processes for the tests of this app."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from chat.tests.people import alice, bob, charlie, rita, room  # noqa: F401  # fixtures
from testing.model_server import ModelServer
from testing.services import PostgresServer, RedisServer
from testing.workers import Site


@pytest.fixture(scope="module")
def site(postgres_server: PostgresServer, session_redis: RedisServer, model_server: ModelServer) -> Iterator[Site]:
    """Three workers on PostgreSQL and Redis behind a round-robin proxy, for the tests of one module."""
    name = f"site_{uuid4().hex}"
    database_url = postgres_server.create_database(name)
    with Site(
        3,
        database_url=database_url,
        redis_url=session_redis.url,
        openai_base_url=model_server.url,
        CHAT_DEFAULT_MODEL="steady",
        LIMITS="off",
    ) as started:
        yield started
    postgres_server.drop_database(name)
