"""What stops a start, or will be missed after it, is said in one sentence that tells what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatsite import connections, files
from chatsite.preflight import complaints
from testing.model_server import ModelServer
from testing.server_process import free_port
from testing.services import PROJECT, RedisServer, site_environment

SENTENCES = {
    "PORT=80000": "PORT must be at most 65535, not 80000.",
    "OPENAI_BASE_URL=nonsense": "OPENAI_BASE_URL must be like http://127.0.0.1:11434/v1, not 'nonsense'.",
    "DATABASE_URL=sqlite:////nonexistent/folder/x": (
        "CommandError: The database can't be used: unable to open database file. "
        "DATABASE_URL, or DATA_DIR, must name a folder in which this account may write."
    ),
}


def migrate(**variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "migrate"]
    environment = site_environment(**variables)
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.processes
@pytest.mark.parametrize("setting", SENTENCES)
def test_a_setting_that_cannot_be_is_said_in_one_line(setting: str) -> None:
    name, _, value = setting.partition("=")
    answer = migrate(**{"DATABASE_URL": "sqlite://:memory:", name: value})
    assert answer.returncode == 1
    assert answer.stderr.splitlines() == [SENTENCES[setting]]


@pytest.mark.processes
def test_a_database_that_is_away_is_said_in_one_line_and_at_once() -> None:
    """Not after the pool's patience, and not by its words, which say nothing of why."""
    port = free_port()
    answer = migrate(DATABASE_URL=f"postgres://chatsite:PASSWORD@127.0.0.1:{port}/chatsite")
    [line] = answer.stderr.splitlines()
    assert f"port {port} failed: Connection refused. Start it, or correct DATABASE_URL." in line
    assert "PASSWORD" not in line


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://host/name", "postgres://user:SECRET@host:notaport/name"])
def test_the_address_of_a_database_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must be like postgres://") as refused:
        connections.database(url, timeout_seconds=1, pool_size=2)
    assert "SECRET" not in str(refused.value)


def test_a_port_of_redis_that_is_none_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL has no port in 'host:notaport'"):
        connections.redis_host("redis://:secret@host:notaport/0", timeout_seconds=1)


def test_a_folder_that_cannot_be_is_named_with_its_setting(tmp_path: Path) -> None:
    """A file stands there; who runs as root may write anywhere else."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ImproperlyConfigured, match=f"DATA_DIR: there can't be a folder {file}"):
        files.made_folder(file / "below", setting="DATA_DIR")
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY_FILE or DATA_DIR, or set SECRET_KEY"):
        files.kept_secret(file / "secret_key")


def layer(url: str) -> dict[str, Any]:
    return {"default": {"CONFIG": {"hosts": [connections.redis_host(url, timeout_seconds=2)]}}}


def test_a_worker_says_which_of_its_services_do_not_answer(settings: Any) -> None:
    port = free_port()
    settings.CHANNEL_LAYERS = layer(f"redis://127.0.0.1:{port}/0")
    settings.OPENAI_BASE_URL = f"http://127.0.0.1:{port}/v1"
    redis, model_server = complaints()
    assert redis.startswith("REDIS_URL: ") and "Connection refused. Start that Redis" in redis
    assert model_server.startswith(f"OPENAI_BASE_URL: no answer from http://127.0.0.1:{port}/v1")


def test_a_worker_whose_services_answer_says_nothing(
    settings: Any, session_redis: RedisServer, model_server: ModelServer
) -> None:
    settings.CHANNEL_LAYERS = layer(session_redis.url)
    settings.OPENAI_BASE_URL = model_server.url
    assert complaints() == []


def test_an_address_of_the_model_server_that_lacks_its_end_is_told(settings: Any, model_server: ModelServer) -> None:
    settings.OPENAI_BASE_URL = model_server.url.removesuffix("/v1")
    assert ["Most servers want /v1" in sentence for sentence in complaints()] == [True]
