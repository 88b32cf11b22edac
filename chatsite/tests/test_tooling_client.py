"""The tests' client notices what the protocol forbids; a scripted WebSocket server plays the site."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import websockets
from websockets.asyncio.server import ServerConnection

from testing.client import RoomClient
from testing.transcript import Frame, ProtocolViolation, Transcript

REPLY = "11111111-1111-4111-8111-111111111111"
Play = Callable[[ServerConnection], Awaitable[None]]


def start() -> Frame:
    return {"type": "start", "inference_id": REPLY, "message_id": "m", "parent_id": "p", "model": "x", "client_id": "c"}


def delta(begin: int, text: str, part: str = "content") -> Frame:
    position = begin + len(text)
    return {"type": "delta", "inference_id": REPLY, "part": part, "from": begin, "position": position, "text": text}


def end(position: int, status: str = "completed") -> Frame:
    rest = {"finish_reason": "stop", "position": position, "error": None}
    return {"type": "end", "inference_id": REPLY, "message_id": "m", "status": status, **rest}


def stop_result(outcome: str, position: int | None) -> Frame:
    return {"type": "stop_result", "inference_id": REPLY, "outcome": outcome, "position": position}


def received(*frames: Frame) -> Transcript:
    transcript = Transcript()
    for frame in frames:
        transcript.receive(frame)
    return transcript


@asynccontextmanager
async def site(play: Play) -> AsyncIterator[RoomClient]:
    """A client of a site that does what `play` says on each socket."""
    async with websockets.serve(play, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with RoomClient(f"http://127.0.0.1:{port}", REPLY, cookies={"sessionid": "s"}) as client:
            yield client


def test_deltas_make_the_text_and_its_parts_counted_in_code_points() -> None:
    transcript = received(start(), delta(0, "hm 🤔", "reasoning"), delta(4, "Yes"), end(7))
    assert transcript.text(REPLY) == "hm 🤔Yes"
    assert transcript.text(REPLY, "content") == "Yes"
    assert transcript.position(REPLY) == 7


def test_an_end_cuts_the_text_back_to_its_position() -> None:
    transcript = received(start(), delta(0, "hmm", "reasoning"), delta(3, "Yes and no"), end(6, "stopped"))
    assert transcript.text(REPLY) == "hmmYes"


def test_a_later_end_replaces_an_earlier_one() -> None:
    transcript = received(start(), delta(0, "Yes and no"), end(10), end(3, "stopped"))
    assert (transcript.text(REPLY), transcript.position(REPLY)) == ("Yes", 3)


def test_a_follower_begins_where_it_says_it_was() -> None:
    transcript = Transcript()
    transcript.note_sent({"type": "follow", "inference_id": REPLY, "position": 4})
    transcript.receive(delta(4, "and no"))
    assert transcript.text(REPLY) == "and no"
    transcript.receive(end(2, "stopped"))
    assert (transcript.text(REPLY), transcript.position(REPLY)) == ("", 2)


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        ([start(), delta(0, "abc"), delta(4, "d")], "does not begin at 3"),
        ([start(), delta(0, "abc"), delta(2, "cd")], "does not begin at 3"),
        ([start(), delta(0, "🤔") | {"position": 2}], "length is not its text's"),
        ([start(), delta(0, "abc"), end(5)], "position not shown"),
        ([start(), delta(0, "abc"), stop_result("stopped", 3), delta(3, "d")], "beyond the stop"),
        ([delta(0, "abc")], "neither started here nor followed"),
        ([start(), delta(0, "abc", "thoughts")], "unknown part"),
        ([start(), end(0, "streaming")], "no final status"),
        ([stop_result("perhaps", 0)], "unknown outcome"),
        ([{"type": "greeting"}], "unknown type"),
        ([{"type": "ping"}], "missing"),
    ],
)
def test_a_frame_that_the_protocol_forbids_is_a_violation(frames: list[Frame], what: str) -> None:
    with pytest.raises(ProtocolViolation, match=what):
        received(*frames)


def test_text_may_go_on_after_a_stop_that_is_only_recorded() -> None:
    transcript = received(start(), delta(0, "abc"), stop_result("recorded", 3), delta(3, "d"), end(3, "stopped"))
    assert transcript.text(REPLY) == "abc"


async def test_a_frame_is_handed_out_once_and_in_any_order() -> None:
    async def play(socket: ServerConnection) -> None:
        for frame in (start(), delta(0, "a"), stop_result("stopped", 1), end(1, "stopped")):
            await socket.send(json.dumps(frame))
        await socket.wait_closed()

    async with site(play) as client:
        await client.wait_for("end", status="stopped")
        await client.wait_for("stop_result")
        with pytest.raises(TimeoutError, match="no .*'end'"):
            await client.wait_for("end", timeout_seconds=0.1)
        assert client.text(REPLY) == "a"


async def test_a_ping_is_answered_with_its_number_unless_told_not_to() -> None:
    async def play(socket: ServerConnection) -> None:
        async for text in socket:
            sent = json.loads(text)
            await socket.send(json.dumps({"type": "error", "code": sent["type"], "detail": sent["n"]}))
            if sent["type"] == "ping":
                await socket.send(json.dumps({"type": "ping", "n": sent["n"] + 1}))

    async with site(play) as client:
        await client.send("ping", n=1)
        await client.wait_for("error", code="pong", detail=2)
        client.answers_pings = False
        await client.send("ping", n=3)
        await client.wait_for("ping", n=4)
        await client.send("ping", n=5)
        await client.wait_for("ping", n=6)
        assert [frame["detail"] for frame in client.transcript.of_type("error")] == [1, 2, 3, 5]


async def test_a_violation_reaches_whoever_waits() -> None:
    async def play(socket: ServerConnection) -> None:
        await socket.send(json.dumps(delta(0, "a")))
        await socket.wait_closed()

    async with site(play) as client:
        with pytest.raises(ProtocolViolation):
            await client.wait_for("end")


async def test_a_closed_socket_ends_the_wait_and_gives_its_code() -> None:
    async def play(socket: ServerConnection) -> None:
        await socket.close(4404)

    async with site(play) as client:
        with pytest.raises(ConnectionError, match="4404"):
            await client.wait_for("hello")
        assert await client.wait_closed() == 4404


async def test_the_session_and_the_origin_go_with_the_handshake() -> None:
    async def play(socket: ServerConnection) -> None:
        assert socket.request is not None
        headers = socket.request.headers
        await socket.send(json.dumps({"type": "error", "code": headers["Cookie"], "detail": headers["Origin"]}))
        await socket.wait_closed()

    async with site(play) as client:
        frame = await client.wait_for("error", code="sessionid=s")
        assert frame["detail"] == client.origin
