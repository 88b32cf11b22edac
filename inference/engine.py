"""What an engine is: something that yields the chunks of one reply.

The runner (`inference.runner`) calls it; `inference.engines` holds the implementations.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol


class Part(StrEnum):
    """Which part of a reply a text belongs to."""

    REASONING = "reasoning"
    CONTENT = "content"


class ErrorCode(StrEnum):
    """Why an engine failed; the closed list of DESIGN section 6."""

    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_AUTH = "model_auth"
    MODEL_RATE_LIMITED = "model_rate_limited"
    CONTEXT_TOO_LONG = "context_too_long"
    MODEL_REFUSED_REQUEST = "model_refused_request"
    TIMEOUT = "timeout"
    CUT_OFF = "cut_off"
    INTERNAL = "internal"


class EngineError(Exception):
    """The model did not give a whole reply. `code` is for programs, `str()` is for the server's log only."""

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier message as the model sees it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What is asked of an engine: `turns` end with a user turn, or with the assistant turn that is to be continued."""

    model: str
    turns: Sequence[Turn]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model server counted them."""

    prompt_tokens: int
    completion_tokens: int


class Chunk(NamedTuple):
    """One item from an engine. Any field may be empty: a chunk may bring only the finish reason, or only the usage."""

    text: str = ""
    part: Part = Part.CONTENT
    finish_reason: str | None = None
    usage: Usage | None = None


class Engine(Protocol):
    """Yields the chunks of replies. One engine serves all the replies of a process."""

    name: str

    def stream(self, completion: Completion) -> AsyncGenerator[Chunk, None]:
        """Yield chunks until the reply ends.

        Closing the generator, or cancelling the task that awaits it, closes the connection to the model server.
        A generator that ends by itself has yielded a `finish_reason`. Raises EngineError, and nothing else.
        """
        ...

    async def models(self) -> Sequence[str]:
        """The names a person may choose from, the default first. Raises EngineError."""
        ...

    async def aclose(self) -> None:
        """Give back connections. May be called twice."""
        ...
