"""The demo model: what it shows, at which pace, and that it goes on exactly where it was stopped."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine import Chunk, Completion, EngineError, ErrorCode, Part, Turn
from inference.engines.demo import CHUNK_SECONDS, DemoEngine, pieces_of

PROMPTS = [
    "Hello there",
    "markdown please",
    "in Korean",
    "한국어로 길게",
    "long and fast",
    "think slowly",
    "the length",
    "생각하고 표로",
    "",
]


def engine() -> DemoEngine:
    return DemoEngine(chunk_seconds=0, slow_start_seconds=0)


async def chunks_to(*turns: Turn) -> list[Chunk]:
    return [chunk async for chunk in engine().stream(Completion("demo", turns))]


def user(text: str) -> Turn:
    return Turn("user", text)


def text_of(chunks: list[Chunk], part: Part = Part.CONTENT) -> str:
    return "".join(chunk.text for chunk in chunks if chunk.part is part)


async def test_it_offers_one_model() -> None:
    assert list(await engine().models()) == ["demo"]


async def test_it_says_what_it_is_and_how_to_connect_a_real_model() -> None:
    text = text_of(await chunks_to(user("Hello there")))
    assert "demo model" in text and "OPENAI_BASE_URL" in text and "Hello there" in text
    for word in ("markdown", "korean", "emoji", "long", "slow", "fast", "thinking", "error", "length"):
        assert f"**{word}**" in text


@pytest.mark.parametrize("prompt", ["Hello", "안녕하세요"])
async def test_a_normal_reply_has_the_reference_length(prompt: str) -> None:
    chunks = await chunks_to(user(prompt))
    assert len([chunk for chunk in chunks if chunk.text]) == 80
    assert CHUNK_SECONDS * 80 == 10


async def test_chunks_keep_the_pace_they_were_given() -> None:
    started_at = time.monotonic()
    async for _ in DemoEngine(chunk_seconds=0.005).stream(Completion("demo", [user("Hello")])):
        pass
    assert 0.4 <= time.monotonic() - started_at < 1.5


@pytest.mark.parametrize("prompt", ["MARKDOWN", "마크다운으로"])
async def test_markdown_shows_every_kind_of_block(prompt: str) -> None:
    text = text_of(await chunks_to(user(prompt)))
    for mark in ("## ", "| --- |", "```python\n", "1. ", "   - ", "> ", "**", "`"):
        assert mark in text


@pytest.mark.parametrize("prompt", ["in Korean", "with emoji", "한국어"])
async def test_korean_and_emoji(prompt: str) -> None:
    text = text_of(await chunks_to(user(prompt)))
    assert "한국어" in text and "👨‍👩‍👧‍👦" in text


@pytest.mark.parametrize("prompt", ["a long one", "길게 써 줘"])
async def test_a_long_reply_has_600_chunks(prompt: str) -> None:
    assert len([chunk for chunk in await chunks_to(user(prompt)) if chunk.text]) == 600


@pytest.mark.parametrize("prompt", ["start slowly", "천천히"])
async def test_a_slow_start_comes_before_the_first_chunk(prompt: str) -> None:
    stream = DemoEngine(chunk_seconds=0, slow_start_seconds=0.2).stream(Completion("demo", [user(prompt)]))
    started_at = time.monotonic()
    await anext(stream)
    assert time.monotonic() - started_at >= 0.2
    await stream.aclose()


@pytest.mark.parametrize("prompt", ["fast", "빠르게"])
async def test_a_fast_reply_hardly_pauses(prompt: str) -> None:
    started_at = time.monotonic()
    async for _ in DemoEngine().stream(Completion("demo", [user(prompt)])):
        pass
    assert time.monotonic() - started_at < 5


@pytest.mark.parametrize("prompt", ["think first", "생각해 봐"])
async def test_thinking_comes_before_the_content(prompt: str) -> None:
    parts = [chunk.part for chunk in await chunks_to(user(prompt)) if chunk.text]
    assert parts == sorted(parts, key=[Part.REASONING, Part.CONTENT].index)
    assert parts[0] is Part.REASONING


@pytest.mark.parametrize("prompt", ["an ERROR please", "오류를 보여 줘"])
async def test_an_error_comes_after_some_text(prompt: str) -> None:
    texts: list[str] = []
    with pytest.raises(EngineError) as caught:
        async for chunk in engine().stream(Completion("demo", [user(prompt)])):
            texts.append(chunk.text)
    assert caught.value.code is ErrorCode.MODEL_UNAVAILABLE
    assert len(texts) == 20


async def test_a_reply_cut_for_length_says_so_and_can_be_continued() -> None:
    first = await chunks_to(user("length"))
    assert first[-1].finish_reason == "length"
    rest = await chunks_to(user("length"), Turn("assistant", text_of(first)))
    assert rest[-1].finish_reason == "stop"
    assert text_of(rest).endswith("🌊")


@pytest.mark.parametrize("prompt", ["along", "failing", "breakfast", "codex", "발표 목표"])
async def test_words_inside_other_words_ask_for_nothing(prompt: str) -> None:
    text = text_of(await chunks_to(user(prompt)))
    assert "**markdown**" in text or "**마크다운**" in text


@pytest.mark.parametrize("prompt", PROMPTS)
async def test_the_same_turns_get_the_same_reply(prompt: str) -> None:
    assert await chunks_to(user(prompt)) == await chunks_to(user(prompt))


@pytest.mark.parametrize("prompt", PROMPTS)
async def test_continuing_goes_on_exactly_where_the_text_was_cut(prompt: str) -> None:
    """I1 for Continue: kept text and rest are the whole reply, wherever the cut was."""
    whole = text_of(await chunks_to(user(prompt.replace("length", "hello"))))
    for cut in (1, 17, len(whole) // 2, len(whole) - 1):
        rest = await chunks_to(user(prompt.replace("length", "hello")), Turn("assistant", whole[:cut]))
        assert whole[:cut] + text_of(rest) == whole


async def test_continuing_a_whole_or_foreign_text_adds_a_closing_sentence() -> None:
    whole = text_of(await chunks_to(user("Hello")))
    for kept in (whole, "written by somebody else"):
        rest = await chunks_to(user("Hello"), Turn("assistant", kept))
        assert "nothing more" in text_of(rest)
        assert rest[-1].finish_reason == "stop"


async def test_cancelling_ends_it_at_once() -> None:
    async def consume() -> None:
        async for _ in DemoEngine().stream(Completion("demo", [user("slow")])):
            pass

    task = asyncio.create_task(consume())
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(0.5):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_the_prompt_cannot_bring_in_markup() -> None:
    text = text_of(await chunks_to(user("**bold** <b>x</b> `y` ![z](http://example.org/z.png)\n# title")))
    assert "<b>" not in text and "![" not in text and "# title" not in text


@given(st.text(), st.integers(1, 90))
def test_pieces_never_lose_a_character(text: str, max_count: int) -> None:
    pieces = pieces_of(text, max_count)
    assert "".join(pieces) == text
    assert len(pieces) <= max_count
    assert all(pieces)
