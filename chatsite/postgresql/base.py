"""What Django loads of a backend. All else is its own."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    """Hands out no connection that a restart of the database has ended, nor waits for one after the other of them.

    The pool's own check pauses for longer after each that is dead: behind four, nobody gets a connection within 5 s.
    """

    def get_new_connection(self, conn_params: Any) -> Any:
        connection = super().get_new_connection(conn_params)
        pool: ConnectionPool[psycopg.Connection[Any]] | None = self.pool
        if pool is None or _is_alive(connection):
            return connection
        pool.putconn(connection)
        # All of them: they have ended together.
        pool.check()
        return super().get_new_connection(conn_params)


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        return False
    return True
