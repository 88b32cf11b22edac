"""What the database is to a worker: the journal of its inferences. `chat.journal` implements it with Django models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from inference.engine import Part, Usage
from inference.stop import StopSignal


class Status(StrEnum):
    """Where an inference stands. `pending` and `streaming` are live, the others final."""

    PENDING = "pending"
    STREAMING = "streaming"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def is_live(self) -> bool:
        return self in LIVE


LIVE = (Status.PENDING, Status.STREAMING)

Run = tuple[Part, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one reply has got: what a checkpoint saves. Nothing in it is ever less than at the checkpoint before."""

    inference_id: UUID
    runs: Sequence[Run]
    position: int
    chunk_count: int
    first_chunk_seconds: float | None
    """From the prompt to the first chunk; None when there was none."""


@dataclass(frozen=True, slots=True)
class Result:
    """How the owner would end an inference. The journal may know better: a recorded stop wins."""

    progress: Progress
    status: Status
    finish_reason: str | None = None
    error_code: str | None = None
    usage: Usage | None = None
    stop: StopSignal | None = None
    floor: int = 0
    """Length of the text a `continue` began with; no stop cuts below it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an inference ended, as the rows say. `topic` is the channel-layer group that is told."""

    inference_id: UUID
    message_id: UUID
    topic: str
    status: Status
    position: int
    finish_reason: str | None = None
    error_code: str | None = None

    def supersedes(self, earlier: Ending | None) -> bool:
        """Whether this can have come after the other: events overtake each other where one waits for Redis."""
        if earlier is None:
            return True
        if earlier.status is Status.INTERRUPTED:
            return self.status is not Status.INTERRUPTED or self.position > earlier.position
        return earlier.status is Status.COMPLETED and self.status is Status.STOPPED


@dataclass(frozen=True, slots=True)
class Record:
    """What the rows say of an inference now; `ending` is None while it is live."""

    inference_id: UUID
    runs: Sequence[Run]
    position: int
    ending: Ending | None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a worker learns while it says that it is alive."""

    stops: Sequence[StopSignal] = field(default_factory=tuple)
    """Stops recorded for its live inferences."""
    lost: Sequence[UUID] = field(default_factory=tuple)
    """Those of its inferences that are no longer live in the rows: ended by somebody else, or deleted."""


class JournalError(Exception):
    """The database did not answer, or not in time. Nothing is known of what it did."""


class Journal(Protocol):
    """Every method raises JournalError when the database is away."""

    async def checkpoint(self, batch: Sequence[Progress]) -> None:
        """Save partial texts of live inferences in one statement; texts of ended ones are left alone."""
        ...

    async def heartbeat(self, worker_id: UUID, inference_ids: Sequence[UUID]) -> Heartbeat:
        """Say that the worker and these inferences are alive."""
        ...

    async def finish(self, result: Result) -> Ending | None:
        """End an inference and return what is true then; None when its rows are gone. May be repeated."""
        ...

    async def read(self, inference_id: UUID) -> Record | None:
        """What the rows say; None when there are none."""
        ...

    async def reap(self) -> Sequence[Ending]:
        """End the live inferences whose owner is dead; return those that this call ended."""
        ...

    def database_time(self) -> float | None:
        """Seconds since 1970 by the database's clock, without asking it; None before the first heartbeat."""
        ...
