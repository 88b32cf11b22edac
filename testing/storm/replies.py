"""The replies that the scripted model gives in a storm, and what is known of each beforehand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testing.model_server import Script, Step
from testing.model_server.script import ENDING, OPENING, numbered_text

TEXT = "{n}:{word} "
IDLE_TIMEOUT_SECONDS = 6
"""What the storm's site gives a model that falls silent."""


@dataclass(frozen=True)
class Reply:
    """One scripted reply: how it is told, all its text in chunks, and how it ends when nobody interferes.

    `status` is empty for a reply that ends only by a stop.
    """

    kind: str
    scripts: Sequence[Script]
    chunks: tuple[str, ...] = ()
    pace_seconds: float = 0.0
    lead_seconds: float = 0.0
    """From the first byte of the head to the beginning of the first chunk."""
    status: str = "completed"
    error_code: str = ""

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    def text_of(self, chunk_count: int) -> str:
        """The text of the first so many chunks."""
        return "".join(self.chunks[: max(0, chunk_count)])


def steady(count: int = 40, pace_seconds: float = 0.06, *, kind: str = "steady") -> Reply:
    """So many chunks at an even pace."""
    body: Step = {"text": TEXT, "repeat": count, "pace_seconds": pace_seconds}
    return Reply(kind, [{"steps": [OPENING, body, *ENDING]}], _texts(count), pace_seconds)


def long() -> Reply:
    return steady(120, 0.05, kind="long")


def fast() -> Reply:
    return steady(60, 0.0, kind="fast")


def reasoning() -> Reply:
    """Half of it is reasoning."""
    body: list[Step] = [
        {"reasoning": TEXT, "repeat": 20, "pace_seconds": 0.06},
        {"text": TEXT, "repeat": 20, "pace_seconds": 0.06},
    ]
    return Reply("reasoning", [{"steps": [OPENING, *body, *ENDING]}], _texts(20) * 2, 0.06)


def slow_start() -> Reply:
    body: Step = {"text": TEXT, "repeat": 20, "pace_seconds": 0.05}
    return Reply("slow start", [{"steps": [{"sleep_seconds": 2}, OPENING, body, *ENDING]}], _texts(20), 0.05, 2.0)


def retried() -> Reply:
    """Refused for the moment, then given."""
    return Reply(
        "retried", [{"status": 503, "json": {"error": {"message": "busy"}}}, *steady().scripts], _texts(40), 0.06
    )


def broken() -> Reply:
    """The server fails each time."""
    script: Script = {"status": 500, "json": {"error": {"message": "broken", "type": "server_error"}}}
    return Reply("broken", [script], status="failed", error_code="model_unavailable")


def cut_off() -> Reply:
    """The connection ends in the middle."""
    body: Step = {"text": TEXT, "repeat": 20, "pace_seconds": 0.05}
    script: Script = {"steps": [OPENING, body, {"fin": True}]}
    return Reply("cut off", [script], _texts(20), 0.05, status="failed", error_code="cut_off")


def stalled() -> Reply:
    """Ten chunks, then silence."""
    body: Step = {"text": TEXT, "repeat": 10, "pace_seconds": 0.05}
    script: Script = {"steps": [OPENING, body, {"stall": True}]}
    return Reply("stalled", [script], _texts(10), 0.05, status="failed", error_code="timeout")


def silent() -> Reply:
    """Not even headers."""
    return Reply("silent", [{"delay_seconds": 86_400}], status="")


TALKING: Sequence[Callable[[], Reply]] = (steady, long, reasoning, retried, slow_start)
"""Those that give text for some seconds."""
STOPPABLE: Sequence[Callable[[], Reply]] = (*TALKING, stalled, silent)
FAILING: Sequence[Callable[[], Reply]] = (broken, cut_off, stalled)
ENDING_BY_ITSELF: Sequence[Callable[[], Reply]] = (*TALKING, fast)


def one_of(kinds: Sequence[Callable[[], Reply]], dice: random.Random) -> Reply:
    """A reply of one of these kinds."""
    return dice.choice(kinds)()


def _texts(count: int) -> tuple[str, ...]:
    return tuple(numbered_text(TEXT, number) for number in range(count))
