"""What happens to inferences, told to whoever listens: metrics, logs, and traces one day.

Of each inference that a worker owns it tells one `Started`, at most one `FirstChunk` and `Stopped`, and one `Ended`;
nothing per chunk. The worker and its runners tell, `chat.runtime` says who listens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from inference.journal import Ending

logger = logging.getLogger(__name__)


class HeardBy(StrEnum):
    """How an owner learned of a stop."""

    HERE = "here"
    """The press came to the owner itself."""
    EVENT = "event"
    """From another worker, over the channel layer."""
    ROW = "row"
    """Found recorded at a heartbeat: the event was lost, or slower than that."""


@dataclass(frozen=True, slots=True)
class Started:
    """The owner begins to ask the engine."""

    inference_id: UUID
    model: str


@dataclass(frozen=True, slots=True)
class FirstChunk:
    """The first text has come, so long after the prompt."""

    inference_id: UUID
    seconds: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """The owner has heard of a stop; whether it counts the rows will say."""

    inference_id: UUID
    source: str
    by: HeardBy
    seconds: float | None
    """Since it was recorded, by the database's clock; None when it could not be, or that clock is not known yet."""


@dataclass(frozen=True, slots=True)
class StopTimes:
    """How fast an owner carried a stop out."""

    close_seconds: float
    """From hearing of it until the connection to the model was closed."""
    save_seconds: float
    """From then, or from hearing of a stop that came after the engine's end, until it was saved."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Saved, and over for its owner."""

    inference_id: UUID
    ending: Ending | None
    """None when its rows are gone."""
    seconds: float
    """Since its start."""
    chunk_count: int
    generated: int
    """Code points that the engine gave."""
    overrun: int
    """How many of them are beyond the position at which a stop has cut."""
    stop: StopTimes | None


@dataclass(frozen=True, slots=True)
class Reaped:
    """This worker has ended the inference of a dead owner."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Pressed:
    """A press of Stop has been answered by this worker, whoever owns the inference."""

    inference_id: UUID
    source: str
    outcome: str
    record_seconds: float | None
    """From the press until it was recorded; None when this press was not what was recorded."""
    seconds: float
    """From the press to the answer."""


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """Partial texts are saved."""

    seconds: float
    lag_seconds: float
    """How old the oldest text was that no row had until then, at most."""


@dataclass(frozen=True, slots=True)
class BeatFailed:
    """What a worker does once a second could not be done: `beat`, `checkpoint` or `reap`."""

    act: str


@dataclass(frozen=True, slots=True)
class Renewed:
    """The subscription was lost and is renewed."""


Moment = Started | FirstChunk | Stopped | Ended | Reaped | Pressed | Checkpointed | BeatFailed | Renewed
Listener = Callable[[Moment], None]


class Life:
    """Tells every listener each moment. Listeners are quick; one that raises hurts nobody."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def tell(self, moment: Moment) -> None:
        for listener in self._listeners:
            try:
                listener(moment)
            except Exception:
                logger.exception("a listener failed at %s", type(moment).__name__)
