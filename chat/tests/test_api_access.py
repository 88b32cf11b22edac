"""Who may use the HTTP API, and how everything that is refused is answered."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from chat.tests.program import Program, make_token
from testing.client import Account
from testing.workers import Site

pytestmark = pytest.mark.processes

NOWHERE = "00000000-0000-4000-8000-000000000000"


def code_of(response: httpx.Response) -> tuple[int, str]:
    error = response.json()["error"]
    assert set(error) == {"code", "detail"}
    return response.status_code, error["code"]


def test_whoever_is_not_signed_in_is_refused_by_every_operation(site: Site) -> None:
    with httpx.Client(base_url=site.url, trust_env=False) as nobody:
        schema = nobody.get("/api/v1/openapi.json").json()
        assert len(schema["paths"]) >= 9
        for path, operations in schema["paths"].items():
            address = path.replace("{room_id}", NOWHERE).replace("{inference_id}", NOWHERE)
            for method in operations:
                assert code_of(nobody.request(method, address)) == (401, "not_signed_in"), (method, path)


def test_a_session_needs_the_csrf_token_to_change_something_and_a_token_does_not(site: Site) -> None:
    alice = site.account("alice")
    assert code_of(alice.http.post("/api/v1/rooms", json={})) == (403, "csrf")
    assert code_of(alice.http.post("/api/v1/inference/stop", json={"inference_id": NOWHERE})) == (403, "csrf")
    with_csrf = {"X-CSRFToken": alice.http.cookies["csrftoken"]}
    assert alice.http.post("/api/v1/rooms", json={}, headers=with_csrf).status_code == 201
    bearer = {"Authorization": f"Bearer {make_token(alice)}"}
    assert httpx.post(f"{site.url}/api/v1/rooms", json={}, headers=bearer, trust_env=False).status_code == 201


def test_a_wrong_token_is_refused_even_beside_a_session(site: Site) -> None:
    answer = site.account("alice").http.get("/api/v1/rooms", headers={"Authorization": "Bearer chatsite_wrong"})
    assert code_of(answer) == (401, "not_signed_in")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"{}",
        b'{"inference_id": "x"}',
        b'{"inference_id": "%s", "position": -1}' % NOWHERE.encode(),
        b'{"inference_id": "%s", "position": 1.5}' % NOWHERE.encode(),
        b'{"inference_id": "%s", "position": "1"}' % NOWHERE.encode(),
        b'{"inference_id": "%s", "position": true}' % NOWHERE.encode(),
        b'{"inference_id": "%s", "text": "mine"}' % NOWHERE.encode(),
        b"[" * 100_000,
    ],
)
def test_a_stop_that_is_not_one_is_a_bad_frame(site: Site, body: bytes) -> None:
    alice = site.account("alice")
    headers = {"X-CSRFToken": alice.http.cookies["csrftoken"], "Content-Type": "application/json"}
    answer = alice.http.post("/api/v1/inference/stop", content=body, headers=headers)
    assert code_of(answer) == (400, "bad_frame")


def test_unknown_addresses_and_methods_are_answered_in_the_same_shape(site: Site) -> None:
    alice = site.account("alice").http
    assert code_of(alice.get("/api/v1/nothing")) == (404, "not_found")
    assert code_of(alice.get("/api/v1/rooms/no-uuid")) == (404, "not_found")
    assert code_of(alice.get("/api/v1/inference/stop")) == (405, "not_allowed")
    refused = alice.put("/api/v1/rooms")
    assert code_of(refused) == (405, "not_allowed")
    assert "GET" in refused.headers["Allow"]


def test_too_large_a_body_is_refused(site: Site) -> None:
    alice = site.account("alice")
    headers = {"X-CSRFToken": alice.http.cookies["csrftoken"]}
    answer = alice.http.post("/api/v1/rooms", json={"title": "x" * 3_000_000}, headers=headers)
    assert code_of(answer) == (413, "too_long")


async def test_what_is_somebody_elses_is_answered_like_what_does_not_exist(site: Site) -> None:
    alice, charlie = site.account("alice"), site.account("charlie")
    room_id = await asyncio.to_thread(alice.create_room)
    async with (
        Program(site.url, make_token(alice)) as hers,
        Program(site.url, make_token(charlie)) as his,
    ):
        answer = await hers.post(f"/rooms/{room_id}/ask", text="Hi", model="echo")
        message_id, inference_id = answer["reply"]["id"], answer["inference"]["inference_id"]
        for method, path, body in requests_for("{room}", "{inference}", message_id):
            real = await his.http.request(method, path.format(room=room_id, inference=inference_id), **body)
            none = await his.http.request(method, path.format(room=uuid4(), inference=uuid4()), **body)
            assert (real.status_code, real.json()) == (none.status_code, none.json()), path
            assert real.status_code == 404
        stop = await his.http.post("/inference/stop", json={"inference_id": inference_id})
        assert (stop.status_code, stop.json()["outcome"], stop.json()["position"]) == (404, "not_found", None)
        page = await hers.http.get("/rooms", params={"after": room_id})
        assert page.is_success
        assert (await his.http.get("/rooms", params={"after": room_id})).status_code == 404


def requests_for(room: str, inference: str, message_id: str) -> list[tuple[str, str, dict[str, Any]]]:
    again = {"json": {"message_id": message_id}}
    return [
        ("GET", f"/rooms/{room}", {}),
        ("PATCH", f"/rooms/{room}", {"json": {"title": "Mine"}}),
        ("DELETE", f"/rooms/{room}", {}),
        ("GET", f"/rooms/{room}/messages", {}),
        ("POST", f"/rooms/{room}/ask", {"json": {"text": "Hi"}}),
        ("POST", f"/rooms/{room}/regenerate", again),
        ("POST", f"/rooms/{room}/continue", again),
        ("GET", f"/inference/{inference}", {}),
        ("GET", f"/inference/{inference}/events", {}),
    ]


async def test_a_revoked_token_is_refused_and_its_open_events_end(site: Site) -> None:
    bob = site.account("bob")
    room_id = await asyncio.to_thread(bob.create_room)
    async with Program(site.url, make_token(bob, "to be revoked")) as program:
        body = {"text": "Hi", "model": "silent", "stream": True}
        async with program.events("POST", f"/rooms/{room_id}/ask", json=body) as frames:
            start = [await anext(frames), await anext(frames)][1]
            await asyncio.to_thread(revoke_all, bob)
            async with asyncio.timeout(10):
                last = [frame async for frame in frames][-1]
        assert (last["type"], last["code"]) == ("error", "not_signed_in")
        assert code_of(await program.http.get("/rooms")) == (401, "not_signed_in")
    assert (await bob.astop(start["inference_id"])).json()["outcome"] == "stopped"


def revoke_all(account: Account) -> None:
    page = account.get("/accounts/tokens/").text
    assert "to be revoked" in page
    assert "Last used" in page
    for part in page.split('action="/accounts/tokens/')[1:]:
        if part[0].isdigit():
            account.post_form(f"/accounts/tokens/{part.split('/')[0]}/revoke/", {})


def test_nobody_revokes_a_token_of_somebody_else_and_no_page_shows_a_secret_again(site: Site) -> None:
    alice, charlie = site.account("alice"), site.account("charlie")
    secret = make_token(alice, "for the lamp")
    page = alice.get("/accounts/tokens/").text
    assert "for the lamp" in page
    assert secret not in page
    number = page.split("/accounts/tokens/")[2].split("/")[0]
    fields = {"csrfmiddlewaretoken": charlie.http.cookies["csrftoken"]}
    assert charlie.http.post(f"/accounts/tokens/{number}/revoke/", data=fields).status_code == 404
    bearer = {"Authorization": f"Bearer {secret}"}
    assert httpx.get(f"{site.url}/api/v1/rooms", headers=bearer, trust_env=False).is_success


def test_the_documentation_page_loads_nothing_from_elsewhere(site: Site) -> None:
    page = site.account("alice").get("/api/v1/docs")
    assert page.is_success
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert "//" not in page.text.replace("http://www.w3.org", "")
