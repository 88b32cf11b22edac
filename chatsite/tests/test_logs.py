"""How log records are written, and which id a request has."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError

from chat.models import Message, Room
from chatsite.logs import JsonLines, TextLines
from chatsite.requests import Requests
from inference.ids import REQUEST_ID, about, context_of_ids, context_without_ids
from inference.text import quotes


def record_of(message: str, *args: object, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("chat.x", logging.INFO, "x.py", 1, message, args, info)


def test_nobody_can_write_lines_into_the_log() -> None:
    written = TextLines().format(record_of("path %s", "/x\n2026-01-01 ERROR chat.x\r\x1b[31m\u2028all is lost"))
    assert len(written.splitlines()) == 1
    assert "\x1b" not in written


def test_a_json_line_is_one_object_with_the_ids_and_the_exception() -> None:
    inference_id = uuid4()
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        with about(inference_id):
            written = JsonLines().format(record_of("%s \ud800", "failed", error=error))
    line = json.loads(written)
    assert "\n" not in written
    assert (line["level"], line["logger"], line["message"]) == ("INFO", "chat.x", "failed \ud800")
    assert line["inference_id"] == str(inference_id)
    assert line["exception"].endswith("ValueError: two\nlines")


@pytest.mark.django_db
@pytest.mark.parametrize("form", [TextLines, JsonLines])
def test_what_the_database_says_of_a_row_is_left_out(form: type[logging.Formatter]) -> None:
    """Its errors show rows, prompts included."""
    said = "my\n\nsecret\n\nwords"
    room = Room.objects.create_for(User.objects.create_user("alice"))
    with pytest.raises(IntegrityError) as raised:
        Message.objects.bulk_create([Message(room=room, text=said, **{"role": None})])
    assert "secret" in str(raised.value)
    written = form().format(record_of("failed: %s", raised.value, error=raised.value))
    assert "secret" not in written and "words" not in written
    assert "violates" in written and "IntegrityError" in written


async def tell_id(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": REQUEST_ID.get().encode()})


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        ("0123456789abcdef", True),
        ("Root=1-67891233-abcdef012345678912345678", True),
        ("", False),
        ("x" * 129, False),
        ("a b", False),
        ("<script>", False),
        ("ключ", False),
    ],
)
async def test_an_id_is_taken_from_the_request_if_it_is_sane_and_returned(given: str, is_taken: bool) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(Requests(tell_id)), base_url="http://x") as http:
        response = await http.get("/", headers={b"X-Request-ID": given.encode()})
    assert response.text == response.headers["x-request-id"]
    assert (response.text == given) is is_taken
    assert len(response.text) >= 16


async def test_work_that_outlives_a_request_keeps_its_id_and_nothing_else_of_it() -> None:
    REQUEST_ID.set("the-request")
    kept = await asyncio.create_task(_request_id(), context=context_of_ids())
    assert kept == "the-request"


async def test_what_a_request_begins_for_the_whole_process_has_no_id() -> None:
    REQUEST_ID.set("the-request")
    assert await asyncio.create_task(_request_id(), context=context_without_ids()) == ""
    assert REQUEST_ID.get() == "the-request"


async def _request_id() -> str:
    return REQUEST_ID.get()


def test_a_detail_that_repeats_a_prompt_is_known() -> None:
    prompt = "Please translate this letter to my aunt into Korean"
    assert quotes("bad input: 'slate this letter to my aunt'", [prompt])
    assert quotes("bad input: Hi", ["Hi"])
    assert not quotes("the model 'x' does not exist", [prompt, ""])


def test_a_line_of_standard_error_is_what_python_can_write() -> None:
    """The handler must not fail on what the formatter gives."""
    written = TextLines().format(record_of("half a pair \ud800"))
    assert written.encode(sys.stderr.encoding or "utf-8", "backslashreplace")


def test_a_link_that_opens_an_account_is_cut_short_in_whatever_django_says_of_it() -> None:
    """It names the path of each form that it refuses, and of each fault."""
    written = TextLines().format(record_of("Forbidden (%s): %s", "no token", "/accounts/invited/SECRET/"))
    assert written.endswith("Forbidden (no token): /accounts/invited/...")
    written = TextLines().format(record_of("Internal Server Error: %s", "/accounts/password/reset/MQ/SECRET/"))
    assert "SECRET" not in written
