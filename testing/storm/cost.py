"""What an inference costs Redis while nothing fails and nobody watches from another worker (I6)."""

from __future__ import annotations

import asyncio
import time

from testing.client import Account
from testing.storm.replies import steady
from testing.storm.stage import Stage
from testing.storm.tab import Tab

INFERENCES = 3
PUBLISHED_PER_INFERENCE = 4
PROBES_PER_SECOND = 12 / 60


async def check_cost(stage: Stage, person: Account, room_id: str) -> list[str]:
    """A sentence when more was published than allowed. To be called before anything breaks."""
    await asyncio.to_thread(stage.model.script, "quiet", *steady().scripts)
    tab = Tab(person, room_id, lambda: stage.workers[0].url)
    await tab.open()
    await asyncio.to_thread(stage.redis.reset_stats)
    began_at = time.monotonic()
    for _ in range(INFERENCES):
        inference_id = await tab.ask("Hello", model="quiet")
        await tab.wait_for_end(str(inference_id))
    calls = await asyncio.to_thread(stage.redis.commandstats)
    await tab.close()
    probes = len(stage.workers) * (1 + (time.monotonic() - began_at) * PROBES_PER_SECOND)
    allowed = int(INFERENCES * PUBLISHED_PER_INFERENCE + probes)
    published = calls.get("publish", 0)
    if published <= allowed:
        return []
    return [f"I6 {published} messages published for {INFERENCES} inferences, not {allowed}: {calls}"]
