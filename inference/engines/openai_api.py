"""The engine for every server that speaks the OpenAI chat completions API. The runner streams from it.

The `openai` client does addresses, keys and errors; the bytes are read here, at a third of the cost of its objects.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from typing import cast

import httpx2
import openai
from openai import AsyncAPIResponse, AsyncOpenAI, AsyncStream, DefaultAioHttpClient
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from inference.engine import Chunk, Completion, Engine, EngineError, ErrorCode, Turn
from inference.engines.deadline import MovingDeadline
from inference.engines.openai_errors import (
    REQUEST_ERRORS,
    error_of_exception,
    is_about_stream_options,
    is_worth_retrying,
    retry_after_seconds,
)
from inference.engines.openai_models import ModelList
from inference.engines.openai_stream import OpenAIStream

RETRY_PAUSE_SECONDS = 0.5  # before the first retry; doubles
RETRY_AFTER_MAX_SECONDS = 30.0  # a server that asks for more is taken at its word: no retry
KEEPALIVE_SECONDS = 5.0  # shorter than servers keep idle connections
NO_KEY = "none"  # servers without keys want none, but the client wants some

Response = AsyncAPIResponse[AsyncStream[ChatCompletionChunk]]


class OpenAIEngine(Engine):
    """Streams from the server at `base_url`. Make it at start-up: the client takes its time to build.

    `first_chunk_timeout_seconds` covers everything until the first chunk: connecting, retries and their pauses,
    the head; `idle_timeout_seconds` each wait for a further one.
    """

    name = "openai"

    def __init__(  # noqa: PLR0913 (each is a setting)
        self,
        *,
        base_url: str,
        api_key: str = "",
        models: Sequence[str] = (),
        connect_timeout_seconds: float = 5,
        first_chunk_timeout_seconds: float = 120,
        idle_timeout_seconds: float = 60,
        max_retries: int = 2,
        max_connections: int = 2000,
        models_cache_seconds: float = 300,
    ) -> None:
        self._first_chunk_timeout_seconds = first_chunk_timeout_seconds
        self._idle_timeout_seconds = idle_timeout_seconds
        self._max_retries = max_retries
        self._asks_for_usage = True
        self._deadlines: set[MovingDeadline] = set()
        self._client = AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or NO_KEY,
            max_retries=0,  # ours know the deadline, and which answers are worth it
            http_client=_http_client(connect_timeout_seconds, max_connections),
        )
        self._models = ModelList(self._client, models, cache_seconds=models_cache_seconds)

    async def stream(self, completion: Completion) -> AsyncGenerator[Chunk, None]:
        with self._deadline() as deadline:
            async with self._open(completion, deadline) as response:
                stream = OpenAIStream(response, deadline, idle_timeout_seconds=self._idle_timeout_seconds)
                async with aclosing(stream.chunks()) as chunks:
                    async for chunk in chunks:
                        yield chunk

    async def models(self) -> Sequence[str]:
        return await self._models.names()

    async def aclose(self) -> None:
        # The transport does not wake those who read from it when it closes.
        for deadline in self._deadlines:
            deadline.end()
        await self._client.close()

    @contextmanager
    def _deadline(self) -> Iterator[MovingDeadline]:
        """That of one answer, for its first chunk."""
        deadline = MovingDeadline(asyncio.get_running_loop().time() + self._first_chunk_timeout_seconds)
        self._deadlines.add(deadline)
        try:
            yield deadline
        finally:
            self._deadlines.discard(deadline)
            deadline.close()

    @asynccontextmanager
    async def _open(self, completion: Completion, deadline: MovingDeadline) -> AsyncIterator[Response]:
        """The answer once its head is there; closed at the end, and so is every one that didn't get that far."""
        async with AsyncExitStack() as stack:
            try:
                with deadline:
                    response = await self._request_with_retries(completion, stack)
            except TimeoutError:
                raise EngineError(ErrorCode.TIMEOUT, "no answer from the model server in time") from None
            yield response

    async def _request_with_retries(self, completion: Completion, stack: AsyncExitStack) -> Response:
        retries = 0
        while True:
            asks_for_usage = self._asks_for_usage
            try:
                request = self._create(completion, asks_for_usage=asks_for_usage)
                return await stack.enter_async_context(request)
            except REQUEST_ERRORS as error:
                if asks_for_usage and is_about_stream_options(error):
                    self._asks_for_usage = False  # from now on: this server doesn't know it
                    continue
                pause_seconds = _pause_seconds(error, retries)
                if not is_worth_retrying(error) or retries == self._max_retries or pause_seconds is None:
                    # Without the cause: a traceback of the client shows the server's whole answer, prompt and all.
                    raise error_of_exception(error) from None
            retries += 1
            await asyncio.sleep(pause_seconds)

    def _create(self, completion: Completion, *, asks_for_usage: bool) -> AbstractAsyncContextManager[Response]:
        return self._client.chat.completions.with_streaming_response.create(
            model=completion.model,
            messages=[_message(turn) for turn in completion.turns],
            stream=True,
            stream_options={"include_usage": True} if asks_for_usage else openai.omit,
            extra_headers={"Accept-Encoding": "identity"},  # a compressor would hold chunks back
        )


def _http_client(connect_timeout_seconds: float, max_connections: int) -> httpx2.AsyncClient:
    """The client's own defaults would queue stream 1001 in silence and notice a dead server after 10 minutes."""
    return DefaultAioHttpClient(
        timeout=httpx2.Timeout(None, connect=connect_timeout_seconds, pool=connect_timeout_seconds),
        limits=httpx2.Limits(max_connections=max_connections, keepalive_expiry=KEEPALIVE_SECONDS),
    )


def _message(turn: Turn) -> ChatCompletionMessageParam:
    return cast(ChatCompletionMessageParam, {"role": turn.role, "content": turn.content})


def _pause_seconds(error: Exception, retries: int) -> float | None:
    """How long to wait before the next try; None when the server wants more patience than we have."""
    asked = retry_after_seconds(error.response.headers) if isinstance(error, openai.APIStatusError) else None
    if asked is None:
        return RETRY_PAUSE_SECONDS * 2.0**retries * random.uniform(0.75, 1)  # noqa: S311 (spreads load, hides nothing)
    return asked if asked <= RETRY_AFTER_MAX_SECONDS else None
