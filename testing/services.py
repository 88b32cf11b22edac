"""A real Redis and a real PostgreSQL for the tests. Also a pytest plugin, loaded by `-p` in pyproject.toml, which
starts the database before Django reads its settings and ends every server it started.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
import redis
from psycopg import sql
from redis.backoff import NoBackoff
from redis.retry import Retry

from testing.server_process import ServerProcess, kill_all, work_folder

PROJECT = Path(__file__).resolve().parent.parent
TEMPLATE_DATABASE = "chatsite_template"


class RedisServer(ServerProcess):
    """One Redis that keeps nothing on disk: what it held is gone after a restart, subscriptions included."""

    name = "redis"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        binary = _program("redis-server")
        arguments = f"--port {self.port} --bind 127.0.0.1 --appendonly no --dir {self.folder}".split()
        return [binary, *arguments, "--save", ""]

    def is_ready(self) -> bool:
        with suppress(redis.RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def client(self, *, timeout_seconds: float = 5.0) -> redis.Redis:
        """One that reports a fault at once; the library's own would try ten times."""
        return redis.Redis(port=self.port, socket_timeout=timeout_seconds, retry=Retry(NoBackoff(), 0))

    def commandstats(self) -> dict[str, int]:
        """How often each command was called since the start or `reset_stats`, by its name in small letters.

        Connecting (`hello`, `client|setinfo`, …) is in it; the call that reads the numbers is not.
        """
        with self.client() as client:
            stats = client.info("commandstats")
        calls = {name.removeprefix("cmdstat_"): int(entry["calls"]) for name, entry in stats.items()}
        return {name: count for name, count in calls.items() if name not in ("info", "config|resetstat")}

    def reset_stats(self) -> None:
        with self.client() as client:
            client.config_resetstat()

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()


class PostgresServer(ServerProcess):
    """A throw-away PostgreSQL cluster without passwords, reachable by TCP on 127.0.0.1 only.

    PostgreSQL refuses to run as root, so for root it runs as `postgres`, or as `nobody` where that user is missing.
    """

    name = "postgres"

    def __init__(self, *, port: int | None = None) -> None:
        super().__init__(port=port, run_as=_unprivileged_user())
        self.data = self.folder / "data"

    @property
    def url(self) -> str:
        return self.database_url("postgres")

    def database_url(self, database: str) -> str:
        return f"postgres://chatsite@127.0.0.1:{self.port}/{database}"

    def command(self) -> list[str]:
        options = [part for option in self.options() for part in ("-c", option)]
        return [_postgres_program("postgres"), "-D", str(self.data), "-p", str(self.port), *options]

    def options(self) -> list[str]:
        # Nothing here has to survive a power cut; without the flushes the tests run several times as fast.
        quick = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        return [*quick, "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300"]

    def is_ready(self) -> bool:
        with suppress(psycopg.OperationalError), self.connect():
            return True
        return False

    def launch(self) -> None:
        if not self.data.exists():
            self._init_cluster()
        super().launch()

    def terminate(self) -> None:
        # SIGTERM would wait for every client to leave; SIGINT ends their connections and shuts down in order.
        self.send_signal(signal.SIGINT)

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.database_url(database), autocommit=True, connect_timeout=2)

    def create_database(self, name: str, *, template: str = TEMPLATE_DATABASE) -> str:
        """A new database with our tables in it, copied from a template within about 0.1 s. Gives its URL."""
        if template == TEMPLATE_DATABASE:
            self._migrate_template()
        query = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._execute(query.format(sql.Identifier(name), sql.Identifier(template)))
        return self.database_url(name)

    @contextmanager
    def new_database(self, *, template: str = TEMPLATE_DATABASE) -> Iterator[str]:
        """One of a name of its own, by its URL, for as long as it is needed."""
        name = f"site_{uuid.uuid4().hex}"
        try:
            yield self.create_database(name, template=template)
        finally:
            self.drop_database(name)

    def drop_database(self, name: str) -> None:
        """Also ends the connections to it."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, query: sql.Composed) -> None:
        with self.connect() as connection:
            connection.execute(query)

    def _migrate_template(self) -> None:
        with self.connect() as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE_DATABASE])
            if found.fetchone():
                return
        url = self.create_database("chatsite_being_migrated", template="template1")
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=PROJECT, env=site_environment(DATABASE_URL=url), check=True)
        # Under its final name only when it is whole: a failed migration must not become the template.
        names = sql.Identifier("chatsite_being_migrated"), sql.Identifier(TEMPLATE_DATABASE)
        self._execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*names))

    def _init_cluster(self) -> None:
        if self.run_as:
            os.chown(self.folder, self.run_as.pw_uid, self.run_as.pw_gid)
        command = [_postgres_program("initdb"), "-D", str(self.data), "-U", "chatsite"]
        command += [*self.authentication(), "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        self._run_in_folder(command)

    def authentication(self) -> list[str]:
        """Options of initdb."""
        return ["--auth=trust"]

    def _run_in_folder(self, command: list[str]) -> None:
        with self.log_path.open("ab") as log:
            subprocess.run(
                command,
                cwd=self.folder,
                env={**os.environ, "HOME": str(self.folder)},
                user=self.run_as.pw_uid if self.run_as else None,
                group=self.run_as.pw_gid if self.run_as else None,
                extra_groups=[] if self.run_as else None,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=True,
            )


@functools.cache
def the_postgres() -> PostgresServer:
    """The database of this test session, which the plugin starts."""
    return PostgresServer().start()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Generator[None]:
    """A wrapper, since these run before everything else: pytest-django reads the settings in this very hook."""
    for name in site_variables():
        os.environ.pop(name, None)
    os.environ.update(site_environment(DATABASE_URL=the_postgres().database_url("postgres")))
    # A pytest that is told to end still has to run its fixtures' ends and the hook below.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return (yield)


def pytest_unconfigure() -> None:
    """Also after Ctrl-C: by process id, whatever a test has left behind too."""
    kill_all()


def pytest_runtest_setup() -> None:
    ServerProcess.started.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the logs of the servers that a failed test has started."""
    report = yield
    if report.failed:
        for server in ServerProcess.started:
            report.sections.append((f"Log of {server.name} on port {server.port}", server.log_tail()))
    return report


def site_environment(base: Mapping[str, str] | None = None, /, **variables: str) -> dict[str, str]:
    """The environment for a process of our site: nothing of ours from outside, only what `variables` says."""
    environment = {
        name: value for name, value in (os.environ if base is None else base).items() if name not in site_variables()
    }
    ours = {"ENV_FILE": "", "SECRET_KEY": "secret-of-the-tests-" * 3, "DATA_DIR": str(work_folder() / "data")}
    ours["STATIC_ROOT"] = str(work_folder() / "static")
    return environment | ours | variables


def site_variables() -> frozenset[str]:
    """Every variable the settings read, which is every one that `.env.example` names."""
    text = (PROJECT / ".env.example").read_text()
    return frozenset(re.findall(r"^#? ?([A-Z][A-Z0-9_]*)=", text, flags=re.MULTILINE))


def _program(name: str) -> str:
    found = shutil.which(name)
    if not found:
        raise FileNotFoundError(f"{name} is not installed; `make test` installs it")
    return found


def _postgres_program(name: str) -> str:
    """Debian keeps these out of PATH, one folder per version; the newest is taken."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    return str(folders[-1] / name) if folders else _program(name)


def _unprivileged_user() -> pwd.struct_passwd | None:
    if os.getuid() != 0:
        return None
    with suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")
