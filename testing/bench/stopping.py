"""Section `stop`: from the stop frame, sent to a worker that does not own the reply, to the upstream's close."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from uuid import uuid4

from testing.bench.load import ENDLESS, Place, close, each, open_viewers
from testing.bench.servers import WORKERS, Ground, Polling, UvloopWorker, relay_rooms, start_three
from testing.bench.table import Table, percentiles_ms
from testing.bench.viewer import Viewer
from testing.server_process import wait_until

LIVE_REPLIES = 100
ROUNDS = 3
PAUSE_SECONDS = 0.05
"""Between two stops on average; they come at any moment between two chunks."""

Crossing = list[tuple[Place, Place]]
"""For each reply where it is asked for, and where it is stopped."""


async def run(ground: Ground) -> Table:
    columns = ["design", "stops", "p50 ms", "p95 ms", "p99 ms", "max ms"]
    table = Table(f"From Stop to the upstream's close; {LIVE_REPLIES} live replies, {WORKERS} workers", columns)
    seconds: dict[str, list[float]] = {}
    with ExitStack() as servers:
        # A stop is written down before it is sent on, so the disk is part of what is measured.
        ground.postgres.wait_for_flushes(is_on=True)
        servers.callback(ground.postgres.wait_for_flushes, is_on=False)
        polling = start_three(servers, lambda: Polling(ground.upstream.port, ground.redis.url))
        daphne = start_three(servers, ground.worker)
        serve = start_three(servers, lambda: ground.worker(UvloopWorker))
        designs = {
            "a flag read at every chunk": _cross([relay_rooms(server, LIVE_REPLIES) for server in polling]),
            "ours, daphne": _cross([ground.rooms(server, LIVE_REPLIES) for server in daphne]),
            "ours, manage.py serve": _cross([ground.rooms(server, LIVE_REPLIES) for server in serve]),
        }
        for _ in range(ROUNDS):
            for name, crossing in designs.items():
                seconds.setdefault(name, []).extend(await _stop_all(ground, crossing))
    for name, values in seconds.items():
        table.add(name, len(values), *percentiles_ms(values), f"{max(values) * 1000:.1f}")
    commit = " / ".join(percentiles_ms(ground.postgres.commit_seconds()))
    table.notes.append(f"Ours writes each stop to the disk first; such a commit alone takes {commit} ms here.")
    return table


def _cross(places: Sequence[Sequence[Place]]) -> Crossing:
    """Reply `n` is asked for at worker `n % 3` and stopped at the next one."""
    return [
        (places[number % WORKERS][number], places[(number + 1) % WORKERS][number]) for number in range(LIVE_REPLIES)
    ]


async def _stop_all(ground: Ground, crossing: Crossing) -> list[float]:
    askers = await open_viewers(asked for asked, _ in crossing)
    prompts = [str(uuid4()) for _ in crossing]
    inferences = await each(list(zip(askers, prompts, strict=True)), lambda pair: Viewer.ask(pair[0], ENDLESS, pair[1]))
    # Opened when the replies run, and told nothing of them: otherwise each reply would be followed.
    stoppers = await open_viewers(stopped for _, stopped in crossing)
    sent_at = []
    for stopper, inference_id in zip(stoppers, inferences, strict=True):
        await asyncio.sleep(random.random() * 2 * PAUSE_SECONDS)
        sent_at.append(time.monotonic())
        await stopper.stop(inference_id)
    await asyncio.to_thread(wait_until, lambda: not ground.upstream.journal()["live_count"], "all upstreams closed")
    closed_at = ground.upstream.journal()["closed_at"]
    close([*askers, *stoppers])
    return [closed_at[prompt] - at for prompt, at in zip(prompts, sent_at, strict=True)]
