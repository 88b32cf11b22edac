"""The dashboard counts what is in the rows and draws it without a script."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from chat.admin import figures
from chat.models import Inference, Room
from chat.tests.test_admin import end, make_reply, make_stopped
from inference.journal import Status

DASHBOARD = "/admin/chat/inference/dashboard/"


@pytest.fixture
def replies(alice: User, room: Room) -> list[Inference]:
    """One that was completed, two that were stopped at 5 and at 40, and one that is live."""
    completed = end(make_reply(alice, room), Status.COMPLETED)
    return [completed, make_stopped(alice, room, 5), make_stopped(alice, room, 40), make_reply(alice, room)]


def test_replies_and_stops_are_counted_by_hour_and_day(replies: list[Inference]) -> None:
    Inference.objects.filter(pk=replies[1].pk).update(started_at=timezone.now() - timedelta(hours=3))
    hours, days = figures.hours(), figures.days()
    assert (len(hours), len(days)) == (figures.HOURS, figures.DAYS)
    assert sum(span.replies for span in hours) == sum(span.replies for span in days) == 4
    assert [(span.replies, span.stopped) for span in (hours[-4], hours[-1])] == [(1, 1), (3, 1)]


def test_the_stop_rate_of_a_model_is_its_share_of_stopped_replies(replies: list[Inference]) -> None:
    Inference.objects.filter(pk=replies[0].pk).update(model="other")
    found = {row.model: (row.replies, row.stopped, row.percent) for row in figures.models()}
    assert found == {"default": (3, 2, 66.7), "other": (1, 0, 0.0)}


def test_where_people_stop_is_told_by_stretches(replies: list[Inference]) -> None:
    Inference.objects.filter(pk=replies[1].pk).update(position=0)
    assert [(name, count) for name, count in figures.stop_positions() if count] == [("nothing shown", 1), ("1-99", 1)]


def test_percentiles_are_those_of_the_rows(replies: list[Inference]) -> None:
    now = timezone.now()
    Inference.objects.filter(status="stopped").update(
        started_at=now, first_chunk_at=now + timedelta(seconds=2), stop_requested_at=now, finished_at=now
    )
    assert dict(figures.seconds_to_first_token()) == {"p50": 2.0, "p90": 2.0, "p95": 2.0, "p99": 2.0}
    assert dict(figures.seconds_from_stop_to_saved())["p99"] == 0.0


def test_the_page_shows_what_runs_now_and_draws_without_a_script(
    admin_client: Client, replies: list[Inference]
) -> None:
    shown = admin_client.get(DASHBOARD).content.decode()
    content = shown[shown.index('<div id="content-main"') : shown.index("</main>")]
    assert f"/admin/chat/inference/{replies[3].pk}/change/" in content
    assert len(re.findall(r'<svg[^>]*role="img"', content)) == 6
    assert "<script" not in content
    assert "http" not in re.sub(r"http://(www\.w3\.org|pygal\.org|github\.com/Kozea/pygal)", "", content)


@pytest.mark.django_db
def test_an_empty_site_has_a_dashboard_too(admin_client: Client) -> None:
    shown = admin_client.get(DASHBOARD).content.decode()
    assert "No reply is being written" in shown
    assert "Nothing yet" in shown
