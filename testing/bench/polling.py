"""The design that the site replaces: the stop is a flag in Redis, which the owner reads at every chunk.

Otherwise it is the relay, so that nothing else differs. `python -m testing.bench.polling PORT UPSTREAM_PORT REDIS_URL`.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import uvloop
from redis.asyncio import BlockingConnectionPool, Redis

from testing.bench.relay import Answer, Frame, Socket, serve

FLAG_SECONDS = 60
CONNECTIONS = 32


class PollingAnswer(Answer):
    """Asks Redis before it shows a chunk."""

    socket: PollingSocket

    def __init__(self, socket: Socket, prompt: Frame) -> None:
        super().__init__(socket, prompt)
        self._payloads: asyncio.Queue[bytes] = asyncio.Queue()
        socket.spawn(self._show_until_stopped())

    def take(self, payload: bytes) -> None:
        self._payloads.put_nowait(payload)

    async def _show_until_stopped(self) -> None:
        while True:
            payload = await self._payloads.get()
            if await self.socket.redis.get(f"stop:{self.inference_id}"):
                self.end("stopped")
                return
            self.show(payload)


class PollingSocket(Socket):
    """Sets the flag; whoever owns the reply will read it."""

    answer_type = PollingAnswer

    def __init__(self, upstream_port: int, redis: Redis) -> None:
        super().__init__(upstream_port)
        self.redis = redis

    def stop(self, inference_id: str) -> None:
        self.spawn(self._set_flag(inference_id))

    async def _set_flag(self, inference_id: str) -> None:
        await self.redis.set(f"stop:{inference_id}", 1, ex=FLAG_SECONDS)
        self.send({"type": "stop_result", "inference_id": inference_id, "outcome": "recorded"})


async def poll(port: int, upstream_port: int, redis_url: str) -> None:
    pool: Any = BlockingConnectionPool.from_url(redis_url, max_connections=CONNECTIONS)
    redis = Redis(connection_pool=pool)
    await serve(port, lambda: PollingSocket(upstream_port, redis))


if __name__ == "__main__":
    uvloop.run(poll(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
