"""Django's `migrate`, safe to be started by any number of processes at once: one migrates, the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections

LOCK = 0x63686174
"""The number of our advisory lock; any, as long as nothing else in this database takes it."""

HINTS = {
    "postgresql": "Start it, or correct DATABASE_URL.",
    "sqlite": "DATABASE_URL, or DATA_DIR, must name a folder in which this account may write.",
}


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> Any:
        # Before Django's own checks, which ask it too.
        _reach(options["database"])
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        with _alone(options["database"]):
            super().handle(*args, **options)


def _reach(database: str) -> None:
    """Connect once, past the pool, which would try for a while and not say what is wrong. Raises CommandError."""
    connection = connections[database]
    try:
        if connection.vendor == "postgresql":
            psycopg.connect(**connection.get_connection_params()).close()
        else:
            connection.ensure_connection()
    except (OperationalError, psycopg.OperationalError) as error:
        reason = str(error).partition("\n")[0]
        raise CommandError(f"The database can't be used: {reason}. {HINTS[connection.vendor]}") from None


@contextmanager
def _alone(database: str) -> Iterator[None]:
    """The lock belongs to this connection, so the database frees it when the process dies. SQLite has no need of it."""
    connection = connections[database]
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        # The site's bounds on a wait are for people; an index on a large table takes as long as it takes.
        cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        yield
    finally:
        # The connection goes back to the pool, in which the lock and the settings would live on.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s); RESET statement_timeout; RESET lock_timeout", [LOCK])
