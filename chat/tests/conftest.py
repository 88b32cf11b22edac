"""Sites of real processes for the tests of this app."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from chat.tests.inside import inside  # noqa: F401  # fixtures
from chat.tests.people import alice, bob, charlie, rita, room  # noqa: F401  # fixtures
from testing.model_server import ModelServer
from testing.services import PROJECT, PostgresServer, RedisServer, site_environment
from testing.workers import Site


@pytest.fixture(scope="module")
def site(postgres_server: PostgresServer, session_redis: RedisServer, model_server: ModelServer) -> Iterator[Site]:
    """Three workers on PostgreSQL and Redis behind a round-robin proxy, for the tests of one module."""
    with (
        postgres_server.new_database() as database_url,
        Site(
            3,
            database_url=database_url,
            redis_url=session_redis.url,
            openai_base_url=model_server.url,
            CHAT_DEFAULT_MODEL="steady",
            LIMITS="off",
        ) as started,
    ):
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
