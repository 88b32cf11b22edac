"""What the dashboard tells, counted in the rows. No texts are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.db.models import Count, Max, Min, Q
from django.db.models.functions import TruncDay, TruncHour
from django.utils import timezone

from chat.models import Inference
from chat.models.inference import InferenceQuerySet
from inference.journal import Status

HOURS = 48
DAYS = 30
NEWEST_ROWS = 10_000
"""Percentiles and positions are those of so many rows at most."""
MAX_MODELS = 15
PERCENTILES = (50, 90, 95, 99)
POSITION_STEPS = (0, 1, 100, 300, 1_000, 3_000, 10_000)
STOPPED = Q(status=Status.STOPPED)


@dataclass(frozen=True, slots=True)
class Span:
    """The replies that began in an hour or on a day, and how many of them were stopped."""

    start: datetime
    replies: int
    stopped: int


@dataclass(frozen=True, slots=True)
class ModelStops:
    """One model's replies of late, and how many of them were stopped."""

    model: str
    replies: int
    stopped: int

    @property
    def percent(self) -> float:
        return round(100 * self.stopped / self.replies, 1)


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker that writes replies now."""

    worker: object
    replies: int
    oldest_start: datetime
    last_heartbeat: datetime


def hours() -> list[Span]:
    """The last two days by hour, the present one included."""
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    starts = [now - timedelta(hours=HOURS - 1 - number) for number in range(HOURS)]
    return _spans(TruncHour("started_at"), starts)


def days() -> list[Span]:
    """The last thirty days, today included."""
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    starts = [today - timedelta(days=DAYS - 1 - number) for number in range(DAYS)]
    return _spans(TruncDay("started_at"), starts)


def models() -> list[ModelStops]:
    """The models with the most replies in thirty days."""
    found = _of_late().order_by().values("model").annotate(replies=Count("pk"), stopped=Count("pk", filter=STOPPED))
    return [ModelStops(**row) for row in found.order_by("-replies")[:MAX_MODELS]]


def stop_positions() -> list[tuple[str, int]]:
    """How many stops fell into which stretch of the reply, in characters after the text it began with."""
    stops = _of_late().filter(STOPPED).order_by("-started_at").values_list("position", "kept")[:NEWEST_ROWS]
    counts = Counter(_stretch(max(0, position - kept)) for position, kept in stops)
    return [(name, counts[name]) for name in STRETCHES]


def seconds_to_first_token() -> list[tuple[str, float]]:
    """Percentiles, in seconds."""
    found = _of_late().filter(first_chunk_at__isnull=False).order_by("-started_at")
    return _percentiles(found.values_list("started_at", "first_chunk_at")[:NEWEST_ROWS])


def seconds_from_stop_to_saved() -> list[tuple[str, float]]:
    """Percentiles, in seconds; cuts after the end are instant by their nature and count too."""
    found = _of_late().filter(STOPPED, finished_at__isnull=False).order_by("-started_at")
    return _percentiles(found.values_list("stop_requested_at", "finished_at")[:NEWEST_ROWS])


def live_workers() -> list[LiveWorker]:
    """Those with live replies; an idle worker leaves no trace in the rows."""
    found = Inference.objects.live().order_by().values("worker")
    found = found.annotate(replies=Count("pk"), oldest_start=Min("started_at"), last_heartbeat=Max("heartbeat_at"))
    return [LiveWorker(**row) for row in found.order_by("worker")]


def _of_late() -> InferenceQuerySet:
    return Inference.objects.filter(started_at__gte=timezone.now() - timedelta(days=DAYS))


def _spans(truncated: TruncHour | TruncDay, starts: Sequence[datetime]) -> list[Span]:
    found = Inference.objects.filter(started_at__gte=starts[0]).order_by().values(start=truncated)
    counted = found.annotate(replies=Count("pk"), stopped=Count("pk", filter=STOPPED))
    known = {row["start"]: Span(**row) for row in counted}
    return [known.get(start, Span(start, 0, 0)) for start in starts]


def _names(steps: Sequence[int]) -> list[str]:
    names = [f"{low:,}-{high - 1:,}" for low, high in pairwise(steps[1:])]
    return ["nothing shown", *names, f"{steps[-1]:,} and more"]


STRETCHES = _names(POSITION_STEPS)


def _stretch(position: int) -> str:
    return STRETCHES[sum(position >= step for step in POSITION_STEPS[1:])]


def _percentiles(pairs: Iterable[tuple[datetime | None, datetime | None]]) -> list[tuple[str, float]]:
    lasted = sorted((end - start).total_seconds() for start, end in pairs if start and end)
    if not lasted:
        return []
    return [(f"p{each}", round(lasted[min(len(lasted) - 1, len(lasted) * each // 100)], 3)) for each in PERCENTILES]
