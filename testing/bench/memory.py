"""Section `memory`: what a live reply and a further viewer of it add to the resident set of their process."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from testing.bench.load import ENDLESS, Place, begin, close, end, open_viewers
from testing.bench.servers import Ground, Relay, UvloopWorker, relay_rooms
from testing.bench.table import Table
from testing.process_usage import resident_bytes
from testing.server_process import ServerProcess

WARM_UP = 20
COUNT = 200
SETTLE_SECONDS = 3.0


async def run(ground: Ground) -> Table:
    columns = ["server", "at rest MB", "per open socket kB", "per live reply kB", "per further viewer kB"]
    table = Table(f"Resident memory, {COUNT} of each", columns)
    with ExitStack() as servers:
        relay = servers.enter_context(Relay(ground.upstream.port, "uvloop"))
        await _add(table, "relay on uvloop", relay, relay_rooms(relay, COUNT))
        for name, worker in (("daphne", ground.worker()), ("manage.py serve", ground.worker(UvloopWorker))):
            servers.enter_context(worker)
            await _add(table, name, worker, ground.rooms(worker, COUNT))
    table.notes.append("The relay's further viewers show nothing: it knows no rooms.")
    return table


async def _add(table: Table, name: str, server: ServerProcess, places: list[Place]) -> None:
    await end(await begin(await open_viewers(places[:WARM_UP]), ENDLESS))
    sizes = [await _settled(server)]
    viewers = await open_viewers(places)
    sizes.append(await _settled(server))
    replies = await begin(viewers, ENDLESS)
    sizes.append(await _settled(server))
    further = await open_viewers(places)
    for viewer, reply in zip(further, replies, strict=True):
        viewer.send({"type": "follow", "inference_id": reply.inference_id, "position": 0})
    sizes.append(await _settled(server))
    close(further)
    await end(replies)
    kilobytes = [(after - before) / COUNT / 1024 for before, after in zip(sizes, sizes[1:], strict=False)]
    table.add(name, f"{sizes[0] / 2**20:.0f}", *(f"{size:.0f}" for size in kilobytes))


async def _settled(server: ServerProcess) -> int:
    await asyncio.sleep(SETTLE_SECONDS)
    return resident_bytes(server.process.pid)
