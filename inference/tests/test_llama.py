"""Against llama.cpp's own server: the engine streams from it, and a stop makes it stop computing (I2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import pytest

from inference.engine import Completion, EngineError, ErrorCode, Turn
from inference.engines.openai_api import OpenAIEngine
from testing.llama_server import CONTEXT_TOKENS, LlamaServer

pytestmark = pytest.mark.processes

FREED_SECONDS = 1.0
PROMPT_SECONDS = 30.0  # the long prompt takes it some 3 s alone on a core
LONG_PROMPT = "mafa dogo gaba " * (CONTEXT_TOKENS // 20)  # 15 tokens each
WHOLE_REPLY_TOKENS = CONTEXT_TOKENS // 4  # what the long prompt leaves of the context, which a reply would fill


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    with LlamaServer(tmp_path_factory.mktemp("llama")) as server:
        yield server


@pytest.fixture
async def engine(llama: LlamaServer) -> AsyncIterator[OpenAIEngine]:
    engine = OpenAIEngine(base_url=llama.url)
    yield engine
    await engine.aclose()


def completion(engine_model: str, text: str = "Hello") -> Completion:
    return Completion(engine_model, [Turn("user", text)])


async def wait_until(llama: LlamaServer, *, busy: bool, timeout_seconds: float) -> None:
    async with asyncio.timeout(timeout_seconds):
        while await asyncio.to_thread(is_busy, llama) != busy:  # noqa: ASYNC110 (another process has no events)
            await asyncio.sleep(0.02)


def is_busy(llama: LlamaServer) -> bool:
    return llama.requests_processing() > 0 or llama.busy_slots() > 0


async def test_closing_the_generator_stops_the_computing(llama: LlamaServer, engine: OpenAIEngine) -> None:
    [model] = await engine.models()
    async with aclosing(engine.stream(completion(model))) as chunks:
        texts = [(await anext(chunks)).text for _ in range(5)]
        await wait_until(llama, busy=True, timeout_seconds=5)
    await wait_until(llama, busy=False, timeout_seconds=FREED_SECONDS)
    assert all(texts)


async def test_cancelling_before_the_first_token_spares_the_tokens(llama: LlamaServer, engine: OpenAIEngine) -> None:
    """llama.cpp looks for its client only after it has read the whole prompt; it must not write an answer then."""
    [model] = await engine.models()
    tokens_before = await asyncio.to_thread(llama.tokens_predicted)
    task = asyncio.create_task(anext(engine.stream(completion(model, LONG_PROMPT))))
    await wait_until(llama, busy=True, timeout_seconds=5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_until(llama, busy=False, timeout_seconds=PROMPT_SECONDS)
    assert await asyncio.to_thread(llama.tokens_predicted) - tokens_before < WHOLE_REPLY_TOKENS / 4


async def test_the_next_reply_comes_after_a_stop(llama: LlamaServer, engine: OpenAIEngine) -> None:
    [model] = await engine.models()
    for _ in range(3):
        async with aclosing(engine.stream(completion(model))) as chunks:
            assert (await anext(chunks)).text


async def test_a_prompt_that_does_not_fit_is_context_too_long(llama: LlamaServer, engine: OpenAIEngine) -> None:
    [model] = await engine.models()
    with pytest.raises(EngineError) as caught:
        await anext(engine.stream(completion(model, LONG_PROMPT * 2)))
    assert caught.value.code is ErrorCode.CONTEXT_TOO_LONG
