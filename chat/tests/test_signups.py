"""How many accounts are made from one address, and what becomes of two people with one name."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test import Client

from chat.models import Attempt, Invitation
from testing.client import Account
from testing.services import PostgresServer, RedisServer
from testing.workers import Site

PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def few(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.SIGNUPS_PER_HOUR = 2


def sign_up(username: str, *, path: str = "/accounts/signup/", again: str = PASSWORD, **options: Any) -> Any:
    """By a browser of their own."""
    return Client().post(path, {"username": username, "password1": PASSWORD, "password2": again}, **options)


def wait(minutes: int) -> None:
    """What was done was done so long ago."""
    Attempt.objects.update(at=F("at") - timedelta(minutes=minutes))


def test_after_so_many_accounts_of_one_address_the_form_says_when_to_try_again(db: None) -> None:
    assert [sign_up(name).status_code for name in ("ann", "ben")] == [302, 302]
    refused = sign_up("cid")
    assert refused.status_code == 429
    assert 59 * 60 < int(refused["Retry-After"]) <= 60 * 60 + 1
    page = refused.content.decode()
    assert "Too many attempts. Try again in 6" in page
    assert 'value="cid"' in page
    assert not User.objects.filter(username="cid").exists()
    wait(59)
    assert sign_up("cid").status_code == 429
    wait(1)
    assert sign_up("cid").status_code == 302


def test_others_are_not_kept_out(db: None) -> None:
    for name in ("ann", "ben"):
        sign_up(name)
    assert sign_up("cid", REMOTE_ADDR="192.0.2.7").status_code == 302


def test_an_address_is_the_one_that_our_proxy_saw(db: None, settings: Any) -> None:
    """What a client says of itself does not count, as with log-ins."""
    settings.PROXY_COUNT = 1
    seen = [sign_up(f"p{n}", headers={"X-Forwarded-For": f"198.51.100.{n}, 203.0.113.9"}) for n in range(3)]
    assert [answer.status_code for answer in seen] == [302, 302, 429]
    assert sign_up("other", headers={"X-Forwarded-For": "203.0.113.10"}).status_code == 302


def test_only_accounts_that_are_made_are_counted(db: None) -> None:
    for _ in range(5):
        assert sign_up("ann", again="something else").status_code == 200
    assert sign_up("ann").status_code == 302


def test_attempts_to_log_in_do_not_make_sign_ups_forgotten(db: None) -> None:
    """Those count for a quarter of an hour, and whoever counts deletes what is old."""
    for name in ("ann", "ben"):
        sign_up(name)
    wait(20)
    Client().post("/accounts/login/", {"username": "ann", "password": "wrong"})
    assert sign_up("cid").status_code == 429


def test_invitations_are_not_counted(db: None, settings: Any) -> None:
    settings.SIGNUP = "invite"
    for number in range(3):
        invitation = Invitation()
        secret = invitation.new_secret()
        invitation.save()
        assert sign_up(f"guest{number}", path=f"/accounts/invited/{secret}/").status_code == 302


def test_without_limits_sign_ups_are_not_counted(db: None, settings: Any) -> None:
    settings.LIMITS = False
    assert [sign_up(f"p{number}").status_code for number in range(3)] == [302] * 3
    assert not Attempt.objects.exists()


def test_of_two_people_who_take_the_same_name_at_once_one_is_told_that_it_is_taken(
    transactional_db: None, settings: Any
) -> None:
    """Both have seen that it is free."""
    settings.SIGNUPS_PER_HOUR = 10
    both_have_looked, answers = threading.Barrier(2), []

    def insert(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith('INSERT INTO "auth_user"'):
            both_have_looked.wait(10)
        return execute(sql, *rest)

    def take() -> None:
        try:
            with connection.execute_wrapper(insert):
                answers.append(sign_up("ann"))
        finally:
            connection.close()

    in_threads(take, take)
    assert sorted(answer.status_code for answer in answers) == [200, 302]
    assert any("already exists" in answer.content.decode() for answer in answers)
    assert User.objects.filter(username="ann").count() == 1


def in_threads(*acts: Callable[[], None]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)


@pytest.mark.processes
def test_all_workers_count_together(postgres_server: PostgresServer, session_redis: RedisServer) -> None:
    """At the same time too: each of them takes what is left by the others."""
    variables = {"SIGNUPS_PER_HOUR": "2", "REDIS_PREFIX": uuid.uuid4().hex}
    made: list[str] = []
    with (
        postgres_server.new_database() as url,
        Site(2, database_url=url, redis_url=session_redis.url, **variables) as site,
    ):

        def come(worker: int, name: str) -> None:
            with Account(site.workers[worker].url, name) as account, suppress(AssertionError):
                account.sign_up()
                made.append(name)

        in_threads(*(partial(come, number % 2, f"p{number}") for number in range(4)))
        assert len(made) <= 2
        for number in range(4):
            come(number % 2, f"later{number}")
        assert len(made) == 2
