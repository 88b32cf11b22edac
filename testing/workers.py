"""Real server processes of the site: one `Worker`, or a `Site` of several behind a proxy as in production."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx

from testing.client import Account
from testing.proxy import RoundRobinProxy
from testing.server_process import ServerProcess
from testing.services import PROJECT, site_environment


class Worker(ServerProcess):
    """One process that serves the site, ready when GET /healthz says so.

    `terminate()` begins its drain and returns at once; `stop()` also waits for the end, at most `drain_seconds` and
    a little. `kill`, `pause`, `resume` and `restart` are those of every server.
    """

    name = "worker"
    application = "chatsite.asgi:application"

    def __init__(self, variables: Mapping[str, str], *, port: int | None = None, server: str = "daphne") -> None:
        super().__init__(port=port)
        self.variables = dict(variables)
        self.server = server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def drain_seconds(self) -> float:
        return float(self.variables.get("DRAIN_SECONDS", "30"))

    def command(self) -> list[str]:
        if self.server == "daphne":
            return [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port), self.application]
        if self.server == "uvicorn":
            return [sys.executable, "-m", "uvicorn", "--host", "127.0.0.1", "--port", str(self.port), self.application]
        if self.server == "serve":
            return [sys.executable, "manage.py", "serve", "--migrate", "--port", str(self.port)]
        raise ValueError(f"no such server: {self.server}")

    def environment(self) -> Mapping[str, str]:
        return site_environment(PYTHONUNBUFFERED="1", **self.variables)

    def working_folder(self) -> Path:
        return PROJECT

    def is_ready(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/healthz", timeout=2, trust_env=False).is_success
        return False

    def stop(self, *, timeout_seconds: float | None = None) -> int | None:
        return super().stop(timeout_seconds=timeout_seconds or self.drain_seconds + 15)


class Site:
    """Workers that share a database, a Redis and a model server, behind a round-robin proxy.

    Further settings go in by name: `Site(3, database_url=…, redis_url=…, DRAIN_SECONDS="5")`. Without `redis_url`
    there may be one worker only. People of the site are `site.account("alice")`: signed up the first time.
    """

    def __init__(
        self,
        worker_count: int = 3,
        *,
        database_url: str,
        redis_url: str = "",
        openai_base_url: str = "",
        server: str = "daphne",
        **variables: str,
    ) -> None:
        given = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "OPENAI_BASE_URL": openai_base_url}
        self.variables = {name: value for name, value in given.items() if value} | {"DRAIN_SECONDS": "5"} | variables
        self.workers = [Worker(self.variables, server=server) for _ in range(worker_count)]
        self.proxy = RoundRobinProxy([worker.port for worker in self.workers])
        self._accounts: dict[str, Account] = {}

    @property
    def url(self) -> str:
        """The address people use: the proxy's."""
        return self.proxy.url

    def start(self) -> Self:
        collect_static_files()
        for worker in self.workers:
            worker.launch()
        try:
            for worker in self.workers:
                worker.start()
        except BaseException:
            self._stop_workers()
            raise
        self.proxy.start()
        return self

    def stop(self) -> None:
        for account in self._accounts.values():
            account.close()
        self.proxy.stop()
        self._stop_workers()

    def account(self, username: str) -> Account:
        """The same person again for the same name."""
        if username not in self._accounts:
            self._accounts[username] = Account(self.url, username).sign_up()
        return self._accounts[username]

    def account_at(self, worker: Worker, username: str) -> Account:
        """That person talking to one worker directly, past the proxy; with the same session."""
        key = f"{username} at {worker.port}"
        if key not in self._accounts:
            self._accounts[key] = Account(worker.url, username)
        account = self._accounts[key]
        account.http.cookies.update(self.account(username).http.cookies)
        return account

    def worker_at(self, port: int) -> Worker:
        return next(worker for worker in self.workers if worker.port == port)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _stop_workers(self) -> None:
        """All at once. `stop` sends the second SIGTERM, which skips the wait for replies."""
        for worker in self.workers:
            worker.resume()
            worker.terminate()
        for worker in self.workers:
            worker.stop()


@functools.cache
def collect_static_files() -> None:
    """Once per session: pages name their static files by the manifest that this makes."""
    command = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
    subprocess.run(command, cwd=PROJECT, env=site_environment(DATABASE_URL="sqlite://:memory:"), check=True)
