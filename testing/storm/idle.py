"""What a site has open when nobody does anything (I5), and what it costs Redis when nothing fails (I6)."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from testing.server_process import wait_until
from testing.storm.stage import DATABASE, Stage

LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d |\d+\.\d+\.\d+\.\d+:")
LAST_LINES = 9
TIME_LENGTH = len("2026-01-01 00:00:00,000 ")
FOREIGN = re.compile("channels_redis|django.request Service Unavailable")
"""What only says that Redis or the database was away."""
SETTLE_SECONDS = 20.0
CONNECTIONS_PER_WORKER = 12
"""The size of a worker's pool unless DATABASE_POOL_SIZE says otherwise: 4 threads and 8 more."""


@dataclass(frozen=True)
class Idle:
    """Counts over all workers."""

    redis_clients: int
    redis_subscriptions: int
    sockets: int
    """Connections that people have to the workers."""
    model_connections: int
    live_inferences: int
    busy_connections: int
    """Database connections in a transaction or at work."""

    @classmethod
    def of(cls, stage: Stage) -> Idle:
        return cls(
            redis_clients=_redis_clients(stage),
            redis_subscriptions=_redis_subscriptions(stage),
            sockets=sum(_established(worker.port) for worker in stage.workers),
            model_connections=sum(record.is_live for record in stage.model.requests()),
            live_inferences=len(stage.query("SELECT id FROM chat_inference WHERE status IN ('pending', 'streaming')")),
            busy_connections=_busy_connections(stage),
        )


def idle(stage: Stage) -> Idle:
    """The counts once every worker has its subscription: the group of all workers, and a channel of its own."""
    wait_until(lambda: _redis_subscriptions(stage) > len(stage.workers), "all workers subscribe", timeout_seconds=30)
    return Idle.of(stage)


def check_idle(stage: Stage, before: Idle, *, redis_faults: int) -> list[str]:
    """Wait until the site is as idle as before; what is still different is a violation of I5.

    A connection to Redis that breaks while a group is being left is given that group again by the client library: one
    stray subscription at most, whose events nobody gets, until the subscription is renewed.
    """
    before = replace(before, redis_subscriptions=before.redis_subscriptions + redis_faults)
    give_up_at = time.monotonic() + SETTLE_SECONDS
    while (found := _differences(stage, before)) and time.monotonic() < give_up_at:
        time.sleep(0.5)
    return found


def logged_errors(stage: Stage) -> list[str]:
    """What the workers have logged as their own failure, with the end of its traceback."""
    found: Counter[str] = Counter()
    for worker in stage.workers:
        lines = worker.log().splitlines()
        for index, line in enumerate(lines):
            # The channel layer logs what breaks in Redis as errors; that it recovers is what the cases show.
            if (" ERROR " in line or " CRITICAL " in line) and not FOREIGN.search(line):
                traceback = itertools.takewhile(lambda text: not LOG_LINE.match(text), lines[index + 1 :])
                found[" | ".join([line[TIME_LENGTH:], *list(traceback)[-LAST_LINES:]])] += 1
    return [f"{count} times {line}" for line, count in found.items()]


def _differences(stage: Stage, before: Idle) -> list[str]:
    now = Idle.of(stage)
    found = []
    for name in ("redis_subscriptions", "sockets", "model_connections", "live_inferences", "busy_connections"):
        if getattr(now, name) > getattr(before, name):
            found.append(f"I5 {name}: {getattr(now, name)} instead of {getattr(before, name)}")
    # The pools of Redis and of the database keep what they have opened; they are bounded, not empty.
    connections = len(
        stage.query("SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", DATABASE)
    )
    if connections > CONNECTIONS_PER_WORKER * len(stage.workers):
        found.append(f"I5 {connections} database connections")
    return found


def _redis_clients(stage: Stage) -> int:
    with stage.redis.client() as client:
        return len(cast(list[object], client.client_list()))


def _redis_subscriptions(stage: Stage) -> int:
    with stage.redis.client() as client:
        return len(cast(list[object], client.pubsub_channels()))


def _established(port: int) -> int:
    """Connections that this port has accepted."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    here, established = f":{port:04X}", "01"
    return sum(fields[1].endswith(here) and fields[3] == established for fields in map(str.split, lines))


def _busy_connections(stage: Stage) -> int:
    rows = stage.query(
        "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        " AND state <> 'idle' AND xact_start < now() - INTERVAL '2 seconds'",
        DATABASE,
    )
    return len(rows)
