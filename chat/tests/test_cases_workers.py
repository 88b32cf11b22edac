"""A worker is part of the site from its start on, not only from its first visitor on."""

from __future__ import annotations

from uuid import uuid4

import pytest

from testing.server_process import wait_until
from testing.services import RedisServer
from testing.workers import Site

pytestmark = pytest.mark.processes


def test_a_worker_that_nobody_has_visited_listens_for_stops(database_url: str, session_redis: RedisServer) -> None:
    prefix = f"worker{uuid4().hex}"
    site = Site(1, database_url=database_url, redis_url=session_redis.url, REDIS_PREFIX=prefix)
    with site, session_redis.client() as client:
        wait_until(lambda: client.pubsub_channels(f"{prefix}*workers"), "the worker subscribes")
