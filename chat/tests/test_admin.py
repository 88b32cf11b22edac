"""The review in the admin: what a list, a detail page and an export show, and to whom."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.db import connection, connections
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from chat import endings, prompts
from chat.database import rows
from chat.models import Inference, Message, Room
from chat.tests.many_rows import make_replies
from chat.tests.people import ask_of
from inference.engine import Part
from inference.journal import Progress, Result, Status
from inference.stop import StopSignal

REPLY = "Hello <script>alert(1)</script> ![far](https://elsewhere.example/x.png) **world** and more"
LISTS = ("/admin/chat/message/", "/admin/chat/inference/")
TEXT_COLUMNS = re.compile(r'"text"|"parts"|"system_prompt"')
SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>")


def make_reply(user: User, room: Room, *, text: str = REPLY, prompt: str = "Hi") -> Inference:
    """A prompt that is being answered: all of the text has come, and nothing has ended."""
    taken = prompts.send(ask_of(user, room, client_id=uuid4()), prompt, None, has_parent=False)
    assert taken.inference is not None
    return taken.inference


def end(row: Inference, status: Status, *, text: str = REPLY, stop: StopSignal | None = None) -> Inference:
    progress = Progress(row.pk, [(Part.CONTENT, text)], len(text), chunk_count=9, first_chunk_seconds=0.5)
    endings.finish(Result(progress, status, finish_reason="stop", stop=stop))
    return Inference.objects.get(pk=row.pk)


def make_stopped(user: User, room: Room, position: int, *, prompt: str = "Hi", source: str = "page") -> Inference:
    row = make_reply(user, room, prompt=prompt)
    return end(row, Status.STOPPED, stop=StopSignal(row.pk, room.topic, position, user.pk, source))


def staff_with(*codenames: str) -> Client:
    person = User.objects.create_user(f"staff {uuid4()}", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(person)
    return client


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, (path, response.status_code)
    return response.content.decode()


def detail(row: Inference) -> str:
    return f"/admin/chat/inference/{row.pk}/change/"


@pytest.mark.parametrize("path", LISTS)
def test_a_list_tells_who_stopped_what_from_where(admin_client: Client, alice: User, room: Room, path: str) -> None:
    make_stopped(alice, room, 5)
    shown = page(admin_client, f"{path}?status__exact=stopped")
    for told in ("A room", "alice", "default", "stopped", "page", "<td", f">{len(REPLY)}<", ">5<"):
        assert told in shown.lower() or told in shown, told


def test_a_source_a_model_and_a_status_can_be_filtered_for(admin_client: Client, alice: User, room: Room) -> None:
    stopped, completed = make_stopped(alice, room, 5), end(make_reply(alice, room), Status.COMPLETED)
    for query in ("status__exact=stopped", "stop_source__exact=page", f"q={stopped.message_id}"):
        shown = page(admin_client, f"/admin/chat/inference/?{query}")
        assert (detail(stopped) in shown, detail(completed) in shown) == (True, False), query
    assert detail(completed) in page(admin_client, "/admin/chat/inference/?model=default&q=A+room")


@pytest.mark.parametrize(
    "query",
    ["q=%00", "q=a%00b", "status__exact=%00", "model=%00", "stop_source__exact=%00", "p=%00", "o=%00", "all=%00"],
)
def test_a_nul_leads_to_a_result_page(admin_client: Client, alice: User, room: Room, query: str) -> None:
    make_stopped(alice, room, 5)
    for path in (*LISTS, "/admin/chat/room/", "/admin/chat/apitoken/", "/admin/auth/user/"):
        if path in LISTS or query.startswith("q="):
            assert admin_client.get(f"{path}?{query}", follow=True).status_code == 200, path


def test_a_selected_id_that_is_none_is_no_error(admin_client: Client, alice: User, room: Room) -> None:
    make_stopped(alice, room, 5)
    chosen = {"action": "export_as_csv", "_selected_action": "\0", "index": "0"}
    assert admin_client.post(LISTS[1], chosen, follow=True).status_code == 200


def test_lists_of_a_hundred_thousand_messages_take_five_queries_and_load_no_text(admin_client: Client) -> None:
    """Session, person, count, the models of the filter, and the page itself."""
    make_replies(50_000)
    assert Message.objects.count() == 100_000
    assert "100000 messages" in page(admin_client, LISTS[0])
    for path in LISTS:
        for query in ("", "?p=900", "?status__exact=stopped", "?q=person7", "?q=Room+77"):
            with CaptureQueriesContext(connection) as queries:
                page(admin_client, path + query)
            assert len(queries) == 5, (path, query)
            assert [each["sql"] for each in queries if TEXT_COLUMNS.search(each["sql"])] == []


def test_the_detail_page_shows_the_conversation_to_the_cut_and_nothing_in_it_runs(
    admin_client: Client, alice: User, room: Room
) -> None:
    prompt = "<img src=x onerror=alert(2)> & a prompt"
    row = make_stopped(alice, room, REPLY.index(" and more"), prompt=prompt)
    for path in (detail(row), f"/admin/chat/message/{row.message_id}/change/"):
        shown = page(admin_client, path)
        conversation = shown[shown.index('class="said"') : shown.index("</fieldset>", shown.index('class="said"'))]
        assert "&lt;img src=x onerror=alert(2)&gt; &amp; a prompt" in conversation
        assert "<strong>world</strong>" in conversation
        assert "and more" not in conversation
        assert not re.search(r"<(img|script|iframe|style)\b", conversation)
        assert f"Cut here, at {row.position} characters." in conversation
        assert f"The model had sent {len(REPLY)}" in conversation


def test_a_title_and_a_name_are_inert_in_the_admin(admin_client: Client, room: Room) -> None:
    mallory = User.objects.create_user("<script>alert(3)</script>")
    hers = Room.objects.create_for(mallory, title="<script>alert(4)</script>")
    row = make_stopped(mallory, hers, 3)
    paths = [
        *LISTS,
        detail(row),
        "/admin/chat/inference/dashboard/",
        "/admin/chat/room/",
        f"/admin/chat/room/{hers.pk}/change/",
    ]
    for path in paths:
        assert SCRIPT.findall(page(admin_client, path)) == [], path


def test_evidence_can_be_neither_added_changed_nor_deleted(admin_client: Client, alice: User, room: Room) -> None:
    row = make_stopped(alice, room, 5)
    before = Inference.objects.values().get(pk=row.pk)
    admin_client.post(detail(row), {"status": "completed", "position": "1"})
    assert admin_client.get("/admin/chat/inference/add/").status_code == 403
    assert admin_client.post(f"/admin/chat/inference/{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Inference.objects.values().get(pk=row.pk) == before


def test_viewing_exporting_and_stopping_are_permissions_of_their_own(alice: User, room: Room) -> None:
    live = make_reply(alice, room)
    nobody, viewer = staff_with(), staff_with("view_inference")
    assert nobody.get(LISTS[1]).status_code == 403
    assert nobody.get("/admin/chat/inference/dashboard/").status_code == 403
    shown = page(viewer, LISTS[1]) + page(viewer, detail(live))
    assert "export_as" not in shown
    assert "stop_selected" not in shown
    assert "Stop this reply" not in shown
    assert "export_as_csv" in page(staff_with("view_inference", "export_inference"), LISTS[1])
    stopper = staff_with("view_inference", "stop_inference")
    assert "stop_selected" in page(stopper, LISTS[1])
    assert "Stop this reply" in page(stopper, detail(live))
    stop = f"/admin/chat/inference/{live.pk}/stop/"
    assert viewer.post(stop).status_code == 403
    assert stopper.get(stop).status_code == 405
    assert Client().post(stop).status_code == 302
    assert Inference.objects.get(pk=live.pk).stop_requested_at is None


@pytest.mark.parametrize("allowed", ["view", "export", "stop"])
def test_an_action_that_is_posted_by_hand_needs_its_permission_too(alice: User, room: Room, allowed: str) -> None:
    """Three admins: one may view, one view and export, one view and stop."""
    done, live = make_stopped(alice, room, 5), make_reply(alice, Room.objects.create_for(alice))
    client = staff_with("view_inference", f"{allowed}_inference")
    chosen = {"_selected_action": [str(done.pk)], "index": "0"}
    for action in ("export_as_csv", "export_as_json_lines"):
        answer = client.post(LISTS[1], {**chosen, "action": action})
        assert ("Content-Disposition" in answer.headers) is (allowed == "export"), action
    told = client.post(LISTS[1], {**chosen, "action": "stop_selected"}, follow=True).content.decode()
    assert ("None of these is live." in told) is (allowed == "stop")
    assert client.post(f"/admin/chat/inference/{live.pk}/delete/", {"post": "yes"}).status_code == 403


def test_only_staff_with_the_permission_oversees_rooms_that_are_not_theirs(room: Room) -> None:
    permission = Permission.objects.get(codename="stop_inference")
    people = {
        "staff who may": User.objects.create_user("a", is_staff=True),
        "staff who may not": User.objects.create_user("b", is_staff=True),
        "not staff": User.objects.create_user("c"),
        "closed": User.objects.create_user("d", is_staff=True, is_active=False),
    }
    for name in ("staff who may", "not staff", "closed"):
        people[name].user_permissions.add(permission)
    oversees = {name: Room.objects.overseen_by(person).exists() for name, person in people.items()}
    assert oversees == {name: name == "staff who may" for name in people}


def test_a_reply_that_a_shutdown_interrupts_says_so(admin_client: Client, alice: User, room: Room) -> None:
    row = end(make_reply(alice, room), Status.INTERRUPTED)
    assert (row.status, row.stop_source, row.stop_requested_at) == ("interrupted", "shutdown", None)
    assert detail(row) in page(admin_client, "/admin/chat/inference/?stop_source__exact=shutdown")


def test_whoever_may_delete_a_room_may_delete_it_with_its_replies(alice: User, room: Room) -> None:
    make_stopped(alice, room, 5)
    deleter = staff_with("view_room", "delete_room", "delete_membership")
    assert deleter.post(f"/admin/chat/room/{room.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Room.objects.filter(pk=room.pk).exists()


async def export(user: User, path: str, action: str, ids: Sequence[UUID] = (), query: str = "") -> str:
    client = AsyncClient()
    await client.aforce_login(user)
    chosen: dict[str, Any] = {"action": action, "index": "0", "_selected_action": [str(each) for each in ids]}
    if not ids:
        chosen |= {"select_across": "1", "_selected_action": [str(uuid4())]}
    response: Any = await client.post(path + query, chosen)
    assert response.status_code == 200
    assert response.streaming
    chunks = [chunk async for chunk in response.streaming_content]
    return b"".join(chunks).decode()


@pytest_asyncio.fixture
async def root(transactional_db: None) -> AsyncIterator[User]:
    yield await _in_thread(User.objects.create_superuser, "root")
    # The thread in which Django runs the views of an asynchronous test client keeps its connection.
    await sync_to_async(connections.close_all)()


async def test_a_selection_is_exported_as_csv_that_no_spreadsheet_computes(root: User) -> None:
    row = await _in_thread(_stopped_in_room, "=1+1")
    other = await _in_thread(_stopped_in_room, "Another")
    text = await export(root, LISTS[1], "export_as_csv", [row.pk])
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["inference_id"] for line in lines] == [str(row.pk)]
    assert (lines[0]["room"], lines[0]["source"], lines[0]["kept"]) == ("'=1+1", "page", "5")
    assert datetime.fromisoformat(lines[0]["stopped_at"]) == row.stop_requested_at
    assert str(other.pk) in await export(root, LISTS[1], "export_as_csv")


async def test_everything_that_was_filtered_for_is_exported_by_pages_in_order_of_time(root: User) -> None:
    await _in_thread(make_replies, 25_000)
    text = await export(root, LISTS[0], "export_as_json_lines", query="?status__exact=stopped")
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(lines) == 1250
    assert len({line["message_id"] for line in lines}) == 1250
    assert {line["source"] for line in lines} == {"page"}
    assert [line["created_at"] for line in lines] == sorted(line["created_at"] for line in lines)


def _stopped_in_room(title: str) -> Inference:
    user = User.objects.get_or_create(username="alice")[0]
    return make_stopped(user, Room.objects.create_for(user, title=title), 5)


async def _in_thread(function: Any, *args: Any) -> Any:
    return await rows.run_within(60, function, *args)
