"""Many stops, and then the site is as it was: nothing open, nothing queued, nobody kept waiting."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from pathlib import Path

import psycopg
import pytest

from testing.client import RoomClient
from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING, numbered_text
from testing.server_process import wait_until
from testing.workers import Site, Worker

pytestmark = pytest.mark.processes

WORDS = "{n}:{word} "
ROOMS = 20
STOPS_PER_ROOM = 5
POOL_SIZE = 12
THREADS = 40
"""More than a worker ever has: its database threads, those of requests, and the pool's own."""
TALK: Script = {"steps": [OPENING, {"text": WORDS, "repeat": 600, "pace_seconds": 0.05}, *ENDING]}


async def stop_again_and_again(socket: RoomClient, model: str) -> None:
    """At a different moment each time, from before the first token on."""
    for number in range(STOPS_PER_ROOM):
        inference_id = (await socket.ask(f"Prompt {number}", model=model))["inference_id"]
        position = await socket.wait_for_position(inference_id, number * 8)
        result = await socket.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position)


async def test_a_hundred_stops_leave_nothing_open_and_twenty_parallel_prompts_are_answered(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 26, 32 and 47; I5."""
    await asyncio.to_thread(model_server.script, "leaks", TALK)
    alice = site.account("alice")
    room_ids = [await asyncio.to_thread(alice.create_room) for _ in range(ROOMS)]
    sockets = [
        await site.account_at(site.workers[number % 3], "alice").open_room(room_id).connect()
        for number, room_id in enumerate(room_ids)
    ]
    await asyncio.gather(*(stop_again_and_again(socket, "leaks") for socket in sockets))
    assert not [request for request in await asyncio.to_thread(model_server.requests, "leaks") if request.is_live]
    starts = await asyncio.gather(*(socket.ask("And now?", model="echo") for socket in sockets))
    for socket, start in zip(sockets, starts, strict=True):
        await socket.wait_for("end", inference_id=start["inference_id"], status="completed")
        await socket.close()
    await asyncio.to_thread(wait_until, lambda: connections(site) <= POOL_SIZE * 3, "the pools are bounded")
    for worker in site.workers:
        assert thread_count(worker) < THREADS
        assert " ERROR " not in worker.log()


async def test_a_stop_works_after_ten_seconds_of_silence(site: Site, model_server: ModelServer) -> None:
    """CASES 28: a subscription that only idles is not lost."""
    await asyncio.to_thread(model_server.script, "quiet", {"steps": [OPENING, {"stall": True}]})
    room_id = await asyncio.to_thread(site.account("alice").create_room)
    owner, other = (site.account_at(worker, "alice") for worker in site.workers[:2])
    async with owner.open_room(room_id) as asking, other.open_room(room_id) as stopping:
        inference_id = (await asking.ask("Hello", model="quiet"))["inference_id"]
        with pytest.raises(TimeoutError):
            await stopping.wait_for("delta", timeout_seconds=10)
        before = asyncio.get_running_loop().time()
        assert (await stopping.stop(inference_id, 0))["outcome"] == "stopped"
        assert asyncio.get_running_loop().time() - before < 1


async def test_twenty_replies_at_once_on_sqlite_never_find_it_locked(model_server: ModelServer, tmp_path: Path) -> None:
    """CASES 48: one worker, no Redis; half of the replies are stopped, half run to their end."""
    await asyncio.to_thread(
        model_server.script,
        "sqlite",
        {"steps": [OPENING, {"text": WORDS, "repeat": 60, "pace_seconds": 0.05}, *ENDING]},
    )
    database_url = f"sqlite:///{tmp_path / f'{uuid.uuid4().hex}.sqlite3'}"
    whole = "".join(numbered_text(WORDS, number) for number in range(60))
    site = Site(1, database_url=database_url, openai_base_url=model_server.url, LIMITS="off")
    migrate(site.workers[0])
    with site:
        alice = site.account("alice")
        sockets = [await alice.open_room(await asyncio.to_thread(alice.create_room)).connect() for _ in range(ROOMS)]
        starts = await asyncio.gather(*(socket.ask("Hello", model="sqlite") for socket in sockets))
        for number, (socket, start) in enumerate(zip(sockets, starts, strict=True)):
            inference_id = start["inference_id"]
            if number % 2:
                position = await socket.wait_for_position(inference_id, 50)
                assert (await socket.stop(inference_id, position))["position"] == position
            else:
                await socket.wait_for("end", inference_id=inference_id, status="completed", timeout_seconds=30)
                assert socket.text(inference_id) == whole
            await socket.close()
        assert "locked" not in site.workers[0].log()


def migrate(worker: Worker) -> None:
    """Make the tables in the worker's own database."""
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=worker.working_folder(), env=dict(worker.environment()), check=True)


def connections(site: Site) -> int:
    with psycopg.connect(site.variables["DATABASE_URL"]) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ((count,),) = connection.execute(query).fetchall()
    return int(count)


def thread_count(worker: Worker) -> int:
    return len(list(Path(f"/proc/{worker.process.pid}/task").iterdir()))
