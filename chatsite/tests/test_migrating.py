"""Migrations when several processes start at once: CASES 67."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest

from chatsite.management.commands.migrate import LOCK
from testing.server_process import wait_until
from testing.services import PROJECT, PostgresServer, RedisServer, site_environment
from testing.workers import Worker

WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event = 'advisory' AND now() - query_start > interval '0.5 s'
"""
DOUBLED = "SELECT app, name FROM django_migrations GROUP BY app, name HAVING count(*) > 1"

pytestmark = pytest.mark.processes


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database without a table."""
    with postgres_server.new_database(template="template1") as url:
        yield url


def migration_of(database_url: str, **variables: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    return subprocess.Popen(command, cwd=PROJECT, env=site_environment(DATABASE_URL=database_url, **variables))


def test_processes_that_start_together_on_an_empty_database_migrate_it_once(
    empty_url: str, redis_server: RedisServer
) -> None:
    """A worker that is to migrate first, and two that only migrate: one does, the others wait for as long as it takes.

    Longer than the site lets a statement take. The lock that another holds here lets them loose at the same moment.
    """
    quick = {"DATABASE_TIMEOUT_SECONDS": "0.2"}
    worker = Worker({"DATABASE_URL": empty_url, "REDIS_URL": redis_server.url, **quick}, server="serve")
    with psycopg.connect(empty_url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        migrations = [migration_of(empty_url, **quick) for _ in range(2)]
        worker.launch()
        try:
            wait_until(lambda: other.execute(WAITING).fetchone() == (3,), "all wait", timeout_seconds=60)
            other.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
            assert [migration.wait(60) for migration in migrations] == [0, 0]
            worker.start()
        finally:
            for migration in migrations:
                migration.kill()
            worker.stop()
        assert other.execute(DOUBLED).fetchall() == []
        assert other.execute("SELECT count(*) FROM chat_inference").fetchone() == (0,)
        assert other.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone() == (True,)
