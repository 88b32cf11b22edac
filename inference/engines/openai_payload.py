"""What a payload of the OpenAI chat completions API says, as chunks or as an error. Called by `openai_api`.

Servers that call themselves compatible differ in every detail, so nothing about a payload is taken for granted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic_core import from_json

from inference.engine import Chunk, EngineError, ErrorCode, Part, Usage
from inference.engines.openai_errors import STATUS_IN_STREAM, error_of
from inference.text import clean

MAX_TOKEN_COUNT = 2**31 - 1  # what a database integer holds
MAX_FINISH_REASON_CHARACTERS = 32
MAX_MODEL_CHARACTERS = 200  # as many as a row holds


def parse_payload(payload: bytes) -> dict[str, object]:
    """The JSON object in one event, or in a whole body. Raises EngineError CUT_OFF when it is none."""
    try:
        value = _value_of(payload)
    except (ValueError, RecursionError) as error:
        raise EngineError(ErrorCode.CUT_OFF, "the model server sent something that is not JSON") from error
    if not isinstance(value, dict):
        raise EngineError(ErrorCode.CUT_OFF, "the model server sent JSON that is not an object")
    return value


def _value_of(payload: bytes) -> object:
    try:
        return from_json(payload)
    except ValueError:
        # Slower, and takes what servers send that is not quite JSON: halves of surrogate pairs, broken UTF-8.
        return json.loads(payload.decode("utf-8", "replace"))


def chunks_of(payload: dict[str, object]) -> Iterator[Chunk]:
    """The chunks in one payload, often one, sometimes none. Raises EngineError when the payload is an error."""
    if payload.get("error") or payload.get("object") == "error":
        raise error_of(payload, status=STATUS_IN_STREAM)
    choice = _first_choice(payload.get("choices"))
    # A stream has `delta`, a plain answer `message`, and both name their fields alike.
    delta = _object(choice.get("delta")) or _object(choice.get("message"))
    yield from _texts_of(delta)
    finish_reason, usage = _finish_reason_of(choice), _usage_of(payload.get("usage"))
    if usage or finish_reason:
        yield Chunk(finish_reason=finish_reason, usage=usage)


def model_names(listing: dict[str, object]) -> tuple[str, ...]:
    """The ids in the answer to GET /v1/models, without those that no row can hold."""
    entries = listing.get("data")
    ids = [_object(entry).get("id") for entry in entries] if isinstance(entries, list) else []
    return tuple(dict.fromkeys(name for name in ids if isinstance(name, str) and _is_storable(name)))


def _is_storable(name: str) -> bool:
    return 0 < len(name) <= MAX_MODEL_CHARACTERS and clean(name) == name


def _texts_of(delta: dict[str, object]) -> Iterator[Chunk]:
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")  # some servers send the same text in both
    if reasoning and (text := _text_of(reasoning)):
        yield Chunk(text, Part.REASONING)
    content = delta.get("content")
    if isinstance(content, list):
        yield from _chunks_of_parts(content)
    elif isinstance(content, str) and content:
        yield Chunk(content)
    if (refusal := delta.get("refusal")) and isinstance(refusal, str):
        yield Chunk(refusal)


def _chunks_of_parts(parts: list[object]) -> Iterator[Chunk]:
    for part in map(_object, parts):
        if text := _text_of(part.get("thinking")):
            yield Chunk(text, Part.REASONING)
        if text := _text_of(part.get("text")):
            yield Chunk(text)


def _text_of(value: object) -> str:
    """A text, or the texts in a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(text for part in value if isinstance(text := _object(part).get("text"), str))
    return ""


def _first_choice(choices: object) -> dict[str, object]:
    for choice in map(_object, choices if isinstance(choices, list) else ()):
        if choice.get("index") in (0, None):
            return choice
    return {}


def _finish_reason_of(choice: dict[str, object]) -> str | None:
    value = choice.get("finish_reason")  # some servers send an empty one with every chunk
    return clean(value)[:MAX_FINISH_REASON_CHARACTERS] if isinstance(value, str) and value else None


def _usage_of(value: object) -> Usage | None:
    fields = _object(value)
    prompt, completion = _count(fields.get("prompt_tokens")), _count(fields.get("completion_tokens"))
    return None if prompt is None or completion is None else Usage(prompt, completion)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value <= MAX_TOKEN_COUNT else None


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
