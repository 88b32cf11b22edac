"""The database away under pages and forms: a calm 503, nothing typed is lost, and one line in the log."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client

from chat.models import Room
from testing.client import Account
from testing.proxy import FaultProxy
from testing.services import PostgresServer, RedisServer
from testing.workers import Site, Worker

PASSWORD = "correct horse battery staple"
SIGN_UP = {"username": "newcomer", "password1": PASSWORD, "password2": PASSWORD}
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
ANSWER_SECONDS = 6.0
"""Three times the DATABASE_TIMEOUT_SECONDS of the site below, and some for a slow machine."""

END_SECONDS = 20.0


@contextmanager
def without_database(*, only: str = "") -> Iterator[None]:
    """Every statement fails as when the connection is lost; or those that name the table `only`."""

    def fail(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if only in sql:
            raise OperationalError("connection failed\nDETAIL: of which the log says nothing")
        return execute(sql, *rest)

    with connection.execute_wrapper(fail):
        yield


def fields_of(page: str) -> dict[str, str]:
    """What the button of the page sends, beside the token against forgery."""
    found = {unescape(name): unescape(value) for name, value in HIDDEN.findall(page)}
    assert found.pop("csrfmiddlewaretoken")
    return found


@pytest.mark.parametrize("path", ["/rooms/", f"/rooms/{uuid.UUID(int=1)}/", "/accounts/tokens/", "/admin/", "/theme/"])
def test_a_page_says_that_the_database_is_away(admin_client: Client, path: str) -> None:
    """But one that needs no database is as ever."""
    with without_database():
        answer = admin_client.get(path)
    if path == "/theme/":
        assert answer.status_code == 405
        return
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "can't reach its database" in answer.content.decode()
    assert admin_client.get(path).status_code in {200, 404}


def test_a_form_is_sent_again_by_its_button_to_the_letter(admin_client: Client) -> None:
    fields = {"title": '<b> & "mine"', "more": "두 줄\nof it"}
    with without_database():
        page = admin_client.post("/rooms/", fields).content.decode()
    assert fields_of(page) == fields
    assert admin_client.post("/rooms/", fields_of(page)).status_code == 302
    assert Room.objects.get().title == fields["title"]


def test_a_password_is_not_written_into_the_page(client: Client, db: None) -> None:
    with without_database():
        answer = client.post("/accounts/signup/", SIGN_UP)
    assert answer.status_code == 503
    assert PASSWORD not in answer.content.decode()
    assert "Reload this page to send it again." in answer.content.decode()


def test_an_outage_is_one_line_of_the_log(admin_client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), without_database():
        admin_client.get("/rooms/")
    assert [record.getMessage() for record in caplog.records] == [
        "answered 503, the database is away: connection failed"
    ]
    assert caplog.records[0].exc_info is None


def test_a_fault_of_ours_is_still_a_fault(admin_client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError

    admin_client.raise_request_exception = False
    with connection.execute_wrapper(fail):
        assert admin_client.get("/rooms/").status_code == 500
    assert any(record.exc_info for record in caplog.records)


def test_a_session_that_cannot_be_saved_is_an_outage_too(
    client: Client, db: None, caplog: pytest.LogCaptureFixture
) -> None:
    """It is saved behind the view, when all else has gone well."""
    User.objects.create_user("dora", password=PASSWORD)
    client.raise_request_exception = False
    with caplog.at_level(logging.INFO), without_database(only="django_session"):
        answer = client.post("/accounts/login/", {"username": "dora", "password": PASSWORD})
    assert answer.status_code == 503
    assert answer["Content-Security-Policy"]
    assert [record.name for record in caplog.records] == ["chatsite.outages"]


@pytest.fixture(scope="module")
def away(postgres_server: PostgresServer, session_redis: RedisServer) -> Iterator[tuple[Site, FaultProxy]]:
    """A site of a real worker, and its way to the database."""
    with postgres_server.new_database() as direct_url, FaultProxy(postgres_server.port) as proxy:
        url = direct_url.replace(f":{postgres_server.port}/", f":{proxy.port}/")
        variables = {"REDIS_PREFIX": uuid.uuid4().hex, "DATABASE_TIMEOUT_SECONDS": "1", "LIMITS": "off"}
        with Site(1, database_url=url, redis_url=session_redis.url, **variables) as site:
            yield site, proxy


def hang(proxy: FaultProxy) -> None:
    """Connections stay up and carry nothing, as when PostgreSQL's disk hangs."""
    proxy.stall()


def end(proxy: FaultProxy) -> None:
    """As when PostgreSQL is stopped."""
    proxy.refuse()
    proxy.reset_all()


def come_back(proxy: FaultProxy) -> None:
    proxy.accept()
    proxy.resume()


@pytest.mark.processes
@pytest.mark.parametrize("fault", [hang, end])
async def test_everything_asked_meanwhile_is_answered_and_a_form_can_be_sent_again(
    away: tuple[Site, FaultProxy], fault: Callable[[FaultProxy], None]
) -> None:
    site, proxy = away
    alice = await asyncio.to_thread(site.account, "alice")
    room_id = await asyncio.to_thread(alice.create_room)
    title = f"Kept over {fault.__name__}"
    async with people(alice) as browser:
        token = {"csrfmiddlewaretoken": alice.cookies["csrftoken"]}
        await asyncio.to_thread(fault, proxy)
        try:
            began_at = time.monotonic()
            answers = await asyncio.gather(
                browser.get("/rooms/"),
                browser.get(f"/rooms/{room_id}/"),
                browser.get("/admin/"),
                browser.post("/rooms/", data={"title": title, **token}),
                browser.post(f"/rooms/{room_id}/change/", data={"title": title, **token}),
                browser.get("/api/v1/rooms"),
            )
            seconds = time.monotonic() - began_at
            assert (await browser.get("/healthz")).status_code == 200
        finally:
            await asyncio.to_thread(come_back, proxy)
        assert [(answer.status_code, answer.headers["Retry-After"]) for answer in answers] == [(503, "5")] * 6
        assert seconds < ANSWER_SECONDS
        assert answers[-1].json()["error"]["code"] == "unavailable"
        assert fields_of(answers[3].text) == {"title": title}
        taken = await sent_again(browser, answers[3].text, token)
        assert title in (await browser.get(taken.headers["Location"])).text
    assert "Traceback" not in "".join(worker.log() for worker in site.workers)


@pytest.mark.processes
async def test_a_worker_that_is_told_to_end_does_so_even_while_the_database_hangs(
    away: tuple[Site, FaultProxy],
) -> None:
    """A thread that waits for it would keep the process for ever."""
    site, proxy = away
    alice = await asyncio.to_thread(site.account, "alice")
    with Worker(site.workers[0].variables | {"DRAIN_SECONDS": "0"}) as worker:
        async with httpx.AsyncClient(
            base_url=worker.url, cookies=alice.cookies, timeout=30, trust_env=False
        ) as browser:
            await asyncio.to_thread(hang, proxy)
            try:
                assert (await browser.get("/rooms/")).status_code == 503
                worker.terminate()
                assert await asyncio.to_thread(worker.wait, END_SECONDS) == 0
            finally:
                await asyncio.to_thread(come_back, proxy)


def people(account: Account) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=account.site_url, cookies=account.cookies, timeout=30, trust_env=False)


async def sent_again(browser: httpx.AsyncClient, page: str, token: dict[str, str]) -> httpx.Response:
    """By the page's button, until the database is there again."""
    async with asyncio.timeout(15):
        while (answer := await browser.post("/rooms/", data={**fields_of(page), **token})).status_code == 503:
            page = answer.text
    assert answer.status_code == 302, answer.text
    return answer
