"""What /healthz says of this process."""

from __future__ import annotations

import asyncio

import pytest
from django.test import AsyncClient

from chat import runtime

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_process_is_well_as_long_as_its_worker_runs() -> None:
    assert (await AsyncClient().get("/healthz")).status_code == 200
    await runtime.shut_down(0)


async def test_a_process_whose_worker_has_died_asks_to_be_restarted() -> None:
    task = runtime.current()._task
    assert task is not None
    task.cancel()
    await asyncio.wait({task})
    response = await AsyncClient().get("/healthz")
    assert (response.status_code, response.json()) == (503, {"status": "dead"})
    await runtime.shut_down(0)


async def test_a_process_that_drains_is_well() -> None:
    running = runtime.current()
    await running.stop(0)
    assert (await AsyncClient().get("/healthz")).status_code == 200
    await runtime.shut_down(0)
