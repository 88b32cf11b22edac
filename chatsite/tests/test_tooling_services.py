"""The tests' own Redis and PostgreSQL do what tests of faults rely on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import redis

from testing.server_process import ServerDidNotStart, ServerProcess, free_port, is_listening
from testing.services import PROJECT, PostgresServer, RedisServer, site_environment, site_variables


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def test_redis_keeps_its_port_but_not_its_data_over_a_restart() -> None:
    with RedisServer() as server:
        port, client = server.port, server.client()
        client.set("key", "value")
        server.restart()
        assert server.port == port
        assert client.get("key") is None


def test_a_killed_redis_refuses_connections_until_it_is_started_again() -> None:
    with RedisServer() as server:
        server.kill()
        with pytest.raises(redis.ConnectionError):
            server.client().ping()
        assert server.start().client().ping()


def test_a_paused_redis_takes_commands_and_does_not_answer() -> None:
    with RedisServer() as server:
        client = server.client(timeout_seconds=0.2)
        client.ping()
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.resume()
        assert client.ping()


def test_commandstats_count_each_command_since_the_last_reset(redis_server: RedisServer) -> None:
    client = redis_server.client()
    for _ in range(3):
        client.publish("somewhere", "something")
    assert redis_server.commandstats()["publish"] == 3
    redis_server.reset_stats()
    assert "publish" not in redis_server.commandstats()


def test_postgres_keeps_its_rows_over_a_restart_and_over_a_kill(postgres: PostgresServer) -> None:
    postgres.create_database("rows", template="template1")
    with postgres.connect("rows") as connection:
        connection.execute("CREATE TABLE note AS SELECT 'kept' AS text")
    for end in (postgres.stop, postgres.kill):
        end()
        postgres.start()
        with postgres.connect("rows") as connection:
            assert connection.execute("SELECT text FROM note").fetchone() == ("kept",)


def test_a_paused_postgres_leaves_open_connections_unanswered(postgres: PostgresServer) -> None:
    with postgres.connect() as connection, ThreadPoolExecutor(1) as thread:
        postgres.pause()
        query = thread.submit(connection.execute, "SELECT 1")
        with pytest.raises(TimeoutError):
            query.result(0.3)
        postgres.resume()
        assert query.result(5).fetchone() == (1,)


def test_a_database_is_copied_with_its_tables_and_dropped_although_somebody_is_connected(
    postgres: PostgresServer,
) -> None:
    postgres.create_database("original", template="template1")
    with postgres.connect("original") as connection:
        connection.execute("CREATE TABLE note AS SELECT 'copied' AS text")
    url = postgres.create_database("copy", template="original")
    with closing(psycopg.connect(url)) as connection:
        assert connection.execute("SELECT text FROM note").fetchone() == ("copied",)
        postgres.drop_database("copy")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_a_server_that_cannot_start_says_why() -> None:
    with RedisServer() as first, pytest.raises(ServerDidNotStart, match="port .* is in use"):
        RedisServer(port=first.port).start()


def test_a_free_port_is_never_one_that_the_kernel_gives_to_clients() -> None:
    """A client that dials its own port while the server is down would be connected to itself."""
    assert all(free_port() < 32768 for _ in range(20))


def test_no_setting_from_outside_reaches_the_tests_or_the_workers() -> None:
    assert {"OPENAI_API_KEY", "REDIS_URL", "DATABASE_URL", "PUBLIC_URL"} <= site_variables()
    assert not set(os.environ) & (site_variables() - {"DATABASE_URL", "SECRET_KEY", "DATA_DIR", "STATIC_ROOT"})
    leaky = {"OPENAI_API_KEY": "of somebody", "PATH": "/bin"}
    environment = site_environment(leaky, DATABASE_URL="given")
    assert set(environment) == {"PATH", "ENV_FILE", "SECRET_KEY", "DATA_DIR", "STATIC_ROOT", "DATABASE_URL"}


WAITING_TEST = """
import sys, threading
from testing.services import RedisServer, the_postgres

def test_that_waits():
    server = RedisServer().start()
    print(the_postgres().port, server.port, file=sys.__stderr__, flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_the_servers_it_started(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "test_waiting.py").write_text(WAITING_TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "--rootdir", str(PROJECT), "-c", "pyproject.toml"]
    # What a shell starts in the background ignores Ctrl-C, and all its children with it.
    heedful = ["env", "--default-signal=INT"]
    with subprocess.Popen(
        [*heedful, *command, str(tmp_path)], cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None
        ports = [int(port) for port in run.stderr.readline().split()]
        assert len(ports) == 2
        assert all(is_listening(port) for port in ports)
        run.send_signal(number)
        run.wait(20)
    assert not any(is_listening(port) for port in ports)


def test_servers_are_known_until_they_have_ended() -> None:
    """What pytest ends after Ctrl-C is this list."""
    with RedisServer() as server:
        assert server in ServerProcess.running()
    assert server not in ServerProcess.running()
