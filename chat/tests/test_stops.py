"""What whoever presses Stop is told when another stop is faster."""

from __future__ import annotations

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, transaction

from chat import endings, runtime, stops
from chat.models import Room
from chat.stops import Outcome, Stop
from chat.tests.inside import InsideSite
from chat.tests.people import begin, complete, signal_for
from inference.stop import StopSignal
from testing.server_process import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

WAIT_SECONDS = 4.0
WAITING_FOR_US = "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


async def test_a_stop_that_finds_the_reply_cut_between_its_two_looks_says_so(
    inside: InsideSite, alice: User, room: Room
) -> None:
    """Its first look sees a finished reply; its second waits for the cut of an earlier stop to be committed."""
    inference = await sync_to_async(lambda: complete(begin(alice, room), "Hello world"))()
    is_cut = threading.Event()
    cutting = asyncio.create_task(asyncio.to_thread(cut_and_commit_late, signal_for(inference, alice, 5), is_cut))
    assert await asyncio.to_thread(is_cut.wait, WAIT_SECONDS)
    result = await stops.stop(runtime.current().worker, Stop(alice, inference.pk, 11, "page", room.pk))
    await cutting
    assert (result.outcome, result.position) == (Outcome.ALREADY_STOPPED, 5)


def cut_and_commit_late(signal: StopSignal, is_cut: threading.Event) -> None:
    """Not before somebody waits for the lock."""
    try:
        with transaction.atomic():
            assert endings.cut_after_finish(signal)
            is_cut.set()
            wait_until(somebody_waits_for_us, "the other stop waits", timeout_seconds=WAIT_SECONDS)
    finally:
        connection.close()


def somebody_waits_for_us() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITING_FOR_US)
        return cursor.fetchone() is not None
