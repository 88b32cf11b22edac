"""What the scripted model server is told to do with a request: scripts, their steps, and the built-in ones.

Tests write scripts as plain dictionaries and register them per model name (`ModelServer.script`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import TypedDict

CREATED_AT = 1_760_000_000
STEADY_CHUNKS = 80
STEADY_PACE_SECONDS = 0.125
LONG_CHUNKS = 600
WORDS = ("river", "강물이 ", "stone", "바위를 ", "light", "🌊", "leaf", "숲에서 ", "wind", "👩‍🚀")


class Step(TypedDict, total=False):
    """One step of an answer. Exactly one of the first group, and any of the second."""

    text: str  # delta.content; "{n}" becomes the number of the repetition
    texts: list[str]  # delta.content of one chunk each, as they stand
    reasoning: str  # delta.reasoning_content
    event: object  # any JSON value, sent as one `data:` event
    raw: str  # these very characters, in UTF-8
    base64: str  # these very bytes
    echo: bool  # the last user message, word by word
    finish: str  # a chunk with this finish_reason
    usage: bool  # the usage-only chunk, if the request asked for it
    done: bool  # data: [DONE]
    sleep_seconds: float
    wait_go: bool  # waits for one POST /_go/<model>
    stall: bool  # sends nothing more and keeps the connection open
    fin: bool  # closes the connection without ending the body
    rst: bool  # resets the connection

    repeat: int
    pace_seconds: float  # from one repetition, or one of `texts`, to the next
    split_bytes: int  # so many bytes in each write


class Script(TypedDict, total=False):
    """An answer: what the head says, then either one JSON body or steps. All fields may be left out."""

    status: int
    headers: dict[str, str]
    delay_seconds: float  # before the head
    hang_up: bool  # closes the connection instead of sending a head
    json: object
    steps: list[Step]


ENDING: list[Step] = [{"finish": "stop"}, {"usage": True}, {"done": True}]
OPENING: Step = {"event": {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}}
NUMBERED = "{n}:{word} "

BUILT_IN: dict[str, Script] = {
    "steady": {
        "steps": [
            OPENING,
            {"text": NUMBERED, "repeat": STEADY_CHUNKS, "pace_seconds": STEADY_PACE_SECONDS},
            *ENDING,
        ]
    },
    "fast": {"steps": [OPENING, {"text": NUMBERED, "repeat": STEADY_CHUNKS}, *ENDING]},
    "long": {"steps": [OPENING, {"text": NUMBERED, "repeat": LONG_CHUNKS, "pace_seconds": 0.02}, *ENDING]},
    "slow-start": {
        "steps": [{"sleep_seconds": 5}, OPENING, {"text": NUMBERED, "repeat": 20, "pace_seconds": 0.05}, *ENDING]
    },
    "reasoning": {
        "steps": [
            OPENING,
            {"reasoning": NUMBERED, "repeat": 20, "pace_seconds": 0.05},
            {"text": NUMBERED, "repeat": 20, "pace_seconds": 0.05},
            *ENDING,
        ]
    },
    "silent": {"delay_seconds": 86_400},
    "stall": {"steps": [OPENING, {"text": NUMBERED, "repeat": 10}, {"stall": True}]},
    "echo": {"steps": [OPENING, {"echo": True}, *ENDING]},
}


def numbered_text(template: str, number: int) -> str:
    """The text of repetition `number` (0 is the first): `{n}` and `{word}` are filled in."""
    return template.replace("{n}", str(number)).replace("{word}", WORDS[number % len(WORDS)])


def step_bytes(step: Step, model: str, number: int) -> bytes:
    """The bytes that a sending step puts into the body."""
    if "raw" in step:
        return step["raw"].encode()
    if "base64" in step:
        return base64.b64decode(step["base64"])
    if "event" in step:
        return event_bytes(step["event"])
    if "finish" in step:
        return chunk_bytes(model, {}, finish_reason=step["finish"])
    if "done" in step:
        return b"data: [DONE]\n\n"
    return chunk_bytes(model, _delta(step, number))


def chunk_bytes(model: str, delta: dict[str, str], *, finish_reason: str | None = None) -> bytes:
    """One `chat.completion.chunk` event, about as long as those of the public services (290 bytes)."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return event_bytes({**_envelope(model), "choices": [choice], "usage": None})


def usage_bytes(model: str, chunk_count: int) -> bytes:
    """The last chunk of a stream that was asked for with `include_usage`: no choices."""
    usage = {"prompt_tokens": 7, "completion_tokens": chunk_count, "total_tokens": 7 + chunk_count}
    return event_bytes({**_envelope(model), "choices": [], "usage": usage})


def event_bytes(value: object) -> bytes:
    """`value` as one event."""
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def echo_texts(messages: Sequence[object]) -> list[str]:
    """The last user message, cut before each space."""
    users = [m["content"] for m in messages if isinstance(m, dict) and m.get("role") == "user"]
    text = str(users[-1]) if users else ""
    first, *rest = text.split(" ")
    return [first, *(f" {word}" for word in rest)]


def _delta(step: Step, number: int) -> dict[str, str]:
    if "reasoning" in step:
        return {"reasoning_content": numbered_text(step["reasoning"], number)}
    if "texts" in step:
        return {"content": step["texts"][number]}
    return {"content": numbered_text(step["text"], number)}


def _envelope(model: str) -> dict[str, object]:
    return {
        "id": "chatcmpl-0123456789abcdefghijklmn",
        "object": "chat.completion.chunk",
        "created": CREATED_AT,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
    }
