"""The pool of database connections, with the options that the site gives it, through an outage."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from psycopg_pool import ConnectionPool, PoolTimeout

from chatsite import connections
from testing.proxy import FaultProxy
from testing.services import PostgresServer

REFUSED_SECONDS = 8.0
BACK_SECONDS = 3.0

pytestmark = pytest.mark.processes


def ask(pool: ConnectionPool) -> bool:
    with suppress(PoolTimeout), pool.connection(timeout=0.3):
        return True
    return False


def test_the_pool_is_back_soon_after_an_outage_in_which_it_went_on_trying(postgres_server: PostgresServer) -> None:
    """Left to itself it doubles its pauses, and comes back after as long again as it was away."""
    options = connections.database(postgres_server.url, timeout_seconds=5.0, pool_size=2)["OPTIONS"]["pool"]
    with FaultProxy(postgres_server.port) as proxy:
        address = f"postgres://chatsite@127.0.0.1:{proxy.port}/postgres"
        with ConnectionPool(address, check=ConnectionPool.check_connection, open=True, **options) as pool:
            assert ask(pool)
            proxy.refuse()
            proxy.reset_all()
            back_at = time.monotonic() + REFUSED_SECONDS
            while time.monotonic() < back_at:
                assert not ask(pool)
            proxy.accept()
            give_up_at = time.monotonic() + BACK_SECONDS
            while not ask(pool):
                assert time.monotonic() < give_up_at
