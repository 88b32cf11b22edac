"""The pool of database connections, with the options that the site gives it, through an outage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.db import connection as django_connection
from psycopg_pool import ConnectionPool, PoolTimeout

from chatsite import connections
from chatsite.postgresql.base import DatabaseWrapper
from testing.proxy import FaultProxy
from testing.services import PostgresServer

CONNECTIONS = 8
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


@pytest.fixture
def no_database_of_the_test(django_db_blocker: Any) -> Iterator[None]:
    """The test has connections of its own."""
    with django_db_blocker.unblock():
        yield


@pytest.mark.usefixtures("no_database_of_the_test")
@pytest.mark.parametrize("fault", [FaultProxy.reset_all, FaultProxy.close_all])
def test_a_pool_full_of_connections_that_the_database_has_ended_is_well_at_once(
    postgres_server: PostgresServer, fault: Callable[[FaultProxy], None]
) -> None:
    """Left to itself it pauses a second after the second that is dead, two after the third, and so on."""
    with FaultProxy(postgres_server.port) as proxy, pooled(proxy.port) as users:
        for user in users:
            user.ensure_connection()
        for user in users:
            user.close()
        fault(proxy)
        began_at = time.monotonic()
        for user in users:
            with user.cursor() as cursor:
                cursor.execute("SELECT 1")
        assert time.monotonic() - began_at < BACK_SECONDS


@contextmanager
def pooled(port: int) -> Iterator[list[DatabaseWrapper]]:
    """Connections as the site's threads have them, with one pool."""
    url = f"postgres://chatsite@127.0.0.1:{port}/postgres"
    ours = connections.database(url, timeout_seconds=5.0, pool_size=CONNECTIONS)
    settings = {**django_connection.settings_dict, **ours}
    users = [DatabaseWrapper(settings, "of this test") for _ in range(CONNECTIONS)]
    try:
        yield users
    finally:
        for user in users:
            user.close()
        users[0].close_pool()
