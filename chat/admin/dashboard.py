"""The dashboard's page: the figures as charts. Shown by the admin of inferences."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from chat.admin import figures
from chat.admin.charts import Chart, bars, stacked_bars
from chat.admin.figures import Span
from chat.models import Inference

MAX_LIVE = 50


def dashboard_context() -> dict[str, Any]:
    """For templates/admin/chat/dashboard.html."""
    live = Inference.objects.live().select_related("room", "message__parent__author")
    live = live.defer("parts", "message__text", "message__parent__text", "room__system_prompt")
    return {
        "title": "Replies and stops",
        "charts": charts(),
        "workers": figures.live_workers(),
        "live": live.order_by("started_at")[:MAX_LIVE].annotate(asker=F("message__parent__author__username")),
    }


def charts() -> list[Chart]:
    """All charts, each from a query of its own."""
    return [
        _over_time("Replies by hour, the last 48 hours (UTC)", figures.hours(), "%d %b %Hh", first="Hour"),
        _over_time("Replies by day, the last 30 days (UTC)", figures.days(), "%d %b", first="Day"),
        bars(
            "Stopped replies by model, percent of 30 days",
            [(row.model or "no name", row.percent) for row in figures.models()],
            head=["Model", "Stopped, percent"],
        ),
        bars(
            "Where in a reply people stop, by characters shown",
            figures.stop_positions(),
            head=["Characters shown", "Stops"],
        ),
        bars("Time to first token, seconds", figures.seconds_to_first_token(), head=["Percentile", "Seconds"]),
        bars("From stop to saved, seconds", figures.seconds_from_stop_to_saved(), head=["Percentile", "Seconds"]),
    ]


def _over_time(title: str, spans: list[Span], label: str, *, first: str) -> Chart:
    return stacked_bars(
        title,
        [format(span.start, label) for span in spans],
        {
            "Not stopped": [span.replies - span.stopped for span in spans],
            "Stopped": [span.stopped for span in spans],
        },
        first=first,
    )
