"""What whoever presses Stop is told when another stop is faster."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat import endings, runtime, stops
from chat.models import Room
from chat.stops import Outcome, Stop
from chat.tests.inside import InsideSite
from chat.tests.people import begin, complete, signal_for

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_stop_that_finds_the_reply_cut_between_its_two_looks_says_so(
    inside: InsideSite, alice: User, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first look sees a finished reply, and by its second the owner has cut that back for an earlier stop."""
    inference = await sync_to_async(lambda: complete(begin(alice, room), "Hello world"))()
    record = stops._record

    def record_and_be_overtaken(press: Stop, database_time: Callable[[], float | None]) -> object:
        recorded = record(press, database_time)
        endings.cut_after_finish(signal_for(inference, alice, 5))
        return recorded

    monkeypatch.setattr(stops, "_record", record_and_be_overtaken)
    press = Stop(alice, inference.pk, 11, "page", room.pk)
    result = await stops.stop(runtime.current().worker, press)
    assert (result.outcome, result.position) == (Outcome.ALREADY_STOPPED, 5)
