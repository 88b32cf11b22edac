"""What the commands and the settings agree on about the environment."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

import pytest

from testing.server_process import free_port
from testing.services import PROJECT, site_environment, site_variables

READ = re.compile(
    r"(?:\benv(?:\.\w+)?|\bon_off|\bnumber|\bwhole|\bchoice|\baddress|\bverbatim)\(\s*\"([A-Z][A-Z0-9_]*)\""
)
# ENV_FILE says which file holds the others, so it can't stand in it.
NOT_IN_FILE = {"ENV_FILE"}


def test_every_variable_the_settings_read_has_a_line_in_the_example() -> None:
    """The tests also rely on it: what is named there is kept away from them."""
    read = set(READ.findall((PROJECT / "chatsite" / "settings.py").read_text())) - NOT_IN_FILE
    assert {"SECRET_KEY", "DEBUG", "DRAIN_SECONDS"} <= read
    assert read - site_variables() == set()


def test_the_commands_take_the_same_variables_away_as_the_tests() -> None:
    script = "include Makefile\nshow:\n\t@echo $(SITE_VARIABLES)\n"
    command = ["make", "--no-print-directory", "-f", "-", "show"]
    shown = subprocess.run(command, input=script, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert set(shown.stdout.split()) == site_variables()


@pytest.mark.processes
def test_a_port_in_use_is_said_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "manage.py", "serve", "--port", str(port)]
        answer = subprocess.run(
            command, cwd=PROJECT, env=site_environment(), capture_output=True, text=True, check=False
        )
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert f"127.0.0.1:{port}: Address already in use" in answer.stderr


def test_continuous_integration_runs_what_a_person_runs() -> None:
    lines = (PROJECT / ".ci" / "run").read_text().splitlines()
    code = [line for line in lines if line and not line.startswith("#")]
    assert code == ["set -eu", 'cd "$(dirname "$0")/.."', "exec make test"]


def test_every_pinned_package_is_one_version() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = (PROJECT / name).read_text().splitlines()
        pinned = [line for line in lines if line and not line.lstrip().startswith("#")]
        assert pinned
        assert all(re.match(r"[a-z0-9-]+(\[[a-z,-]+\])?==[^=*]+( ; .+)?$", line) for line in pinned)


def test_no_list_of_packages_names_a_host() -> None:
    for path in PROJECT.glob("requirements*"):
        assert not re.search(r"https?://|--index|--find-links", path.read_text()), path.name
