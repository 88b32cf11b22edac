"""How the addresses in the settings become connections."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatsite.connections import redis_host
from testing.services import PROJECT, site_environment


def shown(expression: str, **variables: str) -> object:
    """The value of an expression over the settings, in a process with these variables."""
    code = f"import json; from django.conf import settings; print(json.dumps({expression}))"
    environment = site_environment(DJANGO_SETTINGS_MODULE="chatsite.settings", **variables)
    run = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, env=environment, capture_output=True, check=True)
    value: object = json.loads(run.stdout)
    return value


def test_what_libpq_knows_may_follow_the_database() -> None:
    url = "postgres://u:p%40ss@db:5433/chat?sslmode=verify-full&sslrootcert=/ca.pem"
    config = shown("settings.DATABASES['default']", DATABASE_URL=url, DATABASE_POOL_SIZE="9")
    assert isinstance(config, dict)
    assert (config["USER"], config["PASSWORD"], config["HOST"], config["PORT"]) == ("u", "p@ss", "db", 5433)
    options = config["OPTIONS"]
    assert (options["sslmode"], options["sslrootcert"]) == ("verify-full", "/ca.pem")
    assert options["pool"]["max_size"] == 9


@pytest.mark.parametrize("name", ["SECRET_KEY", "OPENAI_API_KEY", "METRICS_TOKEN"])
def test_a_secret_may_begin_with_anything(name: str) -> None:
    """A dollar too, which elsewhere names another variable."""
    assert shown(f"settings.{name}", **{name: "$HOME-{made}#by chance"}) == "$HOME-{made}#by chance"


def test_health_checks_of_this_machine_are_answered_whatever_the_sites_name() -> None:
    hosts = shown("settings.ALLOWED_HOSTS", ALLOWED_HOSTS="chat.example.org")
    assert hosts == ["chat.example.org", "localhost", "127.0.0.1", "[::1]"]


def test_one_redis_is_named_by_its_address() -> None:
    host = redis_host("redis://:secret@r:6379/2", timeout_seconds=2, ca_file="/ca.pem")
    assert host == {"address": "redis://:secret@r:6379/2", "socket_timeout": 2, "socket_connect_timeout": 2}


def test_tls_is_checked_against_the_certificates_that_are_named() -> None:
    assert redis_host("rediss://r/0", timeout_seconds=2, ca_file="/ca.pem")["ssl_ca_certs"] == "/ca.pem"
    assert "ssl_ca_certs" not in redis_host("rediss://r/0", timeout_seconds=2)


def test_sentinels_are_named_with_their_master() -> None:
    url = "redis+sentinel://app:p%40ss@one:26380,two,[::1]:7/mymaster/3"
    host = redis_host(url, timeout_seconds=2, sentinel_password="other")
    assert host["sentinels"] == [("one", 26380), ("two", 26379), ("::1", 7)]
    assert (host["master_name"], host["db"]) == ("mymaster", 3)
    assert (host["username"], host["password"]) == ("app", "p@ss")
    assert host["sentinel_kwargs"]["password"] == "other"


def test_tls_goes_for_sentinels_too() -> None:
    host = redis_host("rediss+sentinel://one/mymaster", timeout_seconds=2, ca_file="/ca.pem")
    for options in (host, host["sentinel_kwargs"]):
        assert (options["ssl"], options["ssl_ca_certs"]) == (True, "/ca.pem")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://r", "must begin with redis://"),
        ("redis+cluster://r", "must begin with redis://"),
        ("redis+sentinel://one,two", "name of the master"),
        ("redis+sentinel://one/mymaster/x", "name of the master"),
        ("redis+sentinel://one:x/mymaster", "no port in 'one:x'"),
    ],
)
def test_an_address_that_can_not_be_is_said_in_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"REDIS_URL.*{sentence}"):
        redis_host(url, timeout_seconds=2)
