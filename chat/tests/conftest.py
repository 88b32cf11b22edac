"""Sites of real processes for the tests of this app."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from chat.tests.inside import inside  # noqa: F401  # fixtures
from chat.tests.people import alice, bob, charlie, rita, room  # noqa: F401  # fixtures
from testing.model_server import ModelServer
from testing.services import PROJECT, PostgresServer, RedisServer, site_environment
from testing.workers import Site

NewSite = Callable[..., AbstractContextManager[Site]]


@pytest.fixture(scope="session")
def new_site(postgres_server: PostgresServer, session_redis: RedisServer, model_server: ModelServer) -> NewSite:
    """`with new_site(2, LIMITS="off") as site`: workers on a database of their own, the session's Redis and model."""

    @contextmanager
    def make(worker_count: int, **variables: str) -> Iterator[Site]:
        addresses = {"redis_url": session_redis.url, "openai_base_url": model_server.url}
        with (
            postgres_server.new_database() as database_url,
            Site(worker_count, database_url=database_url, **addresses, **variables) as started,
        ):
            yield started

    return make


@pytest.fixture(scope="module")
def site(new_site: NewSite) -> Iterator[Site]:
    """Three workers on PostgreSQL and Redis behind a round-robin proxy, for the tests of one module."""
    with new_site(3, CHAT_DEFAULT_MODEL="steady", LIMITS="off") as started:
        yield started


@pytest.fixture(scope="module")
def lone_site(tmp_path_factory: pytest.TempPathFactory, model_server: ModelServer) -> Iterator[Site]:
    """One worker on SQLite without Redis, for the tests of one module."""
    database_url = f"sqlite:///{tmp_path_factory.mktemp('site') / 'site.sqlite3'}"
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=PROJECT, env=site_environment(DATABASE_URL=database_url), check=True)
    with Site(
        1,
        database_url=database_url,
        openai_base_url=model_server.url,
        CHAT_DEFAULT_MODEL="steady",
        LIMITS="off",
    ) as started:
        yield started
