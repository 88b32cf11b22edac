"""The journal of the scripted model server: what was asked, and how far each answer got."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from testing.model_server.connection import Request

MAX_RECORDS = 20_000

State = Literal["waiting_headers", "streaming", "complete", "cut_by_server", "closed_by_client"]
LIVE_STATES: frozenset[State] = frozenset({"waiting_headers", "streaming"})


@dataclass(slots=True)
class Record:
    """One request. Times are `time.monotonic()` seconds, which all processes of a machine share."""

    id: int
    model: str
    headers: dict[str, str]
    body: dict[str, object]
    client_port: int  # tells connections apart
    started_at: float
    state: State = "waiting_headers"
    first_byte_at: float | None = None
    ended_at: float | None = None
    chunks_sent: int = 0
    bytes_sent: int = 0

    @property
    def is_live(self) -> bool:
        return self.state in LIVE_STATES


class Journal:
    """Records in order of arrival; whoever waits for one is woken at every change of state."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=MAX_RECORDS)
        self._last_id = 0
        self._changed = asyncio.Event()

    def begin(self, model: str, request: Request, body: dict[str, object]) -> Record:
        self._last_id += 1
        record = Record(self._last_id, model, request.headers, body, request.client_port, time.monotonic())
        self._records.append(record)
        self._announce()
        return record

    def sent(self, record: Record, byte_count: int) -> None:
        """`byte_count` bytes of the body have been handed to the kernel."""
        record.chunks_sent += 1
        record.bytes_sent += byte_count

    def headers_sent(self, record: Record) -> None:
        record.first_byte_at = time.monotonic()
        record.state = "streaming"
        self._announce()

    def end(self, record: Record, state: State) -> None:
        """The first end counts: a client that leaves after a whole answer changes nothing."""
        if not record.is_live:
            return
        record.state = state
        record.ended_at = time.monotonic()
        self._announce()

    def records(self, model: str | None) -> list[Record]:
        return [record for record in self._records if model in (None, record.model)]

    def clear(self) -> None:
        self._records.clear()

    async def wait_for(self, matches: Callable[[Record], bool], timeout_seconds: float) -> Record:
        """The newest record that matches, as soon as there is one. Raises TimeoutError."""
        async with asyncio.timeout(timeout_seconds):
            while True:
                for record in reversed(self._records):
                    if matches(record):
                        return record
                await self._changed.wait()

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
