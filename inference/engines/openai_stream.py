"""Reads the body of one answer as chunks, and decides how it ended. Called by `openai_api`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Protocol

from inference.engine import Chunk, EngineError, ErrorCode
from inference.engines.deadline import MovingDeadline
from inference.engines.openai_errors import REQUEST_ERRORS
from inference.engines.openai_payload import chunks_of, parse_payload
from inference.engines.sse import MAX_EVENT_BYTES, EventSplitter

DONE = b"[DONE]"
AFTER_FINISH_SECONDS = 5.0  # how long usage and [DONE] may take once the finish_reason is there
EVENTS = re.compile(rb"(\xef\xbb\xbf)?(data|event|id|retry)?:")  # how a stream begins, and JSON never does
DRAIN_SECONDS = 0.1  # how long the end of the body may take after [DONE], so that the connection can be used again


class Response(Protocol):
    """What is needed of the HTTP layer's response."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_raw(self) -> AsyncGenerator[bytes, None]: ...

    def aiter_bytes(self) -> AsyncGenerator[bytes, None]: ...


class Body(Protocol):
    """What is needed of the client's response."""

    @property
    def http_response(self) -> Response: ...


class OpenAIStream:
    """One answer; its first chunk must come before `deadline`, which this moves on.

    Only events count against the clock: a server that sends nothing but keep-alive comments is as good as silent.
    """

    def __init__(self, body: Body, deadline: MovingDeadline, *, idle_timeout_seconds: float) -> None:
        self._response = body.http_response
        self._deadline = deadline
        self._idle_timeout_seconds = idle_timeout_seconds
        self._splitter = EventSplitter()
        # Some servers answer with one JSON body although a stream was asked for.
        self._is_plain = "application/json" in self._response.headers.get("content-type", "")
        self._has_chunk = False
        self._finish_reason: str | None = None
        self._is_done = False  # the server has said that this is all
        self._has_ended = False  # the body has ended, or is not worth waiting for

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield until the reply ends; raises EngineError when it does not end as it should."""
        async with aclosing(self._bytes()) as reader:
            while not (self._is_done or self._has_ended):
                read = self._read_whole if self._is_plain else self._read_events
                for payload in await read(reader):
                    for chunk in self._take(payload):
                        yield chunk
                    self._move_deadline()
            self._check_end()
            if self._finish_reason is None:
                yield Chunk(finish_reason="stop")
            await self._drain(reader)

    def _bytes(self) -> AsyncGenerator[bytes, None]:
        """The body; without the layer that takes compression off where there is none, as we have asked."""
        is_compressed = self._response.headers.get("content-encoding", "identity") != "identity"
        return self._response.aiter_bytes() if is_compressed else self._response.aiter_raw()

    async def _read_events(self, reader: AsyncIterator[bytes]) -> list[bytes]:
        try:
            data = await self._read(reader)
        except EngineError:
            if self._finish_reason is None:
                raise
            data = b""
            self._has_ended = True
        if data is None:
            self._has_ended = True
            return self._splitter.flush()
        return self._splitter.feed(data)

    async def _read_whole(self, reader: AsyncIterator[bytes]) -> list[bytes]:
        """The body, or the first events of one that turns out to be a stream."""
        body = bytearray()
        while (data := await self._read(reader)) is not None:
            body += data if body else data.lstrip()
            if EVENTS.match(body):
                # Some servers call a stream JSON.
                self._is_plain = False
                return self._splitter.feed(bytes(body))
            if len(body) > MAX_EVENT_BYTES:
                raise EngineError(ErrorCode.CUT_OFF, f"the body exceeds {MAX_EVENT_BYTES} bytes")
        self._has_ended = True
        return [bytes(body)]

    async def _read(self, reader: AsyncIterator[bytes]) -> bytes | None:
        """What the network has; None at the end of the body."""
        try:
            with self._deadline:
                return await anext(reader)
        except StopAsyncIteration:
            return None
        except TimeoutError as error:
            raise EngineError(ErrorCode.TIMEOUT, "the model server has stopped sending") from error
        except REQUEST_ERRORS as error:
            raise EngineError(ErrorCode.CUT_OFF, f"the answer broke off: {error!r}") from error

    def _take(self, payload: bytes) -> Iterator[Chunk]:
        if payload == DONE:
            self._is_done = True
        if self._is_done:
            return
        for chunk in chunks_of(parse_payload(payload)):
            self._has_chunk = True
            self._finish_reason = chunk.finish_reason or self._finish_reason
            yield chunk

    def _move_deadline(self) -> None:
        if self._has_chunk:
            self._deadline.move(self._idle_timeout_seconds if self._finish_reason is None else AFTER_FINISH_SECONDS)

    def _check_end(self) -> None:
        has_whole_body = self._is_plain and self._has_chunk
        if not (self._is_done or self._finish_reason or has_whole_body):
            raise EngineError(ErrorCode.CUT_OFF, "the answer ended without finish_reason and [DONE]")

    async def _drain(self, reader: AsyncIterator[bytes]) -> None:
        with suppress(*REQUEST_ERRORS):
            async with asyncio.timeout(DRAIN_SECONDS):
                async for _ in reader:
                    pass
