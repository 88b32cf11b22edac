"""Django's `migrate`, safe to be started by any number of processes at once: one migrates, the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import connections

LOCK = 0x63686174
"""The number of our advisory lock; any, as long as nothing else in this database takes it."""


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with _alone(options["database"]):
            super().handle(*args, **options)


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
