"""What Prometheus reads of two real workers: of each by itself, and of both behind one address."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from chat.tests.conftest import NewSite
from testing.workers import Site, Worker

pytestmark = pytest.mark.processes

TOKEN = "a-token-for-prometheus"


@pytest.fixture(scope="module")
def pair(new_site: NewSite) -> Iterator[Site]:
    """Two workers with metrics."""
    with new_site(2, CHAT_DEFAULT_MODEL="steady", METRICS_TOKEN=TOKEN) as site:
        yield site


class Scrape:
    """The samples of one answer."""

    def __init__(self, text: str) -> None:
        families = list(text_string_to_metric_families(text))
        self.family_names = [family.name for family in families]
        self.samples: list[Sample] = [sample for family in families for sample in family.samples]

    def total(self, name: str, **labels: str) -> float:
        """The sum over all series of this name that have these labels."""
        found = [each for each in self.samples if each.name == f"chatsite_{name}"]
        return sum(each.value for each in found if labels.items() <= each.labels.items())

    def workers(self) -> set[str]:
        return {sample.labels["worker"] for sample in self.samples if "worker" in sample.labels}


async def scrape(worker: Worker, **query: str) -> Scrape:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "10.1.2.3:8000"}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as http:
        response = await http.get(f"{worker.url}/metrics", params=query)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    return Scrape(response.text)


async def grown(worker: Worker, before: Scrape, name: str, **labels: str) -> float:
    return (await scrape(worker)).total(name, **labels) - before.total(name, **labels)


async def test_a_stop_that_another_worker_takes_is_in_the_histograms_of_both(pair: Site) -> None:
    owner, other = pair.workers
    before, before_other = await scrape(owner), await scrape(other)
    room_id = pair.account("alice").create_room()
    async with (
        pair.account_at(owner, "alice").open_room(room_id) as asking,
        pair.account_at(other, "alice").open_room(room_id) as stopping,
    ):
        await stopping.wait_for("hello")
        inference_id = (await asking.ask("Hello"))["inference_id"]
        position = await stopping.wait_for_position(inference_id, 40)
        assert await grown(owner, before, "live_inferences") == 1
        assert (await scrape(owner)).total("open_sockets") == 1
        assert (await scrape(other)).total("followed_inferences") == 1
        await stopping.stop(inference_id, position - 10)
    told, told_other = await scrape(owner), await scrape(other)
    for name in ("stop_heard_seconds", "stop_closed_seconds", "stop_saved_seconds", "stop_overrun_characters"):
        assert told.total(f"{name}_count") - before.total(f"{name}_count") == 1, name
        assert told_other.total(f"{name}_count") == before_other.total(f"{name}_count"), name
    assert await grown(owner, before, "stop_heard_seconds_count", by="event") == 1
    assert 0 < await grown(owner, before, "stop_saved_seconds_sum") < 10
    assert await grown(owner, before, "stop_overrun_characters_sum") >= 10
    assert await grown(owner, before, "inferences_ended_total", status="stopped") == 1
    assert await grown(other, before_other, "stop_recorded_seconds_count") == 1
    assert await grown(other, before_other, "stops_total", source="page", outcome="stopped") == 1


async def test_a_series_is_there_before_its_first_event(pair: Site) -> None:
    """Otherwise the first event would be no increase."""
    told = await scrape(pair.workers[0])
    series = {(sample.name, *sorted(sample.labels.items())) for sample in told.samples}
    assert ("chatsite_stops_total", ("outcome", "unavailable"), ("source", "admin")) in series
    assert ("chatsite_inferences_reaped_total", ("status", "interrupted")) in series
    assert ("chatsite_engine_errors_total", ("code", "context_too_long")) in series
    assert ("chatsite_beats_failed_total", ("act", "beat")) in series


async def test_behind_one_address_the_workers_add_up(pair: Site) -> None:
    for worker, count in zip(pair.workers, (1, 2), strict=True):
        account = pair.account_at(worker, "alice")
        async with account.open_room(account.create_room()) as socket:
            for number in range(count):
                inference_id = (await socket.ask(f"Number {number}", model="echo"))["inference_id"]
                await socket.wait_for("end", inference_id=inference_id)
    each = [await scrape(worker) for worker in pair.workers]
    for asked in pair.workers:
        site = await scrape(asked, of="site")
        assert site.total("workers") == len(site.workers()) == 2
        for name in ("inferences_started_total", "inferences_ended_total", "chunks_total", "first_token_seconds_count"):
            assert site.total(name) == sum(alone.total(name) for alone in each) > 0, name
        assert len(site.family_names) == len(set(site.family_names))


async def test_a_worker_that_does_not_answer_is_left_out(pair: Site) -> None:
    asked, paused = pair.workers
    paused.pause()
    try:
        site = await scrape(asked, of="site")
        assert site.total("workers") == len(site.workers()) == 1
    finally:
        paused.resume()


async def test_a_reply_that_fails_is_counted_by_what_went_wrong(pair: Site) -> None:
    worker = pair.workers[0]
    before = await scrape(worker)
    account = pair.account_at(worker, "alice")
    async with account.open_room(account.create_room()) as socket:
        inference_id = (await socket.ask("Hello", model="no-such-model"))["inference_id"]
        end = await socket.wait_for("end", inference_id=inference_id)
    assert await grown(worker, before, "engine_errors_total", code=end["error"]["code"]) == 1
    assert await grown(worker, before, "inferences_ended_total", status="failed") == 1


async def test_upkeep_is_measured_without_anybody_asking(pair: Site) -> None:
    room_id = pair.account("alice").create_room()
    async with pair.account_at(pair.workers[0], "alice").open_room(room_id) as asking, asyncio.timeout(20):
        inference_id = (await asking.ask("Hello"))["inference_id"]
        told = await scrape(pair.workers[0])
        while not (told.total("event_loop_lag_seconds_count") and told.total("checkpoint_lag_seconds_count")):
            await asyncio.sleep(0.1)
            told = await scrape(pair.workers[0])
        await asking.stop(inference_id)
    assert told.total("subscribed") == 1
    assert not [name for name in told.family_names if name.endswith("_created")]
