"""The HTTP API on three workers behind a round-robin proxy: each request may reach another worker."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from chat.tests.program import Frame, Program, make_token
from testing.model_server import ModelServer, Step
from testing.services import PROJECT
from testing.workers import Site

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    return make_token(site.account("alice"))


@pytest_asyncio.fixture
async def alice(site: Site, token: str) -> AsyncIterator[Program]:
    async with Program(site.url, token) as program:
        yield program


@pytest.fixture
def room_id(site: Site) -> Iterator[str]:
    yield site.account("alice").create_room("Letters")


async def read_until(frames: AsyncIterator[Frame], position: int) -> tuple[str, int, list[Frame]]:
    """The text, position and frames up to the first delta that reaches `position`."""
    text, told = "", []
    async for frame in frames:
        told.append(frame)
        if frame["type"] == "delta":
            text += frame["text"]
            if frame["position"] >= position:
                return text, frame["position"], told
    raise AssertionError(f"the events ended before {position}: {told[-3:]}")


async def rest_of(frames: AsyncIterator[Frame]) -> list[Frame]:
    return [frame async for frame in frames]


def texts(frames: list[Frame]) -> str:
    return "".join(frame["text"] for frame in frames if frame["type"] == "delta")


async def test_a_prompt_can_be_answered_by_its_whole_reply(alice: Program, room_id: str) -> None:
    answer = await alice.post(f"/rooms/{room_id}/ask", text="Good morning to you", model="echo")
    assert (answer["prompt"]["text"], answer["prompt"]["author"]) == ("Good morning to you", "alice")
    assert (answer["reply"]["text"], answer["reply"]["status"]) == ("Good morning to you", "completed")
    assert answer["reply"]["inference_id"] == answer["inference"]["inference_id"]
    state = await alice.get(f"/inference/{answer['inference']['inference_id']}")
    assert (state["content"], state["position"], state["finish_reason"]) == ("Good morning to you", 19, "stop")


async def test_events_are_the_frames_of_the_socket_and_stop_cuts_where_they_were_read(
    alice: Program, room_id: str
) -> None:
    body = {"text": "Tell me", "stream": True}
    async with alice.events("POST", f"/rooms/{room_id}/ask", json=body) as frames:
        seen, position, told = await read_until(frames, 40)
        assert [frame["type"] for frame in told[:3]] == ["message", "start", "delta"]
        inference_id = told[1]["inference_id"]
        result = await alice.stop(inference_id, position)
        assert result == {"inference_id": inference_id, "outcome": "stopped", "position": position}
        end = (await rest_of(frames))[-1]
    assert (end["type"], end["status"], end["position"]) == ("end", "stopped", position)
    state = await alice.get(f"/inference/{inference_id}")
    assert (state["content"], state["stop"]["source"], state["stop"]["by"]) == (seen, "api", "alice")
    messages = (await alice.get(f"/rooms/{room_id}/messages"))["messages"]
    assert [message["text"] for message in messages] == ["Tell me", seen]


async def test_a_reply_can_be_followed_from_where_the_connection_broke(alice: Program, room_id: str) -> None:
    body = {"text": "Tell me", "stream": True}
    async with alice.events("POST", f"/rooms/{room_id}/ask", json=body) as frames:
        seen, position, told = await read_until(frames, 60)
    inference_id = told[1]["inference_id"]
    async with alice.events("GET", f"/inference/{inference_id}/events", params={"position": position}) as frames:
        more, further, _ = await read_until(frames, position + 60)
    headers = {"Last-Event-ID": str(further)}
    async with alice.events("GET", f"/inference/{inference_id}/events", headers=headers) as frames:
        last = await rest_of(frames)
    assert last[-1]["status"] == "completed"
    assert seen + more + texts(last) == (await alice.get(f"/inference/{inference_id}"))["content"]


async def test_following_beyond_the_end_gives_the_end_alone(alice: Program, room_id: str) -> None:
    answer = await alice.post(f"/rooms/{room_id}/ask", text="Hi", model="echo")
    path = f"/inference/{answer['inference']['inference_id']}/events"
    async with alice.events("GET", path, params={"position": 999}) as frames:
        assert [(frame["type"], frame["position"]) for frame in await rest_of(frames)] == [("end", 2)]


async def test_a_prompt_sent_twice_with_one_client_id_is_asked_once(alice: Program, room_id: str) -> None:
    body = {"text": "Once", "model": "echo", "client_id": str(uuid4())}
    first = await alice.post(f"/rooms/{room_id}/ask", **body)
    again = await alice.post(f"/rooms/{room_id}/ask", **body)
    assert again == first
    assert len((await alice.get(f"/rooms/{room_id}/messages"))["messages"]) == 2


async def test_a_stopped_reply_can_be_continued_and_made_again(alice: Program, room_id: str) -> None:
    async with alice.events("POST", f"/rooms/{room_id}/ask", json={"text": "Tell me", "stream": True}) as frames:
        seen, position, told = await read_until(frames, 30)
        await alice.stop(told[1]["inference_id"], position)
    message_id = told[1]["message_id"]
    again = {"message_id": message_id, "stream": True}
    async with alice.events("POST", f"/rooms/{room_id}/continue", json=again) as frames:
        more, further, told = await read_until(frames, position + 10)
        await alice.stop(told[0]["inference_id"], further)
    assert more.startswith(seen)
    async with alice.events("POST", f"/rooms/{room_id}/regenerate", json=again) as frames:
        _, further, told = await read_until(frames, 10)
        await alice.stop(told[0]["inference_id"], further)


async def test_a_second_prompt_while_a_reply_is_written_is_refused_as_busy(alice: Program, room_id: str) -> None:
    async with alice.events("POST", f"/rooms/{room_id}/ask", json={"text": "Tell me", "stream": True}) as frames:
        _, position, told = await read_until(frames, 10)
        refusal = await alice.http.post(f"/rooms/{room_id}/ask", json={"text": "And this"})
        assert (refusal.status_code, refusal.json()["error"]["code"]) == (409, "busy")
        await alice.stop(told[1]["inference_id"], position)


async def test_rooms_are_made_renamed_listed_by_page_and_deleted(alice: Program, site: Site) -> None:
    made = [(await alice.post("/rooms", title=f"Room {number}"))["id"] for number in range(3)]
    async with site.account("alice").open_room(made[0]) as socket:
        await socket.wait_for("hello")
        renamed = (await alice.http.patch(f"/rooms/{made[0]}", json={"title": "Renamed\0"})).json()
        assert (renamed["title"], renamed["role"]) == ("Renamed\N{REPLACEMENT CHARACTER}", "owner")
        assert (await socket.wait_for("room"))["title"] == renamed["title"]
    listed: list[str] = []
    page: dict[str, Any] = {"next": None}
    while len(listed) == 0 or page["next"]:
        page = await alice.get("/rooms", limit=2, **({"after": page["next"]} if page["next"] else {}))
        listed += [room["id"] for room in page["rooms"]]
    assert listed[:3] == made[::-1]
    assert len(listed) == len(set(listed))
    assert (await alice.http.delete(f"/rooms/{made[0]}")).status_code == 204
    assert (await alice.http.get(f"/rooms/{made[0]}")).status_code == 404


async def test_messages_come_by_page_the_oldest_first(alice: Program, room_id: str) -> None:
    for number in range(3):
        await alice.post(f"/rooms/{room_id}/ask", text=f"Prompt {number}", model="echo")
    first = await alice.get(f"/rooms/{room_id}/messages", limit=4)
    second = await alice.get(f"/rooms/{room_id}/messages", limit=4, after=first["next"])
    read = [message["text"] for message in first["messages"] + second["messages"]]
    assert read == [text for number in range(3) for text in [f"Prompt {number}"] * 2]
    assert second["next"] is None


async def test_a_reply_that_is_still_written_is_in_the_list_of_messages(alice: Program, room_id: str) -> None:
    async with alice.events("POST", f"/rooms/{room_id}/ask", json={"text": "Tell me", "stream": True}) as frames:
        seen, position, told = await read_until(frames, 40)
        async with asyncio.timeout(5):
            while not (reply := (await alice.get(f"/rooms/{room_id}/messages"))["messages"][1])["text"]:
                await anext(frames)
        assert (reply["status"], reply["inference_id"]) == ("streaming", told[1]["inference_id"])
        assert reply["text"][:8] == seen[:8]
        await alice.stop(told[1]["inference_id"], position)


def test_the_client_in_the_readme_stops_at_the_first_full_stop(
    site: Site, token: str, tmp_path: Path, model_server: ModelServer
) -> None:
    more: Step = {"text": " and more", "repeat": 100, "pace_seconds": 0.1}
    model_server.script("sentences", {"steps": [{"text": "One sentence."}, {"sleep_seconds": 0.5}, more]})
    code = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), flags=re.DOTALL)
    (tmp_path / "client.py").write_text(code[0].replace('"text": prompt,', '"text": prompt, "model": "sentences",'))
    arguments = [sys.executable, "client.py", site.url, token, "Tell me"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.startswith("One sentence.{")
    assert "'outcome': 'stopped', 'position': 13" in done.stdout


async def test_whoever_follows_on_a_worker_that_ends_misses_nothing_on_another(site: Site, token: str) -> None:
    room_id = await asyncio.to_thread(site.account("alice").create_room)
    leaving, staying = site.workers[2], site.workers[1]
    async with (
        Program(staying.url, token) as other,
        Program(leaving.url, token) as program,
    ):
        async with other.events("POST", f"/rooms/{room_id}/ask", json={"text": "Tell me", "stream": True}) as frames:
            _, _, told = await read_until(frames, 10)
        path = f"/inference/{told[1]['inference_id']}/events"
        async with program.events("GET", path) as frames:
            seen, position, _ = await read_until(frames, 20)
            leaving.terminate()
            read = await text_until_cut(frames)
        await asyncio.to_thread(leaving.stop)
        async with other.events("GET", path, params={"position": position + len(read)}) as frames:
            more = await rest_of(frames)
        state = await other.get(f"/inference/{told[1]['inference_id']}")
        assert more[-1]["type"] == "end"
        assert (seen + read + texts(more), state["status"]) == (state["content"], "completed")
    await asyncio.to_thread(leaving.start)


async def text_until_cut(frames: AsyncIterator[Frame]) -> str:
    """What still came before the worker ended its events, or went away with them."""
    text = ""
    try:
        async for frame in frames:
            assert frame["type"] == "delta" or frame["code"] == "restarting"
            text += frame.get("text", "")
    except httpx.RemoteProtocolError:
        pass
    return text
