"""Accounts: who may make one, how often a password may be guessed, new passwords, and the end of old sessions."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection
from django.db.models import F
from django.test import Client, RequestFactory
from django.utils import timezone

from chat import attempts
from chat.attempts import address_of
from chat.models import ApiToken, Attempt, Invitation, Room
from chat.tests.inside import InsideSite

PASSWORD = "correct horse battery staple"
ANOTHER = "another correct horse"
SIGN_UP = {"username": "newcomer", "password1": PASSWORD, "password2": PASSWORD}


@pytest.fixture(autouse=True)
def fast_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def dora(db: None) -> User:
    """Somebody with a password."""
    return User.objects.create_user("dora", "dora@example.org", PASSWORD)


def log_in(client: Client, password: str, username: str = "dora", **options: Any) -> Any:
    return client.post("/accounts/login/", {"username": username, "password": password}, **options)


def wait_a_window() -> None:
    """What was attempted was attempted a quarter of an hour ago."""
    Attempt.objects.update(at=F("at") - timedelta(minutes=15))


def invite(**fields: Any) -> str:
    invitation = Invitation(**fields)
    secret = invitation.new_secret()
    invitation.save()
    return f"/accounts/invited/{secret}/"


def test_a_password_can_be_guessed_so_often_and_then_not_even_the_right_one_counts(client: Client, dora: User) -> None:
    for _ in range(10):
        assert log_in(client, "wrong").status_code == 200
    refused = log_in(client, PASSWORD)
    assert refused.status_code == 429
    assert 14 * 60 < int(refused["Retry-After"]) <= 15 * 60 + 1
    assert "Too many attempts. Try again in 15 min." in refused.content.decode().replace("16", "15")
    wait_a_window()
    assert log_in(client, PASSWORD).status_code == 302


def test_what_is_refused_does_not_prolong_the_wait(client: Client, dora: User) -> None:
    for _ in range(30):
        log_in(client, "wrong")
    assert Attempt.objects.recent("login", "dora").count() == 10


def test_the_right_password_makes_wrong_ones_forgotten(client: Client, dora: User) -> None:
    for _ in range(3):
        for _ in range(9):
            log_in(client, "wrong")
        assert log_in(client, PASSWORD).status_code == 302
        client.logout()


def test_of_many_guesses_at_the_same_time_no_more_go_on_than_of_many_in_a_row(transactional_db: None) -> None:
    start, went_on = threading.Barrier(8), []

    def guess() -> None:
        start.wait(10)
        try:
            attempts.begin("login", "dora", 3)
            went_on.append(1)
        except attempts.TooManyAttempts:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=guess) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(went_on) <= 3
    assert Attempt.objects.recent("login", "dora").count() == len(went_on)


def test_a_strangers_guesses_keep_nobody_from_changing_the_password(client: Client, dora: User) -> None:
    for _ in range(11):
        log_in(Client(), "wrong")
    client.force_login(dora)
    fields = {"old_password": PASSWORD, "new_password1": ANOTHER, "new_password2": ANOTHER}
    assert client.post("/accounts/password/", fields)["Location"] == "/accounts/"


def test_a_name_is_one_name_however_it_is_typed(client: Client, dora: User) -> None:
    for name in ("dora", "Dora", "DORA", "dora ", "ｄｏｒａ") * 2:
        log_in(client, "wrong", name)
    assert log_in(client, PASSWORD).status_code == 429


def test_an_account_that_is_none_or_closed_is_answered_like_one_that_is(client: Client, dora: User) -> None:
    User.objects.create_user("closed", password=PASSWORD, is_active=False)

    def answers(username: str) -> list[tuple[int, str]]:
        found = [log_in(client, "wrong", username) for _ in range(12)]
        return [(each.status_code, re.sub(r'value="\w+"', "", each.content.decode())) for each in found]

    assert answers("dora") == answers("nobody") == answers("closed")


def test_an_address_that_fails_on_many_accounts_has_to_wait_and_others_have_not(
    client: Client, dora: User, settings: Any
) -> None:
    settings.LOGIN_FAILURES_PER_ADDRESS = 5
    for number in range(5):
        log_in(client, "wrong", f"name{number}")
    assert log_in(client, PASSWORD).status_code == 429
    assert log_in(client, PASSWORD, REMOTE_ADDR="192.0.2.7").status_code == 302


def test_the_admins_log_in_counts_the_same_guesses(client: Client, dora: User) -> None:
    User.objects.filter(pk=dora.pk).update(is_staff=True)
    for _ in range(10):
        client.post("/admin/login/", {"username": "dora", "password": "wrong"})
    refused = client.post("/admin/login/", {"username": "dora", "password": PASSWORD})
    assert "Too many attempts" in refused.content.decode()
    assert log_in(client, PASSWORD).status_code == 429


def test_without_limits_nothing_is_counted(client: Client, dora: User, settings: Any) -> None:
    settings.LIMITS = False
    for _ in range(15):
        log_in(client, "wrong")
    assert log_in(client, PASSWORD).status_code == 302
    assert not Attempt.objects.exists()


def test_old_attempts_are_deleted_and_names_are_not_kept(client: Client, dora: User) -> None:
    log_in(client, "wrong", "my-password-typed-as-a-name")
    assert "my-password" not in repr(list(Attempt.objects.values()))
    for _ in range(4):
        wait_a_window()
    log_in(client, "wrong")
    assert Attempt.objects.count() == 2  # of the account and of the address


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "203.0.113.9", "127.0.0.1"),
        (1, "203.0.113.9", "203.0.113.9"),
        (1, "made-up, 203.0.113.9", "203.0.113.9"),
        (2, "made-up, 203.0.113.9, 10.0.0.1", "203.0.113.9"),
        (2, "203.0.113.9", "203.0.113.9"),
        (1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        (1, "::ffff:192.0.2.1", "192.0.2.1"),
        (1, "nonsense", ""),
        (1, "", "127.0.0.1"),
    ],
)
def test_an_address_is_whom_our_outermost_proxy_was_asked_by(
    settings: Any, proxies: int, forwarded: str, address: str
) -> None:
    settings.PROXY_COUNT = proxies
    assert address_of(RequestFactory().get("/", headers={"X-Forwarded-For": forwarded})) == address


def test_everybody_may_sign_up_where_it_is_open(client: Client, db: None) -> None:
    assert client.post("/accounts/signup/", SIGN_UP)["Location"] == "/rooms/"
    assert client.get("/rooms/").status_code == 200


@pytest.mark.parametrize("password", ["short", "password123", "newcomer1", "8316529740"])
def test_a_password_that_is_easily_guessed_is_refused(client: Client, db: None, password: str) -> None:
    answer = client.post("/accounts/signup/", SIGN_UP | {"password1": password, "password2": password})
    assert "password" in answer.context["form"].errors.as_text()
    assert not User.objects.exists()


@pytest.mark.parametrize(("signup", "said"), [("closed", "takes no new accounts"), ("invite", "by invitation")])
def test_a_site_that_is_not_open_says_so_and_makes_no_account(
    client: Client, db: None, settings: Any, signup: str, said: str
) -> None:
    settings.SIGNUP = signup
    for answer in (client.get("/accounts/signup/"), client.post("/accounts/signup/", SIGN_UP)):
        assert answer.status_code == 403
        assert said in answer.content.decode()
    assert "/accounts/signup/" not in client.get("/accounts/login/").content.decode()
    assert not User.objects.exists()


def test_an_invitation_lets_one_person_in(client: Client, db: None, settings: Any) -> None:
    settings.SIGNUP = "invite"
    link = invite(note="for the newcomer")
    assert client.get(link).status_code == 200
    assert client.post(link, SIGN_UP)["Location"] == "/rooms/"
    assert Invitation.objects.get().used_by == User.objects.get(username="newcomer")
    assert Client().post(link, SIGN_UP | {"username": "second"}).status_code == 403
    assert "no longer valid" in Client().get(link).content.decode()
    assert User.objects.count() == 1


def test_a_form_that_is_refused_uses_no_invitation_up(client: Client, db: None, settings: Any) -> None:
    settings.SIGNUP = "invite"
    link = invite()
    assert client.post(link, SIGN_UP | {"password2": "different"}).status_code == 200
    assert client.post(link, SIGN_UP).status_code == 302


def test_two_people_with_one_invitation_make_one_account(dora: User) -> None:
    """Completion against completion: the second has seen it open, and does not get it."""
    secret = invite().split("/")[-2]
    assert Invitation.objects.is_open(secret)
    assert [Invitation.objects.use(secret, dora), Invitation.objects.use(secret, dora)] == [True, False]


@pytest.mark.parametrize("made", ["expired", "unknown", "in a closed site"])
def test_an_invitation_that_does_not_work_makes_no_account(client: Client, db: None, settings: Any, made: str) -> None:
    settings.SIGNUP = "closed" if made == "in a closed site" else "invite"
    left = timedelta(seconds=-1 if made == "expired" else 60)
    link = "/accounts/invited/unknown/" if made == "unknown" else invite(expires_at=timezone.now() + left)
    assert client.post(link, SIGN_UP).status_code == 403
    assert not User.objects.exists()


def test_an_admin_makes_an_invitation_whose_link_is_shown_once_and_kept_as_a_hash(
    admin_client: Client, settings: Any
) -> None:
    settings.SIGNUP = "invite"
    settings.PUBLIC_URL = "https://chat.example.org"
    fields = {"note": "for Eve", "expires_at_0": "2999-01-01", "expires_at_1": "00:00:00"}
    page = admin_client.post("/admin/chat/invitation/add/", fields, follow=True).content.decode()
    found = re.search(r"https://chat\.example\.org(/accounts/invited/([\w-]+)/)", page)
    assert found
    assert found[2] not in repr(list(Invitation.objects.values()))
    assert found[2] not in admin_client.get("/admin/chat/invitation/").content.decode()
    assert Client().post(found[1], SIGN_UP)["Location"] == "/rooms/"
    assert Invitation.objects.get().created_by == User.objects.get(username="admin")


def test_a_new_password_needs_the_old_one_and_guessing_it_is_counted(client: Client, dora: User) -> None:
    client.force_login(dora)
    fields = {"old_password": "wrong", "new_password1": ANOTHER, "new_password2": ANOTHER}
    for _ in range(10):
        assert "That is not your password." in client.post("/accounts/password/", fields).content.decode()
    refused = client.post("/accounts/password/", fields | {"old_password": PASSWORD}).content.decode()
    assert "Too many attempts" in refused
    wait_a_window()
    assert client.post("/accounts/password/", fields | {"old_password": PASSWORD})["Location"] == "/accounts/"
    assert client.get("/accounts/").status_code == 200


def test_another_address_for_mail_needs_the_password(client: Client, dora: User) -> None:
    client.force_login(dora)
    fields = {"email": "new@example.org", "password": "wrong"}
    assert "That is not your password." in client.post("/accounts/email/", fields).content.decode()
    assert client.post("/accounts/email/", fields | {"password": PASSWORD}).status_code == 302
    dora.refresh_from_db()
    assert dora.email == "new@example.org"


@pytest.mark.parametrize("path", ["", "password/", "everywhere/", "email/"])
def test_nobody_gets_an_account_page_without_signing_in(client: Client, db: None, path: str) -> None:
    assert client.get(f"/accounts/{path}")["Location"].startswith("/accounts/login/")


async def end_session(inside: InsideSite, dora: User, end: Callable[[Any], Any]) -> list[int]:
    """The close codes of a socket in the browser that ends it, and of one in another browser."""
    room = await sync_to_async(Room.objects.create_for)(dora)
    other = InsideSite()
    async with inside.open(dora, room.pk) as here, other.open(dora, room.pk) as there:
        await here.next("hello")
        await there.next("hello")
        assert (await end(await inside.client(dora))).status_code == 302
        async with asyncio.timeout(10):
            return [(await socket.next("close"))["code"] for socket in (here, there)]


async def test_a_new_password_closes_the_sockets_of_the_old_one(inside: InsideSite, dora: User) -> None:
    """Within ten seconds; this browser stays signed in, its sockets come back by the new session."""
    fields = {"old_password": PASSWORD, "new_password1": ANOTHER, "new_password2": ANOTHER}
    codes = await end_session(inside, dora, lambda browser: browser.post("/accounts/password/", fields))
    assert codes == [4401, 4401]
    assert (await (await inside.client(dora)).get("/rooms/")).status_code == 200


async def test_signing_out_everywhere_ends_all_sockets_sessions_and_tokens(inside: InsideSite, dora: User) -> None:
    secret = (await sync_to_async(ApiToken.objects.make_for)(dora, "a program"))[1]
    fields = {"password": PASSWORD}
    codes = await end_session(inside, dora, lambda browser: browser.post("/accounts/everywhere/", fields))
    assert codes == [4401, 4401]
    browser, nobody = await inside.client(dora), await inside.client(None)
    assert (await browser.get("/rooms/")).status_code == 302
    answer = await nobody.get("/api/v1/rooms", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 401
    assert (await browser.post("/accounts/login/", {"username": "dora", **fields})).status_code == 302


async def test_signing_out_everywhere_needs_the_password(inside: InsideSite, dora: User) -> None:
    browser = await inside.client(dora)
    answer = await browser.post("/accounts/everywhere/", {"password": "wrong"})
    assert "That is not your password." in answer.content.decode()
    assert (await browser.get("/rooms/")).status_code == 200


async def mailed(inside: InsideSite, address: str) -> list[str]:
    """Ask for a link, and wait for all that the worker still has to do."""
    mail.outbox.clear()
    answer = await (await inside.client(None)).post("/accounts/password/reset/", {"email": address})
    assert answer["Location"] == "/accounts/login/"
    while sending := [task for task in asyncio.all_tasks() if "_send" in repr(task.get_coro())]:
        await asyncio.wait(sending, timeout=10)
    return [str(message.body) for message in mail.outbox]


async def test_a_forgotten_password_is_replaced_by_a_link_that_works_once(
    inside: InsideSite, dora: User, settings: Any
) -> None:
    settings.IS_EMAIL_ON = True
    settings.PUBLIC_HOST, settings.IS_HTTPS = "chat.example.org", True
    for _ in range(10):
        await sync_to_async(log_in)(Client(), "wrong")
    [body] = await mailed(inside, "Dora@example.org")
    found = re.search(r"https://chat\.example\.org(/accounts/password/reset/\S+)", body)
    assert found
    browser = await inside.client(None)
    form = (await browser.get(found[1]))["Location"]
    fields = {"new_password1": ANOTHER, "new_password2": ANOTHER}
    assert (await browser.post(form, fields))["Location"] == "/accounts/login/"
    assert (await sync_to_async(log_in)(Client(), ANOTHER)).status_code == 302
    again = await browser.get(found[1])
    assert "no longer valid" in again.content.decode()


async def test_no_answer_tells_which_addresses_have_accounts(inside: InsideSite, dora: User, settings: Any) -> None:
    settings.IS_EMAIL_ON = True
    browser = await inside.client(None)
    pages = []
    for address in ("dora@example.org", "nobody@example.org"):
        await mailed(inside, address)
        pages.append((await browser.get("/accounts/login/")).content.decode())
    assert "is on its way" in pages[0]
    assert re.sub(r'value="\w+"', "", pages[0]) == re.sub(r'value="\w+"', "", pages[1])
    assert await mailed(inside, "nobody@example.org") == []


async def test_links_are_not_mailed_without_end(inside: InsideSite, dora: User, settings: Any) -> None:
    settings.IS_EMAIL_ON = True
    for _ in range(10):
        assert len(await mailed(inside, "dora@example.org")) == 1
    browser = await inside.client(None)
    refused = await browser.post("/accounts/password/reset/", {"email": "dora@example.org"})
    assert refused.status_code == 429
    assert "Too many attempts" in refused.content.decode()


def test_a_site_without_mail_says_whom_to_ask(client: Client, db: None, settings: Any) -> None:
    settings.IS_EMAIL_ON = False
    page = client.get("/accounts/password/reset/").content.decode()
    assert "Ask whoever runs it" in page
    assert '<form class="field"' not in page
