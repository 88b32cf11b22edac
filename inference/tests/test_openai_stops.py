"""A stop frees the model server within a second, whatever the engine is waiting for (I2, cases 3, 32 and 33)."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from inference.engine import Chunk, Completion, EngineError, Turn
from inference.engines.openai_api import OpenAIEngine
from testing.model_server import ModelServer, Script, State, Step

SYN_SENT = "02"
FREED_SECONDS = 1.0
STALL: Step = {"stall": True}


@pytest.fixture
async def engine(model_server: ModelServer) -> AsyncIterator[OpenAIEngine]:
    engine = OpenAIEngine(base_url=model_server.url)
    yield engine
    await engine.aclose()


@pytest.fixture
def model() -> str:
    return f"test-{uuid.uuid4()}"


def completion(model: str) -> Completion:
    return Completion(model, [Turn("user", "Hello")])


async def collect(engine: OpenAIEngine, model: str, chunks: list[Chunk]) -> None:
    async for chunk in engine.stream(completion(model)):
        chunks.append(chunk)


async def poll(condition: Callable[[], object], *, timeout_seconds: float = 5) -> None:
    """Until `condition()` holds; nothing announces what is polled here."""
    async with asyncio.timeout(timeout_seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def assert_freed(model_server: ModelServer, model: str) -> None:
    record = await asyncio.to_thread(
        model_server.wait_request, model, states=["closed_by_client"], timeout_seconds=FREED_SECONDS
    )
    assert record.ended_at is not None


PHASES: dict[str, tuple[Script, int]] = {
    "waiting for the head": ({"delay_seconds": 60}, 0),
    "waiting for the first event": ({"steps": [STALL]}, 0),
    "waiting for the first token": ({"steps": [{"event": {"choices": []}}, STALL]}, 0),
    "in reasoning": ({"steps": [{"reasoning": "Hm"}, STALL]}, 1),
    "between chunks": ({"steps": [{"text": "a"}, {"text": "b"}, STALL]}, 2),
    "while chunks pour in": ({"steps": [{"text": "x", "repeat": 1_000_000, "pace_seconds": 0.0001}]}, 50),
    "inside an event": ({"steps": [{"text": "a"}, {"raw": 'data: {"choi'}, STALL]}, 1),
    "after the finish_reason": ({"steps": [{"finish": "stop"}, STALL]}, 1),
    "reading a refusal": ({"status": 500, "steps": [{"raw": '{"error":'}, STALL]}, 0),
    "reading plain JSON": ({"headers": {"Content-Type": "application/json"}, "steps": [{"raw": "{"}, STALL]}, 0),
}


@pytest.mark.parametrize("phase", PHASES)
async def test_cancelling_frees_the_server(
    engine: OpenAIEngine, model_server: ModelServer, model: str, phase: str
) -> None:
    script, chunk_count = PHASES[phase]
    model_server.script(model, script)
    chunks: list[Chunk] = []
    task = asyncio.create_task(collect(engine, model, chunks))
    state: State = "waiting_headers" if "delay_seconds" in script else "streaming"
    await asyncio.to_thread(model_server.wait_request, model, states=[state])
    await poll(lambda: len(chunks) >= chunk_count)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    await assert_freed(model_server, model)
    assert caught  # kept until here, as by one who saves first: the frames in it must not keep the connection


@pytest.mark.parametrize("phase", [phase for phase, (_, chunk_count) in PHASES.items() if chunk_count])
async def test_closing_the_generator_frees_the_server(
    engine: OpenAIEngine, model_server: ModelServer, model: str, phase: str
) -> None:
    script, chunk_count = PHASES[phase]
    model_server.script(model, script)
    stream = engine.stream(completion(model))
    for _ in range(chunk_count):
        await anext(stream)
    await stream.aclose()
    await assert_freed(model_server, model)


async def test_closing_a_generator_that_never_ran_sends_nothing(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    await engine.stream(completion(model)).aclose()
    assert model_server.requests(model) == []


async def test_cancelling_in_a_retry_pause_ends_it_at_once(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"status": 429, "json": {}, "headers": {"Retry-After": "20"}})
    task = asyncio.create_task(collect(engine, model, []))
    await asyncio.to_thread(model_server.wait_request, model, states=["complete"])
    task.cancel()
    async with asyncio.timeout(FREED_SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(model_server.requests(model)) == 1


async def test_closing_the_engine_ends_a_retry_pause_at_once(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"status": 429, "json": {}, "headers": {"Retry-After": "20"}})
    task = asyncio.create_task(collect(engine, model, []))
    await asyncio.to_thread(model_server.wait_request, model, states=["complete"])
    await engine.aclose()
    async with asyncio.timeout(FREED_SECONDS):
        with pytest.raises(EngineError):
            await task


async def test_closing_the_engine_frees_the_server_and_ends_the_reply(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"steps": [{"text": "a"}, STALL]})
    chunks: list[Chunk] = []
    task = asyncio.create_task(collect(engine, model, chunks))
    await poll(lambda: chunks)
    await engine.aclose()
    async with asyncio.timeout(FREED_SECONDS):
        with pytest.raises(EngineError):
            await task
    await assert_freed(model_server, model)


async def test_a_reply_that_goes_on_after_its_engine_was_closed_gets_an_engine_error(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"steps": [{"text": "a"}, STALL]})
    stream = engine.stream(completion(model))
    await anext(stream)
    await engine.aclose()
    async with asyncio.timeout(FREED_SECONDS):
        with pytest.raises(EngineError):
            await anext(stream)
    await assert_freed(model_server, model)


async def test_cancelling_while_connecting_gives_the_socket_back() -> None:
    """A listener whose queue is full answers no SYN, as an overloaded machine does."""
    with socket.socket() as listener, ExitStack() as fillers:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(3):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        await poll(lambda: sockets_connecting_to(port) > 0)
        fillers_waiting = sockets_connecting_to(port)
        engine = OpenAIEngine(base_url=f"http://127.0.0.1:{port}/v1")
        task = asyncio.create_task(collect(engine, "any", []))
        await poll(lambda: sockets_connecting_to(port) > fillers_waiting)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await poll(lambda: sockets_connecting_to(port) == fillers_waiting, timeout_seconds=FREED_SECONDS)
        await engine.aclose()


def sockets_connecting_to(port: int) -> int:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    states = [line.split()[2:4] for line in lines]
    return sum(state == SYN_SENT and remote.endswith(f":{port:04X}") for remote, state in states)


async def test_case_32_after_300_stops_100_parallel_prompts_are_answered(model_server: ModelServer, model: str) -> None:
    engine = OpenAIEngine(base_url=model_server.url, max_connections=100, connect_timeout_seconds=10)
    model_server.script(model, {"steps": [{"text": "a"}, STALL]})
    for _ in range(3):
        await asyncio.gather(*(stop_after_first_chunk(engine, model) for _ in range(100)))
    model_server.script(model, {"steps": [{"text": "a"}, {"finish": "stop"}, {"done": True}]})
    replies: list[list[Chunk]] = [[] for _ in range(100)]
    await asyncio.gather(*(collect(engine, model, chunks) for chunks in replies))
    assert all(len(chunks) == 2 for chunks in replies)
    assert not [request for request in model_server.requests(model) if request.is_live]
    await engine.aclose()


async def stop_after_first_chunk(engine: OpenAIEngine, model: str) -> None:
    stream = engine.stream(completion(model))
    await anext(stream)
    await stream.aclose()


@pytest.mark.parametrize("turn", range(20))
async def test_a_cancel_at_any_step_of_the_loop_frees_the_server(
    engine: OpenAIEngine, model_server: ModelServer, model: str, turn: int
) -> None:
    """Race: the cancel arrives as the connection, the head or a chunk does."""
    model_server.script(model, {"steps": [{"text": "x", "repeat": 1000, "pace_seconds": 0.001}]})
    task = asyncio.create_task(collect(engine, model, []))
    for _ in range(turn * 3):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await poll(
        lambda: not [request for request in model_server.requests(model) if request.is_live],
        timeout_seconds=FREED_SECONDS,
    )
