"""The processes that are measured, and those around them."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import psycopg

from testing.bench.load import Place
from testing.client import Account
from testing.server_process import ServerProcess, is_listening
from testing.services import PROJECT, PostgresServer, RedisServer
from testing.workers import Worker, collect_static_files

WORKERS = 3
DATABASE = "bench"
COMMITS = 100
SMALL_COMMIT = "SELECT pg_logical_emit_message(true, 'bench', '')"
ASKER = "alice"
HEAP = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"}
"""What the Dockerfile runs workers with: memory in huge pages. For whatever is measured beside them too."""

Server = TypeVar("Server", bound=ServerProcess)


class SafePostgres(PostgresServer):
    """With the flushes that the tests do without. Commits wait for them only where a section says so."""

    def command(self) -> list[str]:
        return [*super().command(), "-c", "fsync=on", "-c", "full_page_writes=on"]

    def wait_for_flushes(self, *, is_on: bool) -> None:
        """Whether a commit of a connection that begins from now on is on the disk when it returns."""
        with self.connect() as connection:
            connection.execute(f"ALTER DATABASE {DATABASE} SET synchronous_commit = {'on' if is_on else 'off'}")

    def commit_seconds(self) -> list[float]:
        """How long some small commits take that are on the disk when they return."""
        with psycopg.connect(self.database_url(DATABASE), autocommit=True) as connection:
            connection.execute("SET synchronous_commit = on")
            return [_seconds_of(lambda: connection.execute(SMALL_COMMIT)) for _ in range(COMMITS)]


def _seconds_of(act: Callable[[], object]) -> float:
    began_at = time.monotonic()
    act()
    return time.monotonic() - began_at


class Program(ServerProcess):
    """One of this package's own servers; its arguments after the port."""

    module: ClassVar[str]

    def __init__(self, *arguments: object) -> None:
        super().__init__()
        self._arguments = [str(argument) for argument in arguments]

    def command(self) -> list[str]:
        return [sys.executable, "-m", self.module, str(self.port), *self._arguments]

    def environment(self) -> Mapping[str, str]:
        return os.environ | HEAP

    def working_folder(self) -> Path:
        return PROJECT

    def is_ready(self) -> bool:
        return is_listening(self.port)


class Upstream(Program):
    """The paced model server."""

    name = "upstream"
    module = "testing.bench.upstream"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def journal(self) -> dict[str, Any]:
        """What it has done: `chunk_count`, `live_count`, `closed_at`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/_journal")
        value: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return value


class Relay(Program):
    """The floor."""

    name = "relay"
    module = "testing.bench.relay"


class Polling(Program):
    """The design that reads a flag in Redis at every chunk."""

    name = "polling"
    module = "testing.bench.polling"


class UvloopWorker(Worker):
    """A worker started by our own command, which installs uvloop."""

    def command(self) -> list[str]:
        return [sys.executable, "manage.py", "serve", "--port", str(self.port)]


class Ground:
    """Database, Redis and model server, which all sections share; a context manager."""

    def __init__(self) -> None:
        self._servers = ExitStack()
        self._cookies: dict[str, str] = {}
        self._room_ids: list[str] = []

    def __enter__(self) -> Self:
        self.upstream = self._servers.enter_context(Upstream())
        self.redis = self._servers.enter_context(RedisServer())
        self.postgres = self._servers.enter_context(SafePostgres())
        self._database_url = self.postgres.create_database(DATABASE)
        collect_static_files()
        return self

    def __exit__(self, *exc: object) -> None:
        self._servers.close()

    def worker(self, worker_type: type[Worker] = Worker, **others: str) -> Worker:
        """A worker of the one site; not started. `others` are settings of its own."""
        variables = {
            "DATABASE_URL": self._database_url,
            "REDIS_URL": self.redis.url,
            "OPENAI_BASE_URL": self.upstream.url,
            "CHAT_DEFAULT_MODEL": "paced-80",
            "DRAIN_SECONDS": "1",
            "LIMITS": "off",
            "LOG_LEVEL": "WARNING",
            **HEAP,
        }
        return worker_type(variables | others)

    def rooms(self, worker: Worker, count: int) -> list[Place]:
        """One person's rooms of the site, as seen from this worker; made when they are first needed."""
        with Account(worker.url, ASKER) as account:
            account.http.cookies.update(self._cookies)
            if not self._cookies:
                self._cookies = account.sign_up().cookies
            while len(self._room_ids) < count:
                self._room_ids.append(account.create_room())
        cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        return [Place(worker.port, room_id, cookie) for room_id in self._room_ids[:count]]


def start_three(servers: ExitStack, make: Callable[[], Server]) -> list[Server]:
    """Three of one kind, as behind a load balancer; `servers` ends them."""
    made = [make() for _ in range(WORKERS)]
    for server in made:
        servers.enter_context(server)
    return made


def relay_rooms(relay: Program, count: int) -> list[Place]:
    """The same of a server that knows no rooms."""
    return [Place(relay.port, str(number)) for number in range(count)]
