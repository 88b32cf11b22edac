"""How the OpenAI engine asks: refusals, retries and their pauses, time-outs."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime

import pytest

from inference.engine import Completion, EngineError, ErrorCode, Turn
from inference.engines.openai_api import OpenAIEngine
from inference.engines.openai_errors import retry_after_seconds
from testing.model_server import ModelServer, Script

GOOD: Script = {"steps": [{"text": "Hi"}, {"finish": "stop"}, {"done": True}]}
NO_WAIT = {"Retry-After": "0"}


@pytest.fixture
async def engine(model_server: ModelServer) -> AsyncIterator[OpenAIEngine]:
    engine = OpenAIEngine(base_url=model_server.url, first_chunk_timeout_seconds=5)
    yield engine
    await engine.aclose()


@pytest.fixture
def model() -> str:
    return f"test-{uuid.uuid4()}"


def refusal(status: int, message: str = "no", **fields: object) -> Script:
    return {"status": status, "json": {"error": {"message": message, **fields}}, "headers": NO_WAIT}


async def reply(engine: OpenAIEngine, model: str) -> str:
    completion = Completion(model, [Turn("system", "Be brief."), Turn("user", "Hello")])
    return "".join([chunk.text async for chunk in engine.stream(completion)])


async def failure(engine: OpenAIEngine, model: str) -> ErrorCode:
    with pytest.raises(EngineError) as caught:
        await reply(engine, model)
    return caught.value.code


async def test_the_request_holds_the_turns_and_the_key(model_server: ModelServer, model: str) -> None:
    engine = OpenAIEngine(base_url=model_server.url, api_key="a-key")
    model_server.script(model, GOOD)
    await reply(engine, model)
    await engine.aclose()
    [request] = model_server.requests(model)
    assert request.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]
    assert request.headers["authorization"] == "Bearer a-key"


async def test_a_connection_is_used_again_after_a_whole_reply(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, GOOD)
    for _ in range(3):
        await reply(engine, model)
    assert len({request.client_port for request in model_server.requests(model)}) == 1


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (refusal(400), ErrorCode.MODEL_REFUSED_REQUEST),
        (refusal(400, code="context_length_exceeded"), ErrorCode.CONTEXT_TOO_LONG),
        (refusal(400, type="exceed_context_size_error"), ErrorCode.CONTEXT_TOO_LONG),
        (refusal(400, "This model's maximum context length is 8192 tokens."), ErrorCode.CONTEXT_TOO_LONG),
        (refusal(413, "prompt is too long: 9 > 8"), ErrorCode.CONTEXT_TOO_LONG),
        (refusal(401), ErrorCode.MODEL_AUTH),
        (refusal(402), ErrorCode.MODEL_REFUSED_REQUEST),
        (refusal(403), ErrorCode.MODEL_AUTH),
        (refusal(404, code="model_not_found"), ErrorCode.MODEL_REFUSED_REQUEST),
        (refusal(422), ErrorCode.MODEL_REFUSED_REQUEST),
        (refusal(429), ErrorCode.MODEL_RATE_LIMITED),
        (refusal(500), ErrorCode.MODEL_UNAVAILABLE),
        (refusal(500, "the context size could not be found"), ErrorCode.MODEL_UNAVAILABLE),
        (refusal(503), ErrorCode.MODEL_UNAVAILABLE),
        (
            {"status": 502, "steps": [{"raw": "<html>Bad gateway</html>"}], "headers": NO_WAIT},
            ErrorCode.MODEL_UNAVAILABLE,
        ),
    ],
)
async def test_each_refusal_has_its_code(
    engine: OpenAIEngine, model_server: ModelServer, model: str, script: Script, code: ErrorCode
) -> None:
    model_server.script(model, script)
    assert await failure(engine, model) is code


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_case_33_a_passing_refusal_is_retried_twice(
    engine: OpenAIEngine, model_server: ModelServer, model: str, status: int
) -> None:
    model_server.script(model, refusal(status), refusal(status), GOOD)
    assert await reply(engine, model) == "Hi"


async def test_case_33_a_lasting_refusal_is_asked_three_times_and_no_more(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, refusal(503))
    assert await failure(engine, model) is ErrorCode.MODEL_UNAVAILABLE
    assert len(model_server.requests(model)) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_case_33_a_refusal_for_good_is_not_retried(
    engine: OpenAIEngine, model_server: ModelServer, model: str, status: int
) -> None:
    model_server.script(model, refusal(status))
    await failure(engine, model)
    assert len(model_server.requests(model)) == 1


async def test_case_33_a_reply_that_has_begun_is_not_retried(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"steps": [{"text": "a"}, {"fin": True}]}, GOOD)
    assert await failure(engine, model) is ErrorCode.CUT_OFF
    assert len(model_server.requests(model)) == 1


async def test_case_33_retry_after_is_honoured(engine: OpenAIEngine, model_server: ModelServer, model: str) -> None:
    model_server.script(model, {**refusal(429), "headers": {"Retry-After": "1"}}, GOOD)
    assert await reply(engine, model) == "Hi"
    first, second = model_server.requests(model)
    assert 1.0 <= second.started_at - first.started_at < 2.0


async def test_case_33_a_server_that_asks_for_an_hour_fails_at_once(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {**refusal(429), "headers": {"Retry-After": "3600"}})
    assert await failure(engine, model) is ErrorCode.MODEL_RATE_LIMITED
    assert len(model_server.requests(model)) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2),
        ("0.5", 0.5),
        ("-3", 0),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    now = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)
    assert retry_after_seconds({"retry-after": value}, now) == seconds


async def test_a_server_that_hangs_up_before_the_head_is_asked_again(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, {"hang_up": True}, GOOD)
    assert await reply(engine, model) == "Hi"


async def test_a_server_that_always_hangs_up_is_unavailable_and_has_not_timed_out(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    """The client calls it a time-out."""
    model_server.script(model, {"hang_up": True})
    assert await failure(engine, model) is ErrorCode.MODEL_UNAVAILABLE


async def test_a_refused_connection_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        engine = OpenAIEngine(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", max_retries=0)
        assert await failure(engine, "any") is ErrorCode.MODEL_UNAVAILABLE
        await engine.aclose()


async def test_an_unknown_host_is_unavailable() -> None:
    engine = OpenAIEngine(base_url="http://no-such-host.invalid/v1", max_retries=0)
    assert await failure(engine, "any") is ErrorCode.MODEL_UNAVAILABLE
    await engine.aclose()


async def test_a_server_that_speaks_something_else_is_unavailable() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        engine = OpenAIEngine(base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
        assert await failure(engine, "any") is ErrorCode.MODEL_UNAVAILABLE
        await engine.aclose()


@pytest.mark.parametrize("script", [{"delay_seconds": 60}, {"steps": [{"stall": True}]}], ids=["no head", "no chunk"])
async def test_case_40_no_first_chunk_in_time_is_a_timeout_and_frees_the_server(
    model_server: ModelServer, model: str, script: Script
) -> None:
    model_server.script(model, script)
    # Long enough for the request to arrive on a busy machine.
    async with aclosing(OpenAIEngine(base_url=model_server.url, first_chunk_timeout_seconds=1.5)) as engine:
        assert await failure(engine, model) is ErrorCode.TIMEOUT
        [request] = model_server.requests(model)
        record = await asyncio.to_thread(model_server.wait_closed, request.id)
    assert record.state == "closed_by_client"


async def test_a_text_that_cannot_be_sent_is_an_engine_error(engine: OpenAIEngine) -> None:
    with pytest.raises(EngineError) as caught:
        await anext(engine.stream(Completion("fast", [Turn("user", "half a pair: \ud83c")])))
    assert caught.value.code is ErrorCode.INTERNAL


async def test_a_closed_engine_raises_an_engine_error_and_may_be_closed_twice(engine: OpenAIEngine) -> None:
    await reply(engine, "fast")
    await engine.aclose()
    await engine.aclose()
    assert await failure(engine, "fast") in (ErrorCode.INTERNAL, ErrorCode.MODEL_UNAVAILABLE)


async def test_a_server_without_stream_options_is_asked_without_them_from_then_on(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    model_server.script(model, refusal(400, "Unrecognized request argument supplied: stream_options"), GOOD)
    assert [await reply(engine, model), await reply(engine, model)] == ["Hi", "Hi"]
    assert ["stream_options" in request.body for request in model_server.requests(model)] == [True, False, False]


async def test_two_requests_at_once_to_a_server_without_stream_options_both_succeed(
    engine: OpenAIEngine, model_server: ModelServer, model: str
) -> None:
    refused: Script = {**refusal(400, "unknown field stream_options"), "delay_seconds": 0.1}
    model_server.script(model, refused, refused, GOOD)
    assert list(await asyncio.gather(reply(engine, model), reply(engine, model))) == ["Hi", "Hi"]


async def test_a_full_pool_of_connections_fails_soon_and_not_in_silence(model_server: ModelServer) -> None:
    one = OpenAIEngine(base_url=model_server.url, max_connections=1, connect_timeout_seconds=1, max_retries=0)
    async with aclosing(one) as engine:
        taker = engine.stream(Completion("stall", [Turn("user", "Hello")]))
        await anext(taker)
        assert await failure(engine, "fast") is ErrorCode.TIMEOUT
        await taker.aclose()
        assert await reply(engine, "fast")
