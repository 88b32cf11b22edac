"""A site of several real workers starts, serves people, and takes what tests of faults do to it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from testing.model_server.client import ModelServer
from testing.server_process import ServerDidNotStart
from testing.services import RedisServer
from testing.workers import Site, Worker

pytestmark = pytest.mark.processes


@pytest.fixture
def site(database_url: str, redis_server: RedisServer, model_server: ModelServer) -> Iterator[Site]:
    with Site(2, database_url=database_url, redis_url=redis_server.url, openai_base_url=model_server.url) as running:
        yield running


async def test_a_person_signs_up_makes_a_room_and_is_greeted_in_it(site: Site) -> None:
    alice = site.account("alice")
    room_id = alice.create_room("First room")
    async with alice.open_room(room_id) as socket:
        hello = await socket.wait_for("hello", room_id=room_id)
    assert hello["protocol"] == 1


async def test_a_reply_arrives_whole_on_the_other_worker(site: Site) -> None:
    """Alice asks on one worker and Bob's tab, which is hers too, hangs on the other."""
    first, second = (site.account_at(worker, "alice") for worker in site.workers)
    room_id = site.account("alice").create_room()
    async with first.open_room(room_id) as asking, second.open_room(room_id) as watching:
        await watching.wait_for("hello")
        start = await asking.ask("Hello", model="fast")
        ends = [await socket.wait_for("end", inference_id=start["inference_id"]) for socket in (asking, watching)]
        assert ends[0] == ends[1]
        assert ends[0]["status"] == "completed"
        assert watching.text(start["inference_id"]) == asking.text(start["inference_id"]) != ""


def test_a_killed_worker_comes_back_on_its_port(site: Site) -> None:
    worker = site.workers[0]
    worker.kill()
    assert [httpx.get(f"{site.url}/healthz", trust_env=False).status_code for _ in range(4)] == [200] * 4
    worker.start()
    assert worker.is_ready()


def test_a_paused_worker_answers_again_when_resumed(site: Site) -> None:
    worker = site.workers[0]
    worker.pause()
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{worker.url}/healthz", timeout=0.3, trust_env=False)
    worker.resume()
    assert worker.is_ready()


def test_a_worker_ends_in_order_on_sigterm(site: Site) -> None:
    assert site.workers[0].stop() == 0


def test_a_worker_that_cannot_start_says_why() -> None:
    with pytest.raises(ServerDidNotStart, match="DRAIN_SECONDS must be a number"):
        Worker({"DATABASE_URL": "sqlite://:memory:", "DRAIN_SECONDS": "soon"}).start()
