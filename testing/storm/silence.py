"""A stop after nobody has done anything for a long while: what idle connections may have died of shows now."""

from __future__ import annotations

import asyncio

from testing.storm.stage import Stage


async def check_stop_after_silence(stage: Stage, seconds: float) -> list[str]:
    """Be silent, then stop a reply from a worker that is not its owner; return what went wrong.

    The socket lives through the silence by the site's pings alone.
    """
    room_id = await asyncio.to_thread(stage.person(0).create_room)
    name = stage.person(0).username
    owner, other = (stage.site.account_at(worker, name) for worker in (stage.workers[0], stage.workers[-1]))
    async with owner.open_room(room_id) as asking, other.open_room(room_id) as watching:
        await asyncio.sleep(seconds)
        inference_id = (await asking.ask("After a silence", model="steady"))["inference_id"]
        position = await watching.wait_for_position(inference_id, 10)
        result = await watching.stop(inference_id, position)
    if (result["outcome"], result["position"]) == ("stopped", position):
        return []
    return [f"after {seconds:g} s of silence a stop at {position} gave {result}"]
