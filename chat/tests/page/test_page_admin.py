"""The lists of the review as an admin's browser lays them out."""

from __future__ import annotations

import psycopg
import pytest
from playwright.sync_api import Browser

from testing.client import Account
from testing.workers import Site

LONG = "a-name-that-somebody-has-made-as-long-as-it-may-be-"


@pytest.fixture(scope="module")
def root(site: Site) -> Account:
    """An admin, with a stopped reply whose names are all long."""
    account = site.account("root")
    account.create_room(LONG * 3)
    with psycopg.connect(site.variables["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("UPDATE auth_user SET is_staff = true, is_superuser = true WHERE username = 'root'")
        connection.execute(STOPPED_REPLY, {"room": LONG * 3, "model": LONG * 2})
    return account


STOPPED_REPLY = """
WITH room AS (SELECT id FROM chat_room WHERE title = %(room)s LIMIT 1),
    said AS (
        INSERT INTO chat_message (id, room_id, role, text, status, created_at)
        SELECT gen_random_uuid(), id, 'assistant', 'x', 'stopped', now() FROM room RETURNING id, room_id
    )
INSERT INTO chat_inference (id, room_id, message_id, model, status, finish_reason, parts, position, kept, worker,
    started_at, first_chunk_at, heartbeat_at, finished_at, stop_requested_at, stopped_by_id, stop_source,
    generated_position, chunk_count, error_code)
    SELECT gen_random_uuid(), room_id, said.id, %(model)s, 'stopped', '', '[["content", "x"]]', 123456, 0,
        gen_random_uuid(), now(), now(), now(), now(), now() + interval '1000 seconds', auth_user.id, 'shutdown',
        123456, 9, 'model_refused_request'
    FROM said, auth_user WHERE username = 'root'
"""


@pytest.mark.parametrize("kind", ["message", "inference"])
def test_a_list_fits_beside_its_filters_on_a_usual_screen(
    browser: Browser, site: Site, root: Account, kind: str
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_cookies([{"name": name, "value": value, "url": site.url} for name, value in root.cookies.items()])
    try:
        page = context.new_page()
        page.goto(f"{site.url}/admin/chat/{kind}/?status__exact=stopped")
        assert LONG in page.locator("#result_list tbody").inner_text()
        assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.results'))") == 0
    finally:
        context.close()
