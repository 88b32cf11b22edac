"""Where a storm takes place: workers, Redis and PostgreSQL of its own behind proxies that break, a scripted model."""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack
from typing import Any, Self

from testing.client import Account
from testing.model_server import ModelServer
from testing.proxy import FaultProxy
from testing.services import PostgresServer, RedisServer
from testing.storm.replies import IDLE_TIMEOUT_SECONDS
from testing.workers import Site, Worker

DATABASE = "storm"
PEOPLE = ("alice", "bob", "carol")
DRAIN_SECONDS = 8


class Stage:
    """All the processes, as a context manager. `dice` decides where people connect."""

    def __init__(self, *, workers: int, dice: random.Random) -> None:
        self._worker_count = workers
        self._dice = dice
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.model = stack.enter_context(ModelServer())
            self.redis = stack.enter_context(RedisServer())
            self.postgres = stack.enter_context(PostgresServer())
            self.postgres.create_database(DATABASE)
            self.redis_proxy = stack.enter_context(FaultProxy(self.redis.port))
            self.postgres_proxy = stack.enter_context(FaultProxy(self.postgres.port))
            self.site = stack.enter_context(self._site())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @property
    def workers(self) -> list[Worker]:
        return self.site.workers

    def person(self, number: int) -> Account:
        return self.site.account(PEOPLE[number % len(PEOPLE)])

    def any_worker(self) -> Worker:
        """One that runs, if there is any."""
        running = [worker for worker in self.workers if worker.is_running]
        return self._dice.choice(running or self.workers)

    def any_url(self) -> str:
        """The balancer's address, or that of one worker."""
        return self._dice.choice([self.site.url, self.any_worker().url])

    def query(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        """Rows of the storm's database, past the proxy."""
        with self.postgres.connect(DATABASE) as connection:
            cursor = connection.execute(statement.encode(), parameters)
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    async def aquery(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        """`query` for those whose sockets have to go on meanwhile."""
        return await asyncio.to_thread(self.query, statement, *parameters)

    def _site(self) -> Site:
        return Site(
            self._worker_count,
            database_url=f"postgres://chatsite@127.0.0.1:{self.postgres_proxy.port}/{DATABASE}",
            redis_url=f"redis://127.0.0.1:{self.redis_proxy.port}/0",
            openai_base_url=self.model.url,
            CHAT_DEFAULT_MODEL="echo",
            MODEL_IDLE_TIMEOUT_SECONDS=str(IDLE_TIMEOUT_SECONDS),
            DRAIN_SECONDS=str(DRAIN_SECONDS),
            LIMITS="off",
        )
