"""What the OpenAI engine makes of the answers of servers, good and bad (numbers: the cases they came from)."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator

import pytest

from inference.engine import Chunk, Completion, EngineError, ErrorCode, Part, Turn, Usage
from inference.engines.openai_api import OpenAIEngine
from testing.model_server import ModelServer, Step

DONE: Step = {"done": True}
STOP: Step = {"finish": "stop"}
CALLED_JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def engine(model_server: ModelServer) -> AsyncIterator[OpenAIEngine]:
    engine = OpenAIEngine(base_url=model_server.url, first_chunk_timeout_seconds=5, idle_timeout_seconds=1)
    yield engine
    await engine.aclose()


@pytest.fixture
def model() -> str:
    """A name of its own for each test, since all share one server."""
    return f"test-{uuid.uuid4()}"


def completion(model: str, text: str = "Hello") -> Completion:
    return Completion(model, [Turn("system", "Be brief."), Turn("user", text)])


async def chunks_from(engine: OpenAIEngine, model: str) -> list[Chunk]:
    return [chunk async for chunk in engine.stream(completion(model))]


async def failure_of(engine: OpenAIEngine, model: str) -> tuple[str, ErrorCode]:
    """The text before the failure, and its code."""
    texts: list[str] = []
    with pytest.raises(EngineError) as caught:
        async for chunk in engine.stream(completion(model)):
            texts.append(chunk.text)
    return "".join(texts), caught.value.code


def text_of(chunks: list[Chunk], part: Part = Part.CONTENT) -> str:
    return "".join(chunk.text for chunk in chunks if chunk.part is part)


def finish_of(chunks: list[Chunk]) -> list[str]:
    return [chunk.finish_reason for chunk in chunks if chunk.finish_reason]


def event(**delta: object) -> Step:
    return {"event": {"choices": [{"index": 0, "delta": delta}]}}


async def test_a_whole_reply_arrives_with_its_finish_reason_and_usage(
    engine: OpenAIEngine, model_server: ModelServer
) -> None:
    chunks = await chunks_from(engine, "fast")
    assert text_of(chunks).startswith("0:river 1:강물이  2:stone")
    assert len([chunk for chunk in chunks if chunk.text]) == 80
    assert finish_of(chunks) == ["stop"]
    assert chunks[-1].usage == Usage(prompt_tokens=7, completion_tokens=82)


async def test_case_34_chunks_that_say_nothing_are_harmless(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    nothing: list[Step] = [
        {"event": {}},
        {"event": {"choices": None}},
        {"event": {"choices": []}},
        {"event": {"choices": [None]}},
        {"event": {"choices": [{"index": 0, "delta": None, "finish_reason": ""}]}},
        {"event": {"choices": [{"index": 1, "delta": {"content": "of another choice"}}]}},
        {"event": {"choices": [], "usage": {"prompt_tokens": None}}},
        event(role="assistant"),
        event(role="assistant", content=None),
        event(content=""),
        event(content=17),
        event(tool_calls=[]),
    ]
    model_server.script(model, {"steps": [*nothing, {"text": "Hi"}, *nothing, STOP, {"usage": True}, DONE]})
    chunks = await chunks_from(engine, model)
    assert [chunk.text for chunk in chunks] == ["Hi", "", ""]
    assert chunks[-1].usage is not None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_case_35_both_reasoning_fields_are_the_reasoning_part(
    engine: OpenAIEngine, model_server: ModelServer, model: str, field: str
) -> None:
    model_server.script(model, {"steps": [event(**{field: "Hm. "}), event(content="Yes."), STOP, DONE]})
    chunks = await chunks_from(engine, model)
    assert (text_of(chunks, Part.REASONING), text_of(chunks)) == ("Hm. ", "Yes.")


async def test_case_35_reasoning_that_comes_in_both_fields_is_shown_once(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    both = event(reasoning_content="Hm.", reasoning="Hm.", content="Yes.")
    model_server.script(model, {"steps": [both, STOP, DONE]})
    assert text_of(await chunks_from(engine, model), Part.REASONING) == "Hm."


async def test_case_35_think_tags_are_left_alone(engine: OpenAIEngine, model_server: ModelServer, model: str) -> None:
    model_server.script(model, {"steps": [{"text": "<think>a</think>b"}, STOP, DONE]})
    assert text_of(await chunks_from(engine, model)) == "<think>a</think>b"


async def test_case_36_keep_alives_are_ignored(engine: OpenAIEngine, model_server: ModelServer, model: str) -> None:
    noise: Step = {"raw": ": keepalive\n\ndata: : keepalive\n\n:\n"}
    model_server.script(model, {"steps": [noise, {"text": "a"}, noise, {"text": "b"}, noise, STOP, noise, DONE]})
    assert text_of(await chunks_from(engine, model)) == "ab"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"error": {"message": "boom", "type": "server_error"}}, ErrorCode.MODEL_UNAVAILABLE),
        ({"error": {"message": "slow down", "type": "rate_limit_error"}}, ErrorCode.MODEL_RATE_LIMITED),
        ({"error": {"message": "who?", "code": 401}}, ErrorCode.MODEL_AUTH),
        ({"error": {"message": "x", "code": "context_length_exceeded"}}, ErrorCode.CONTEXT_TOO_LONG),
        ({"error": {"message": "x", "type": "invalid_request_error"}}, ErrorCode.MODEL_REFUSED_REQUEST),
        ({"error": "overloaded", "error_type": "overloaded"}, ErrorCode.MODEL_UNAVAILABLE),
        ({"object": "error", "message": "maximum context length is 4096", "code": 400}, ErrorCode.CONTEXT_TOO_LONG),
    ],
)
async def test_case_37_an_error_inside_a_stream_fails_and_keeps_the_text(
    engine: OpenAIEngine, model_server: ModelServer, model: str, error: object, code: ErrorCode
) -> None:
    model_server.script(model, {"steps": [{"text": "partial"}, {"event": error}, DONE]})
    assert await failure_of(engine, model) == ("partial", code)


@pytest.mark.parametrize("reason", ["length", "content_filter", "tool_calls"])
async def test_case_38_the_finish_reason_is_passed_on(
    engine: OpenAIEngine, model_server: ModelServer, model: str, reason: str
) -> None:
    model_server.script(model, {"steps": [{"text": "a"}, {"finish": reason}, DONE]})
    assert finish_of(await chunks_from(engine, model)) == [reason]


async def test_a_finish_reason_that_no_row_could_hold_is_made_storable(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    """With a NUL in it the end could not be saved, and the text of the last second was lost."""
    model_server.script(model, {"steps": [{"text": "a"}, {"finish": "st\x00op"}, DONE]})
    assert finish_of(await chunks_from(engine, model)) == ["st\ufffdop"]


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param([], id="clean end without finish_reason and DONE"),
        pytest.param([{"fin": True}], id="FIN inside the body"),
        pytest.param([{"rst": True}], id="reset"),
        pytest.param([{"raw": "data: {broken\n\n"}, DONE], id="bad JSON"),
        pytest.param([{"raw": "data: [1, 2]\n\n"}, DONE], id="JSON of another shape"),
        pytest.param([{"raw": "data: " + "[" * 100_000 + "\n\n"}, DONE], id="JSON nested without end"),
        pytest.param([{"raw": 'data: {"choices": [{"del'}], id="half an event"),
    ],
)
async def test_case_39_a_stream_that_breaks_is_cut_off_and_keeps_the_text(
    engine: OpenAIEngine, model_server: ModelServer, model: str, ending: list[Step]
) -> None:
    # The pause makes sure that the text has been read before a reset throws away what is under way.
    model_server.script(model, {"steps": [{"text": "partial"}, {"sleep_seconds": 0.05}, *ending]})
    assert await failure_of(engine, model) == ("partial", ErrorCode.CUT_OFF)


@pytest.mark.parametrize(
    "ending", [[STOP], [STOP, {"fin": True}], [STOP, {"sleep_seconds": 0.05}, {"rst": True}]], ids=["end", "FIN", "RST"]
)
async def test_case_39_a_finish_reason_without_done_is_complete(
    engine: OpenAIEngine, model_server: ModelServer, model: str, ending: list[Step]
) -> None:
    model_server.script(model, {"steps": [{"text": "all"}, *ending]})
    chunks = await chunks_from(engine, model)
    assert (text_of(chunks), finish_of(chunks)) == ("all", ["stop"])


async def test_case_39_done_without_a_finish_reason_is_a_stop(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"steps": [{"text": "all"}, {"raw": "data: [DONE]"}]})
    assert finish_of(await chunks_from(engine, model)) == ["stop"]


async def test_case_39_an_answer_without_any_event_is_cut_off(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"headers": {"Content-Type": "text/html"}, "steps": [{"raw": "<html></html>"}]})
    assert await failure_of(engine, model) == ("", ErrorCode.CUT_OFF)


@pytest.mark.parametrize("filler", [[], [{"raw": ": keepalive\n\n", "repeat": 50, "pace_seconds": 0.05}]])
async def test_case_40_a_stall_times_out_with_and_without_keep_alives(
    engine: OpenAIEngine, model_server: ModelServer, model: str, filler: list[Step]
) -> None:
    model_server.script(model, {"steps": [{"text": "partial"}, *filler, {"stall": True}]})
    assert await failure_of(engine, model) == ("partial", ErrorCode.TIMEOUT)


@pytest.mark.parametrize("split_bytes", [1, 2, 7, 10_000])
async def test_case_41_text_cut_anywhere_arrives_whole(
    engine: OpenAIEngine, model_server: ModelServer, model: str, split_bytes: int
) -> None:
    raw = 'data:{"choices":[{"delta":{"content":"강물 🌊"}}]}\r\n\r\n'
    raw += 'data: {"choices":[{"delta":{"content":"👩\u200d🚀é"}}]}\r\n\r\n'
    model_server.script(model, {"steps": [{"raw": raw, "split_bytes": split_bytes}, STOP, DONE]})
    assert text_of(await chunks_from(engine, model)) == "강물 🌊👩\u200d🚀é"


async def test_lone_surrogates_reach_the_reply_buffer_which_mends_them(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    halves: list[Step] = [
        {"raw": 'data: {"choices":[{"delta":{"content":"\\ud83c"}}]}\n\n'},
        {"raw": 'data: {"choices":[{"delta":{"content":"\\udf0a\\u0000"}}]}\n\n'},
    ]
    model_server.script(model, {"steps": [*halves, STOP, DONE]})
    assert text_of(await chunks_from(engine, model)) == "\ud83c\udf0a\x00"


async def test_case_42_one_giant_chunk_arrives_whole(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    giant = "강물 " * 300_000
    model_server.script(model, {"steps": [{"text": giant}, STOP, DONE]})
    assert text_of(await chunks_from(engine, model)) == giant


async def test_case_42_plain_json_instead_of_a_stream_is_shown(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    message = {"role": "assistant", "reasoning_content": "Hm.", "content": "Whole."}
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "length"}], "usage": usage}
    model_server.script(model, {"json": answer})
    chunks = await chunks_from(engine, model)
    assert (text_of(chunks, Part.REASONING), text_of(chunks)) == ("Hm.", "Whole.")
    assert (chunks[-1].finish_reason, chunks[-1].usage) == ("length", Usage(3, 4))


async def test_case_42_plain_json_without_a_finish_reason_is_a_stop(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"json": {"choices": [{"message": {"content": "Whole."}}]}})
    chunks = await chunks_from(engine, model)
    assert (text_of(chunks), finish_of(chunks)) == ("Whole.", ["stop"])


@pytest.mark.parametrize("split_bytes", [1, 2, 7, 10_000])
@pytest.mark.parametrize("begin", ["data: {}", " \n\n: hello", "\ufeffid: 1\ndata: {}"])
async def test_case_42_a_stream_that_is_called_json_is_a_stream(
    engine: OpenAIEngine, model_server: ModelServer, model: str, begin: str, split_bytes: int
) -> None:
    first: Step = {"raw": f"{begin}\n\n", "split_bytes": split_bytes}
    model_server.script(model, {"headers": CALLED_JSON, "steps": [first, {"text": "Hel"}, {"text": "lo"}, STOP, DONE]})
    assert [chunk.text for chunk in await chunks_from(engine, model)] == ["Hel", "lo", ""]


@pytest.mark.parametrize(
    ("last", "code"),
    [({"event": {"error": {"message": "boom"}}}, ErrorCode.MODEL_UNAVAILABLE), ({"text": "lo"}, ErrorCode.CUT_OFF)],
)
async def test_case_42_a_stream_that_is_called_json_ends_as_any_other(
    engine: OpenAIEngine, model_server: ModelServer, model: str, last: Step, code: ErrorCode
) -> None:
    model_server.script(model, {"headers": CALLED_JSON, "steps": [{"text": "Hel"}, last]})
    text, found = await failure_of(engine, model)
    assert (text[:3], found) == ("Hel", code)


async def test_blanks_before_a_body_cost_nothing(engine: OpenAIEngine, model_server: ModelServer, model: str) -> None:
    """To look at all of them again at each read would hold up the event loop for minutes."""
    blanks: Step = {"raw": " " * 4_000_000, "split_bytes": 1000}
    body: Step = {"raw": json.dumps({"choices": [{"message": {"content": "Whole."}}]})}
    model_server.script(model, {"headers": CALLED_JSON, "steps": [blanks, body]})
    async with asyncio.timeout(10):
        assert text_of(await chunks_from(engine, model)) == "Whole."


@pytest.mark.parametrize(
    ("body", "code"),
    [({"error": {"message": "boom"}}, ErrorCode.MODEL_UNAVAILABLE), ({}, ErrorCode.CUT_OFF), ([], ErrorCode.CUT_OFF)],
)
async def test_case_42_plain_json_that_is_no_answer_fails(
    engine: OpenAIEngine, model_server: ModelServer, model: str, body: object, code: ErrorCode
) -> None:
    model_server.script(model, {"json": body})
    assert await failure_of(engine, model) == ("", code)


async def test_content_in_parts_and_refusals_are_shown(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = event(content=[thinking, {"type": "text", "text": "I would "}, None, {"type": "image_url"}])
    model_server.script(model, {"steps": [parts, event(refusal="rather not."), STOP, DONE]})
    chunks = await chunks_from(engine, model)
    assert (text_of(chunks, Part.REASONING), text_of(chunks)) == ("Hm.", "I would rather not.")


async def test_a_server_that_falls_silent_after_the_finish_reason_has_finished(
    engine: OpenAIEngine, model_server: ModelServer, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.engines.openai_stream.AFTER_FINISH_SECONDS", 0.2)
    model_server.script(model, {"steps": [{"text": "all"}, STOP, {"stall": True}]})
    assert text_of(await chunks_from(engine, model)) == "all"


async def test_usage_beyond_any_sense_is_dropped(engine: OpenAIEngine, model_server: ModelServer, model: str) -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": -1}
    model_server.script(model, {"steps": [STOP, {"event": {"choices": [], "usage": usage}}, DONE]})
    assert [chunk.usage for chunk in await chunks_from(engine, model)] == [None]
