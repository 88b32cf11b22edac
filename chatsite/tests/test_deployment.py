"""The site as production runs it: Django's own checks, no start without a secret, and https behind a proxy."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import websockets
from websockets.typing import Origin

from chatsite.files import kept_secret
from chatsite.tests.test_containers import Nginx
from testing.services import PROJECT, PostgresServer, site_environment
from testing.workers import Worker, collect_static_files

HOST = "chat.example.org"
PUBLIC_URL = f"https://{HOST}"
PASSWORD = "correct horse battery staple"
ADMIN = "root"

pytestmark = pytest.mark.processes


def manage(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = site_environment(DATABASE_URL="sqlite://:memory:") | variables
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)


def test_django_has_nothing_to_say_against_the_settings_of_production() -> None:
    answer = manage(
        "check", "--deploy", "--fail-level", "WARNING", SECRET_KEY=secrets.token_urlsafe(50), PUBLIC_URL=PUBLIC_URL
    )
    assert answer.returncode == 0, answer.stderr
    assert "no issues" in answer.stdout


def test_it_has_something_to_say_without_https() -> None:
    """Otherwise the test above would see nothing."""
    answer = manage("check", "--deploy", "--fail-level", "WARNING", PUBLIC_URL=f"http://{HOST}")
    assert answer.returncode == 1
    assert "security.W012" in answer.stderr


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_nothing_starts_without_a_secret(command: str) -> None:
    answer = manage(command, SECRET_KEY="", DEBUG="off")
    assert answer.returncode != 0
    assert "SECRET_KEY must be set" in answer.stderr


def test_a_secret_that_nobody_gave_is_made_once_and_is_nobody_elses_to_read(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "secret_key"
    secret = kept_secret(file)
    assert kept_secret(file) == secret
    assert len(secret) >= 50
    assert file.stat().st_mode & 0o077 == 0


@pytest.fixture(scope="module")
def proxy(postgres_server: PostgresServer) -> Iterator[Nginx]:
    """Our proxy before one worker that people know as https://chat.example.org."""
    collect_static_files()
    with postgres_server.new_database() as url:
        variables = {"DATABASE_URL": url, "PUBLIC_URL": PUBLIC_URL, "DRAIN_SECONDS": "1"}
        variables |= {"LOGIN_FAILURES_PER_ADDRESS": "3"}
        root = {"DJANGO_SUPERUSER_PASSWORD": PASSWORD, **variables}
        assert manage("createsuperuser", "--noinput", "--username", ADMIN, "--email", "", **root).returncode == 0
        with Worker(variables) as worker, Nginx([worker.port]) as nginx:
            yield nginx


@pytest.fixture
def visitor(proxy: Nginx) -> Iterator[httpx.Client]:
    """One behind a proxy that ends TLS: it adds what such a one says, and keeps cookies that are for https only."""
    headers = {"Host": HOST, "X-Forwarded-Proto": "https", "Origin": PUBLIC_URL}
    with httpx.Client(base_url=f"http://127.0.0.1:{proxy.port}", headers=headers, trust_env=False) as client:
        yield client


def post(visitor: httpx.Client, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
    page = visitor.get(path)
    cookies = cookies_of(page)
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert found
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    data = {**fields, "csrfmiddlewaretoken": found[1]}
    return visitor.post(path, data=data, headers={"Cookie": cookie, "Referer": f"{PUBLIC_URL}{path}", **headers})


def cookies_of(response: httpx.Response) -> dict[str, str]:
    pairs = [header.split(";")[0].split("=", 1) for header in response.headers.get_list("set-cookie")]
    return {name: value for name, value in pairs if value}


def test_plain_http_is_sent_to_https_but_for_the_health_checks(visitor: httpx.Client) -> None:
    plain = {"X-Forwarded-Proto": "http"}
    answer = visitor.get("/rooms/", headers=plain)
    assert (answer.status_code, answer.headers["Location"]) == (301, f"{PUBLIC_URL}/rooms/")
    assert visitor.get("/healthz", headers=plain).status_code == 200


def test_whoever_comes_by_https_is_kept_to_it(visitor: httpx.Client) -> None:
    page = visitor.get("/accounts/login/")
    assert page.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_cookies_go_over_https_only_and_scripts_do_not_see_the_session(visitor: httpx.Client) -> None:
    answer = post(visitor, "/accounts/login/", {"username": ADMIN, "password": PASSWORD})
    assert answer.headers["Location"] == "/rooms/"
    cookies = {header.split("=")[0]: header.lower() for header in answer.headers.get_list("set-cookie")}
    assert all("secure" in cookie and "samesite=lax" in cookie for cookie in cookies.values())
    assert "httponly" in cookies["sessionid"]


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}])
def test_a_form_of_another_site_is_refused(visitor: httpx.Client, headers: dict[str, str]) -> None:
    answer = post(visitor, "/accounts/login/", {"username": ADMIN, "password": PASSWORD}, **headers)
    assert answer.status_code == 403
    assert "sessionid" not in answer.headers.get("set-cookie", "")


def test_a_host_that_is_not_ours_is_refused(visitor: httpx.Client) -> None:
    assert visitor.get("/accounts/login/", headers={"Host": "evil.example"}).status_code == 400


async def test_a_socket_of_another_site_is_refused(proxy: Nginx) -> None:
    def knock(origin: str) -> websockets.connect:
        # To the proxy's own port, under the name that people type.
        name = f"ws://{HOST}/ws/rooms/x/"
        return websockets.connect(name, origin=Origin(origin), proxy=None, host="127.0.0.1", port=proxy.port)

    async with knock(PUBLIC_URL) as socket:
        await socket.wait_closed()
        assert socket.close_code == 4404  # accepted, and there is no such room
    with pytest.raises(websockets.InvalidStatus) as refused:
        await knock("https://evil.example")
    assert refused.value.response.status_code == 403


def test_the_admin_has_a_policy_of_its_own_and_pages_allow_nothing_inline(visitor: httpx.Client) -> None:
    pages = visitor.get("/accounts/login/").headers["Content-Security-Policy"]
    admin = visitor.get("/admin/login/").headers["Content-Security-Policy"]
    assert "'unsafe-inline'" not in pages
    assert "require-trusted-types-for 'script'" in pages
    assert "style-src 'self' 'unsafe-inline'" in admin
    for policy in (pages, admin):
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy


def test_failed_log_ins_are_counted_by_the_address_that_our_proxy_saw(visitor: httpx.Client) -> None:
    """What a client says of itself before it does not count, or everybody could be somebody else each time."""
    codes = []
    for number in range(4):
        fields = {"username": f"name{number}", "password": "wrong"}
        answer = post(visitor, "/accounts/login/", fields, **{"X-Forwarded-For": f"203.0.113.{number}"})
        codes.append(answer.status_code)
    assert codes == [200, 200, 200, 429]
