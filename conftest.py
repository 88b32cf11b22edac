"""Fixtures that tests of several packages use. The servers themselves are in testing/."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest

from testing.services import PostgresServer, RedisServer, the_postgres

pytest_plugins = ["testing.model_server.fixture"]

hypothesis.settings.register_profile("long", deadline=None)


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    """The session's PostgreSQL. A test that stops or pauses one makes its own: `with PostgresServer() as …`."""
    return the_postgres()


@pytest.fixture
def database_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A migrated, empty database of its own for a test with real server processes."""
    with postgres_server.new_database() as url:
        yield url


@pytest.fixture(scope="session")
def session_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_server(session_redis: RedisServer) -> RedisServer:
    """An empty Redis with its counters at zero. A test that stops or pauses one makes its own."""
    session_redis.flush()
    session_redis.reset_stats()
    return session_redis


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: Playwright's own loop runs from the first of them to the end of the session, and no
    other can run beside it. `make test` keeps this order in each of its processes."""
    items.sort(key=lambda item: "page" in getattr(item, "fixturenames", ()) or "tests/page/" in item.nodeid)
