"""What no decent client sends: a clear error, the socket stays open, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from uuid import uuid4

import pytest

from testing.client import Frame, RoomClient
from testing.process_usage import resident_bytes
from testing.workers import Site

pytestmark = pytest.mark.processes

ID = "0d5f0b9e-6a7e-4c3c-9c9e-1f1f5a3f2b11"
MEBIBYTE = 1024 * 1024


@asynccontextmanager
async def still_open(site: Site) -> AsyncIterator[RoomClient]:
    """A socket beside a live reply, which afterwards answers and streams as before."""
    alice = site.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        inference_id = (await socket.ask("Hello"))["inference_id"]
        position = await socket.wait_for_position(inference_id, 1)
        yield socket
        await socket.send("ping", n=42)
        await socket.wait_for("pong", n=42)
        position = socket.position(inference_id)
        await socket.wait_for_position(inference_id, position + 1)
        result = await socket.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position)


async def refusal_of(socket: RoomClient, text: str, code: str = "bad_frame") -> Frame:
    await socket.send_raw(text)
    frame = await socket.wait_for("error")
    assert (frame["code"], bool(frame["detail"])) == (code, True)
    return frame


async def test_what_is_no_frame_is_refused_and_the_socket_lives(lone_site: Site) -> None:
    texts = [
        *(
            "",
            "not JSON",
            "[]",
            "null",
            "{}",
            "\x00",
            '{"type":"shout"}',
            '{"type":"ping","extra":1}',
            '{"type":"pong"}',
        ),
        *("[" * 100_000, '{"type":"ping","n":' + '{"a":' * 20_000, '{"type":"\\ud800"}', '{"type":"ping","\\ud800":1}'),
        *('{"type":"ping","n":' + "9" * 5000 + "}", '{"type":"' + "x" * (MEBIBYTE - 100) + '"}'),
    ]
    async with still_open(lone_site) as socket:
        for text in texts:
            frame = await refusal_of(socket, text)
            assert len(json.dumps(frame)) < 2000


async def test_bytes_are_refused_and_the_socket_lives(lone_site: Site) -> None:
    async with still_open(lone_site) as socket:
        await socket._connected.send(b'{"type":"ping","n":1}')
        assert (await socket.wait_for("error"))["code"] == "bad_frame"
        await socket._connected.send(b"\xff\xfe\x00")
        assert (await socket.wait_for("error"))["code"] == "bad_frame"


@pytest.mark.parametrize("position", [-1, 1.5, 1.0, 1e300, True, "1", [1], None], ids=repr)
async def test_a_stop_at_a_position_that_is_none_is_refused_and_stops_nothing(
    lone_site: Site, position: object
) -> None:
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        inference_id = (await socket.ask("Hello"))["inference_id"]
        if position is None:  # which is as good as none
            result = await socket.stop(inference_id, None)
            assert result["outcome"] == "stopped"
            return
        await socket.send("stop", inference_id=inference_id, position=position)
        error = await socket.wait_for("error")
        assert (error["code"], error["inference_id"]) == ("bad_frame", inference_id)
        await socket.wait_for_position(inference_id, 20)
        await socket.stop(inference_id)


@pytest.mark.parametrize("position", [2**31, 2**63, 10**4000], ids=["2**31", "2**63", "10**4000"])
async def test_a_stop_far_beyond_the_end_is_clamped_to_it(lone_site: Site, position: int) -> None:
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        inference_id = (await socket.ask("Hello"))["inference_id"]
        await socket.wait_for_position(inference_id, 10)
        result = await socket.stop(inference_id, position)
        await socket.wait_for("end", inference_id=inference_id)
        assert (result["outcome"], result["position"]) == ("stopped", len(socket.text(inference_id)))


async def test_a_bad_inference_id_is_refused(lone_site: Site) -> None:
    async with still_open(lone_site) as socket:
        wrong: list[object] = ["", "x", "\x00", "\ud800", "x" * 10_000, 5, None, [ID], {}]
        for bad in wrong:
            await refusal_of(socket, json.dumps({"type": "stop", "inference_id": bad}))
            await refusal_of(socket, json.dumps({"type": "follow", "inference_id": bad, "position": 0}))


async def test_the_error_of_a_send_names_its_client_id(lone_site: Site) -> None:
    async with still_open(lone_site) as socket:
        wrong: list[dict[str, object]] = [
            {"text": 5},
            {"text": None},
            {"parent_id": "x"},
            {"parent_id": "\x00"},
            {"model": "m" * 201},
            {"room_id": ID},
        ]
        for fields in wrong:
            client_id = str(uuid4())
            await socket.send_raw(json.dumps({"type": "send", "client_id": client_id, "text": "Hi"} | fields))
            assert (await socket.wait_for("error", client_id=client_id))["code"] == "bad_frame"


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000 \u200b".strip("\u200b")], ids=ascii)
async def test_an_empty_or_blank_prompt_is_refused_as_empty(lone_site: Site, text: str) -> None:
    client_id = str(uuid4())
    async with still_open(lone_site) as socket:
        await socket.send("send", client_id=client_id, text=text)
        assert (await socket.wait_for("error", client_id=client_id))["code"] == "empty"


async def test_a_prompt_that_is_too_long_is_refused_and_one_that_just_fits_is_taken(lone_site: Site) -> None:
    client_id = str(uuid4())
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        await socket.wait_for("hello")
        for text in ("강" * 32_001, "x" * (MEBIBYTE - 200)):
            await socket.send_raw(
                json.dumps({"type": "send", "client_id": client_id, "text": text}, ensure_ascii=False)
            )
            error = await socket.wait_for("error", client_id=client_id)
            assert (error["code"], "32,000" in error["detail"]) == ("too_long", True)
        await socket.send("send", client_id=client_id, text="강" * 32_000, model="fast")
        start = await socket.wait_for("start", client_id=client_id)
        await socket.wait_for("end", inference_id=start["inference_id"], status="completed")


async def test_a_frame_above_a_mebibyte_costs_the_socket_and_not_the_reply(lone_site: Site) -> None:
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        inference_id = (await socket.ask("Hello"))["inference_id"]
        position = await socket.wait_for_position(inference_id, 10)
        await socket.send_raw("x" * (MEBIBYTE + 10_000))
        await socket.wait_closed()
    room_id = socket.url.rstrip("/").rsplit("/", 1)[1]
    async with alice.open_room(room_id) as late:
        await late.follow(inference_id, position)
        await late.wait_for_position(inference_id, position + 10)
        await late.stop(inference_id)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("a\udc00", "a\ufffd"),
        ("\ud83c\udf0a", "🌊"),
        ("\x00", "\ufffd"),
    ],
    ids=ascii,
)
async def test_nul_and_lone_surrogates_in_a_prompt_are_replaced(lone_site: Site, sent: str, kept: str) -> None:
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        inference_id = (await socket.ask(sent, model="echo"))["inference_id"]
        await socket.wait_for("end", inference_id=inference_id, status="completed")
        assert (await socket.wait_for("message"))["message"]["text"] == kept
        assert socket.text(inference_id) == kept


async def test_a_nul_in_a_models_name_is_replaced(lone_site: Site) -> None:
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        start = await socket.ask("Hello", model="no\x00such")
        assert start["model"] == "no\ufffdsuch"
        await socket.wait_for("end", inference_id=start["inference_id"])


async def test_a_flood_of_frames_is_refused_in_part_and_the_stop_still_counts(lone_site: Site) -> None:
    alice = lone_site.account("alice")
    async with alice.open_room(alice.create_room()) as socket:
        inference_id = (await socket.ask("Hello"))["inference_id"]
        await socket.wait_for_position(inference_id, 10)
        for number in range(1000):
            await socket.send_raw(json.dumps({"type": "follow", "inference_id": inference_id, "position": number}))
        result = await socket.stop(inference_id, 5)
        assert result["outcome"] == "stopped"
        codes = {frame["code"] for frame in socket.transcript.of_type("error")}
        assert codes <= {"rate_limited"}


async def send_without_end(socket: RoomClient, seconds: float) -> None:
    """Empty objects in frames of a client, as many as the network takes."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        while socket.send_bytes_past_the_protocol(b"") < MEBIBYTE:
            socket.send_bytes_past_the_protocol(b"\x81\x82\x00\x00\x00\x00{}" * 10_000)
        await asyncio.sleep(0)


async def test_a_flood_that_is_not_read_either_costs_no_memory_and_holds_nobody_up(lone_site: Site) -> None:
    """Daphne alone would take it all in: 143 MB in eight seconds, and 0.8 s for the pong of another socket."""
    alice = lone_site.account("alice")
    pid = lone_site.workers[0].process.pid
    async with alice.open_room(alice.create_room()) as other, alice.open_room(alice.create_room()) as flooding:
        await flooding.wait_for("hello")
        before = resident_bytes(pid)
        flooding.pause_reading()
        flood = asyncio.create_task(send_without_end(flooding, 3.0))
        for number in count():
            await other.send("ping", n=number)
            await other.wait_for("pong", n=number, timeout_seconds=3.0)
            if flood.done():
                break
        assert resident_bytes(pid) - before < 20_000_000
        await flooding.abort()


async def test_an_unknown_query_or_path_is_no_error_of_ours(lone_site: Site) -> None:
    alice = lone_site.account("alice")
    room_id = alice.create_room()
    for query in ("?format=", "?format=text", "?%ff=%00", "?" + "x" * 5000):
        async with alice.open_room(room_id, query=query) as socket:
            await socket.wait_for("hello")
