"""A worker that is told to go: its replies go on for whoever reconnects elsewhere, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from chat.tests.conftest import NewSite
from testing.client import Account, RoomClient
from testing.model_server import ModelServer
from testing.model_server.script import numbered_text
from testing.workers import Site

WORD = "{n}:{word} "

pytestmark = pytest.mark.processes


@pytest.fixture
def restartable(new_site: NewSite, model_server: ModelServer) -> Iterator[Site]:
    """Two workers that a test may end."""
    model_server.script("brief", {"steps": [{"text": WORD, "repeat": 40, "pace_seconds": 0.1}, {"finish": "stop"}]})
    with new_site(2, CHAT_DEFAULT_MODEL="brief", DRAIN_SECONDS="20", LIMITS="off") as site:
        yield site


async def start_reply(account: Account, room_id: str) -> tuple[RoomClient, str, int]:
    """Ask, and wait until the reply has begun."""
    socket = await account.open_room(room_id).connect()
    inference_id = (await socket.ask("Hello"))["inference_id"]
    return socket, inference_id, await socket.wait_for_position(inference_id, 20)


async def test_a_draining_worker_closes_with_1012_and_its_reply_ends_whole_on_another(restartable: Site) -> None:
    room_id = restartable.account("alice").create_room()
    owner, other = restartable.workers
    socket, inference_id, _ = await start_reply(restartable.account_at(owner, "alice"), room_id)
    owner.terminate()
    assert await socket.wait_closed() == 1012
    seen = socket.transcript.position(inference_id)
    async with restartable.account_at(other, "alice").open_room(room_id) as again:
        await again.follow(inference_id, seen)
        end = await again.wait_for("end", inference_id=inference_id)
        assert end["status"] == "completed"
        whole = socket.text(inference_id)[:seen] + again.text(inference_id)
    assert whole == "".join(numbered_text(WORD, number) for number in range(40))
    assert await asyncio.to_thread(owner.wait, 20) == 0


async def test_a_second_signal_saves_the_text_so_far_as_interrupted(restartable: Site) -> None:
    room_id = restartable.account("alice").create_room()
    owner, other = restartable.workers
    socket, inference_id, position = await start_reply(restartable.account_at(owner, "alice"), room_id)
    owner.terminate()
    await socket.wait_closed()
    owner.terminate()
    async with restartable.account_at(other, "alice").open_room(room_id) as again:
        await again.follow(inference_id)
        end = await again.wait_for("end", inference_id=inference_id)
        assert end["status"] == "interrupted"
        assert end["position"] >= position
        assert again.text(inference_id).startswith(socket.text(inference_id))
