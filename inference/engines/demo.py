"""The built-in engine: a demo model that needs no network and shows what the site can do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence

from inference.engine import Chunk, Completion, Engine, EngineError, ErrorCode, Part, Turn, Usage
from inference.engines.demo_replies import DemoReply, Wish, reply_to, rest_of

MODEL = "demo"
CHUNK_SECONDS = 0.125  # with NORMAL_CHUNKS, the reference pace: a reply takes 10 s
FAST_CHUNK_SECONDS = 0.005
SLOW_START_SECONDS = 5.0
NORMAL_CHUNKS = 80
LONG_CHUNKS = 600
CHUNKS_BEFORE_ERROR = 20

PIECE = re.compile(r"\s*\S+|\s+")


class DemoEngine(Engine):
    """Answers from prepared texts, in the language of the prompt.

    Words in the prompt choose what it shows, in any case and number; a prompt without any gets the list:

    - markdown, heading, table, code, list, quote; 마크다운, 표로, 도표, 코드, 목록, 인용: all of Markdown
    - korean, emoji; 한국어, 한글, 이모지: Korean and emoji
    - long; 길게, 긴 글: LONG_CHUNKS chunks
    - slow; 천천히, 느리게: SLOW_START_SECONDS before the first chunk
    - fast, quick; 빨리, 빠르게: FAST_CHUNK_SECONDS between chunks
    - think, reasoning; 생각, 추론: a reasoning part before the content
    - error, fail; 오류, 에러, 실패: EngineError after some text
    - length, truncate; 길이, 잘라: half of the text, finish_reason `length`

    A reply that is continued goes on exactly after the text given, up to its end.
    """

    name = "demo"

    def __init__(self, *, chunk_seconds: float = CHUNK_SECONDS, slow_start_seconds: float = SLOW_START_SECONDS) -> None:
        self._chunk_seconds = chunk_seconds
        self._slow_start_seconds = slow_start_seconds

    async def stream(self, completion: Completion) -> AsyncGenerator[Chunk, None]:
        reply = reply_to(completion.turns)
        last = completion.turns[-1]
        if last.role == "assistant":
            chunks = list(_continuation(reply, last.content))
        else:
            chunks = list(_whole(reply))
            await asyncio.sleep(self._slow_start_seconds if Wish.SLOW in reply.wishes else 0)
        is_failing = Wish.ERROR in reply.wishes and last.role != "assistant"
        async for chunk in self._paced(chunks[:CHUNKS_BEFORE_ERROR] if is_failing else chunks, reply):
            yield chunk
        if is_failing:
            raise EngineError(ErrorCode.MODEL_UNAVAILABLE, "the demo model was asked to fail")
        is_cut = Wish.LENGTH in reply.wishes and last.role != "assistant"
        yield Chunk(finish_reason="length" if is_cut else "stop", usage=_usage(completion.turns, len(chunks)))

    async def models(self) -> Sequence[str]:
        return (MODEL,)

    async def aclose(self) -> None:
        """Nothing to give back."""

    async def _paced(self, chunks: Sequence[Chunk], reply: DemoReply) -> AsyncGenerator[Chunk, None]:
        is_fast = Wish.FAST in reply.wishes
        pause_seconds = min(FAST_CHUNK_SECONDS, self._chunk_seconds) if is_fast else self._chunk_seconds
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        for number, chunk in enumerate(chunks, start=1):
            await asyncio.sleep(started_at + number * pause_seconds - loop.time())
            yield chunk


def _whole(reply: DemoReply) -> Iterator[Chunk]:
    for piece in PIECE.findall(reply.reasoning):
        yield Chunk(piece, Part.REASONING)
    chunk_count = LONG_CHUNKS if Wish.LONG in reply.wishes else NORMAL_CHUNKS
    pieces = pieces_of(reply.content, chunk_count)
    shown = len(pieces) // 2 if Wish.LENGTH in reply.wishes else len(pieces)
    for piece in pieces[:shown]:
        yield Chunk(piece)


def _continuation(reply: DemoReply, kept: str) -> Iterator[Chunk]:
    chunk_count = LONG_CHUNKS if Wish.LONG in reply.wishes else NORMAL_CHUNKS
    for piece in pieces_of(rest_of(reply, kept), chunk_count):
        yield Chunk(piece)


def pieces_of(text: str, max_count: int) -> list[str]:
    """`text` cut before white space into at most `max_count` pieces of about as many words each."""
    words = PIECE.findall(text)
    count = min(max_count, len(words))
    edges = [round(number * len(words) / count) for number in range(count + 1)] if count else []
    return ["".join(words[start:end]) for start, end in zip(edges, edges[1:], strict=False)]


def _usage(turns: Sequence[Turn], chunk_count: int) -> Usage:
    """Words for tokens, and chunks for tokens: as good a count as a model without tokens can give."""
    return Usage(sum(len(turn.content.split()) for turn in turns), chunk_count)
