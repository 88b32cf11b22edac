"""The one statement that is written by hand, on the other database: a SQLite file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.db.models.functions import Now
from django.db.utils import load_backend

from chat import endings
from chat.models import Inference, Room
from chat.tests.people import begin, complete, progress_of, saved, signal_for
from chatsite.connections import database
from inference.engine import Part
from testing.services import PROJECT, site_environment

pytestmark = pytest.mark.django_db

ENGINE = "django.db.backends.sqlite3"
TIMEOUT_SECONDS = 5.0


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "site.sqlite3"
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=PROJECT, env=site_environment(DATABASE_URL=f"sqlite:///{path}"), check=True)
    return path


@pytest.fixture(autouse=True)
def sqlite(db: None, migrated: Path, tmp_path: Path) -> Iterator[None]:
    """All rows of the test are in a SQLite file, opened as the settings say."""
    path = shutil.copy(migrated, tmp_path / "site.sqlite3")
    ours = database(f"sqlite:///{path}", timeout_seconds=TIMEOUT_SECONDS, pool_size=1)
    before = connections["default"]
    own = load_backend(ENGINE).DatabaseWrapper({**before.settings_dict, **ours}, "default")
    connections["default"] = own
    yield
    own.close()
    connections["default"] = before


@pytest.fixture
def live_inference(sqlite: None) -> Inference:
    alice = User.objects.create_user("alice")
    return begin(alice, Room.objects.create_for(alice))


def checkpoint(inference: Inference, text: str) -> None:
    Inference.objects.checkpoint([progress_of(inference, text)])


def test_a_checkpoint_saves_the_text_and_the_first_chunks_time(live_inference: Inference) -> None:
    assert connections["default"].vendor == "sqlite"
    Inference.objects.checkpoint(
        [progress_of(live_inference, [(Part.REASONING, "hm"), (Part.CONTENT, "강물🌊 \"'%s%%")])]
    )
    assert saved(live_inference) == ("streaming", "강물🌊 \"'%s%%", 12)
    assert live_inference.parts[0] == ["reasoning", "hm"]
    assert (live_inference.chunk_count, live_inference.generated_position) == (3, 12)
    assert live_inference.first_chunk_at is not None
    waited = live_inference.first_chunk_at - live_inference.started_at
    assert abs(waited - timedelta(seconds=0.25)) <= timedelta(milliseconds=1)


def test_a_checkpoint_never_puts_less_over_more(live_inference: Inference) -> None:
    checkpoint(live_inference, "Hello")
    checkpoint(live_inference, "Hel")
    assert saved(live_inference) == ("streaming", "Hello", 5)


def test_a_checkpoint_after_the_end_changes_nothing(live_inference: Inference) -> None:
    complete(live_inference, "Hello")
    checkpoint(live_inference, "Hello world")
    assert saved(live_inference) == ("completed", "Hello", 5)


def test_the_first_chunks_time_is_written_once(live_inference: Inference) -> None:
    checkpoint(live_inference, "Hel")
    live_inference.refresh_from_db()
    first = live_inference.first_chunk_at
    checkpoint(live_inference, "Hello")
    live_inference.refresh_from_db()
    assert live_inference.first_chunk_at == first


def test_stops_late_stops_and_the_reaper_work_the_same(live_inference: Inference) -> None:
    """Their conditions compare times of the database's clock."""
    alice = User.objects.get()
    Inference.objects.filter(pk=live_inference.pk).update(heartbeat_at=Now() - timedelta(seconds=9))
    assert endings.reap() == []
    complete(live_inference, "Hello")
    assert endings.cut_after_finish(signal_for(live_inference, alice, 2)) is not None
    assert saved(live_inference) == ("stopped", "He", 2)
    another = begin(alice, Room.objects.create_for(alice))
    assert Inference.objects.record_stop(signal_for(another, alice, 0))
    Inference.objects.filter(pk=another.pk).update(heartbeat_at=Now() - timedelta(seconds=11))
    assert [ending.status for ending in endings.reap()] == ["stopped"]


def test_a_late_stop_is_too_late_after_thirty_seconds(live_inference: Inference) -> None:
    complete(live_inference, "Hello")
    Inference.objects.filter(pk=live_inference.pk).update(finished_at=Now() - timedelta(seconds=31))
    assert endings.cut_after_finish(signal_for(live_inference, User.objects.get(), 2)) is None
