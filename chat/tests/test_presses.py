"""How often one person may press Stop over HTTP."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from chat import consumer, runtime
from chat.models import Room
from chat.presses import MAX_KNOWN, Presses
from chat.tests.inside import InsideSite
from testing.clock import Clock

REPLY = UUID(int=1)
ALICE, BOB = 1, 2


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def presses(clock: Clock) -> Presses:
    """Two repeats in a minute."""
    return Presses(2, clock=clock)


def test_the_first_stop_of_an_inference_is_never_refused(presses: Presses) -> None:
    for _ in range(10):
        presses.retry_after(ALICE, REPLY)
    assert presses.retry_after(ALICE, REPLY) > 0
    assert [presses.retry_after(ALICE, uuid4()) for _ in range(100)] == [0] * 100


def test_repeats_are_refused_from_the_third_on_and_taken_again_when_it_says(presses: Presses, clock: Clock) -> None:
    assert [presses.retry_after(ALICE, REPLY) for _ in range(3)] == [0, 0, 0]
    seconds = presses.retry_after(ALICE, REPLY)
    assert 0 < seconds <= 61
    clock.now += seconds
    assert presses.retry_after(ALICE, REPLY) == 0


def test_one_persons_flood_is_not_anothers(presses: Presses) -> None:
    for _ in range(10):
        presses.retry_after(ALICE, REPLY)
    assert [presses.retry_after(BOB, REPLY) for _ in range(3)] == [0, 0, 0]


def test_a_flood_of_ids_costs_bounded_memory(presses: Presses) -> None:
    for number in range(MAX_KNOWN + 100):
        assert presses.retry_after(ALICE, UUID(int=number)) == 0
    assert len(presses._pressed) <= MAX_KNOWN


def test_after_a_minute_nothing_is_remembered(presses: Presses, clock: Clock) -> None:
    for _ in range(5):
        presses.retry_after(ALICE, REPLY)
    clock.now += 61
    presses.retry_after(BOB, REPLY)
    assert (len(presses._pressed), len(presses._repeats)) == (1, 0)


async def test_behind_a_flood_on_a_socket_the_first_stop_of_a_reply_is_taken(
    inside: InsideSite, alice: User, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "MAX_WAITING_STOPS", 0)
    async with inside.open(alice, room.pk) as socket:
        await socket.send({"type": "send", "client_id": str(uuid4()), "text": "slow to start"})
        inference_id = (await socket.next("start"))["inference_id"]
        await socket.send({"type": "stop", "inference_id": str(uuid4()), "position": 0})
        assert (await socket.next("error", "stop_result"))["code"] == "rate_limited"
        await socket.send({"type": "stop", "inference_id": inference_id, "position": 0})
        assert (await socket.next("error", "stop_result"))["outcome"] == "stopped"


async def press(client: AsyncClient, inference_id: UUID) -> HttpResponse:
    body = {"inference_id": str(inference_id)}
    response = await client.post("/api/v1/inference/stop", body, content_type="application/json")
    assert isinstance(response, HttpResponse)
    return response


@pytest.mark.parametrize(("limits", "last_status"), [(True, 429), (False, 404)])
async def test_a_flood_is_answered_by_429_with_the_time_to_wait(
    inside: InsideSite, alice: User, settings: Settings, limits: bool, last_status: int
) -> None:
    settings.LIMITS = limits
    runtime.current().presses = Presses(2)
    client = await inside.client(alice)
    statuses = [(await press(client, REPLY)).status_code for _ in range(3)]
    last = await press(client, REPLY)
    another = await press(client, uuid4())
    assert (statuses, last.status_code, another.status_code) == ([404] * 3, last_status, 404)
    assert ("Retry-After" in last.headers) is limits
