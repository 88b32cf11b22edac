"""What is counted of what the life of inferences tells, and that the documentation knows every metric."""

from __future__ import annotations

import re
from uuid import uuid4

from chat import runtime
from chat.metrics import Metrics
from chat.tests.inside import InsideSite
from inference.journal import Ending, Status
from inference.life import (
    BeatFailed,
    Ended,
    HeardBy,
    Moment,
    Pressed,
    Reaped,
    Renewed,
    Stopped,
    StopTimes,
)
from testing.services import PROJECT


def counted(name: str, *moments: Moment, **labels: str) -> float | None:
    metrics = Metrics()
    for moment in moments:
        metrics.hear(moment)
    return metrics.registry.get_sample_value(f"chatsite_{name}", labels)


def ending(status: Status, *, error_code: str | None = None) -> Ending:
    return Ending(uuid4(), uuid4(), "room.x", status, position=30, error_code=error_code)


def ended(told: Ending | None, *, stop: StopTimes | None = None) -> Ended:
    return Ended(uuid4(), told, seconds=4.0, chunk_count=9, generated=42, overrun=12, stop=stop)


def stopped(by: HeardBy, seconds: float | None) -> Stopped:
    return Stopped(uuid4(), "page", by, seconds)


def test_a_stop_found_in_the_row_is_a_signal_that_was_lost_and_repaired() -> None:
    heard = [stopped(HeardBy.ROW, 0.9), stopped(HeardBy.EVENT, 0.001), stopped(HeardBy.HERE, 0.0)]
    assert counted("stop_signals_repaired_total", *heard) == 1
    assert counted("stop_heard_seconds_sum", *heard, by="row") == 0.9
    assert counted("stop_heard_seconds_count", *heard, by="event") == 1


def test_a_stop_that_could_not_be_recorded_has_no_time_since_its_record() -> None:
    assert counted("stop_heard_seconds_count", stopped(HeardBy.EVENT, None), by="event") == 0
    unrecorded = Pressed(uuid4(), "page", "unavailable", record_seconds=None, seconds=2.0)
    assert counted("stop_recorded_seconds_count", unrecorded) == 0
    assert counted("stops_total", unrecorded, source="page", outcome="unavailable") == 1


def test_the_steps_of_a_stop_are_told_at_its_end() -> None:
    end = ended(ending(Status.STOPPED), stop=StopTimes(close_seconds=0.25, save_seconds=0.5))
    assert counted("stop_closed_seconds_sum", end) == 0.25
    assert counted("stop_saved_seconds_sum", end) == 0.5
    assert counted("stop_overrun_characters_sum", end) == 12


def test_a_reply_that_was_not_stopped_says_nothing_of_stops() -> None:
    end = ended(ending(Status.FAILED, error_code="timeout"))
    assert counted("stop_overrun_characters_count", end) == 0
    assert counted("engine_errors_total", end, code="timeout") == 1
    assert counted("chunks_total", end) == 9


def test_interrupted_replies_are_told_by_their_owner_or_by_whoever_reaps_them() -> None:
    assert counted("inferences_ended_total", ended(ending(Status.INTERRUPTED)), status="interrupted") == 1
    assert counted("inferences_reaped_total", Reaped(ending(Status.INTERRUPTED)), status="interrupted") == 1
    assert counted("inferences_ended_total", ended(None), status="deleted") == 1


def test_what_failed_and_what_was_renewed_is_counted() -> None:
    assert counted("subscription_renewals_total", Renewed(), Renewed()) == 2
    assert counted("beats_failed_total", BeatFailed("checkpoint"), act="checkpoint") == 1


async def test_the_documentation_names_every_metric_and_no_other(inside: InsideSite) -> None:
    families = list(runtime.current().metrics.registry.collect())
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    own = {name for name in names if name.startswith("chatsite_")} | {"chatsite_workers"}
    text = (PROJECT / "docs" / "METRICS.md").read_text()
    documented = {name.removesuffix("_bucket") for name in re.findall(r"\bchatsite_[a-z_]+", text)}
    assert documented == own
