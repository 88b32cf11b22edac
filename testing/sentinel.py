"""A Redis with a replica that three sentinels watch: when the primary dies, they make the replica the primary."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import Any, Self

import redis

from testing.server_process import wait_until
from testing.services import RedisServer

MASTER = "mymaster"
QUORUM = 2
DOWN_AFTER_MILLISECONDS = 1000
READY_SECONDS = 30.0


class Primary(RedisServer):
    """Makes its replica's first copy at once: before that the replica would not be promoted."""

    def command(self) -> list[str]:
        return [*super().command(), "--repl-diskless-sync-delay", "0"]


class Replica(RedisServer):
    """Follows a primary."""

    name = "replica"

    def __init__(self, primary_port: int) -> None:
        super().__init__()
        self.primary_port = primary_port

    def command(self) -> list[str]:
        return [*super().command(), "--replicaof", "127.0.0.1", str(self.primary_port)]


class Sentinel(RedisServer):
    """One of those who watch."""

    name = "sentinel"

    def __init__(self, primary_port: int) -> None:
        super().__init__()
        lines = [
            f"sentinel monitor {MASTER} 127.0.0.1 {primary_port} {QUORUM}",
            f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MILLISECONDS}",
            f"sentinel failover-timeout {MASTER} 5000",
        ]
        self.configuration = self.folder / "sentinel.conf"
        self.configuration.write_text("\n".join(lines) + "\n")

    def command(self) -> list[str]:
        binary, *_ = super().command()
        address = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return [binary, str(self.configuration), *address, "--sentinel"]

    def sees(self) -> dict[str, Any]:
        """What it knows of the primary."""
        with suppress(redis.RedisError), self.client() as client:
            state: dict[str, Any] = client.sentinel_master(MASTER)
            return state
        return {}


class WatchedRedis:
    """All five processes, as a context manager."""

    def __init__(self) -> None:
        self.primary = Primary()
        self.replica = Replica(self.primary.port)
        self.sentinels = [Sentinel(self.primary.port) for _ in range(3)]
        self._started = ExitStack()

    @property
    def url(self) -> str:
        """As REDIS_URL names them."""
        addresses = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{addresses}/{MASTER}/0"

    def __enter__(self) -> Self:
        for server in (self.primary, self.replica, *self.sentinels):
            self._started.enter_context(server)
        wait_until(self._is_watched, "the sentinels know each other", timeout_seconds=READY_SECONDS)
        return self

    def __exit__(self, *exc: object) -> None:
        self._started.close()

    def has_failed_over(self) -> bool:
        """Whether the sentinels name the replica as the primary."""
        return all(int(sentinel.sees().get("port", 0)) == self.replica.port for sentinel in self.sentinels)

    def _is_watched(self) -> bool:
        with self.replica.client() as client:
            has_copied = client.info("replication")["master_link_status"] == "up"
        seen = [sentinel.sees() for sentinel in self.sentinels]
        return has_copied and all(
            (state.get("num-slaves"), state.get("num-other-sentinels")) == (1, len(seen) - 1) for state in seen
        )
