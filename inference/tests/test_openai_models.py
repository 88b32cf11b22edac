"""Which models the OpenAI engine offers, and how seldom it asks for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from inference.engine import EngineError, ErrorCode
from inference.engines.openai_api import OpenAIEngine
from testing.model_server import ModelServer


@pytest.fixture
async def engine(model_server: ModelServer) -> AsyncIterator[OpenAIEngine]:
    engine = OpenAIEngine(base_url=model_server.url)
    yield engine
    await engine.aclose()


@pytest.fixture
def models_script(model_server: ModelServer) -> Iterator[str]:
    yield "_models"
    model_server.unscript("_models")
    model_server.forget_requests()


async def test_configured_models_are_not_asked_for() -> None:
    engine = OpenAIEngine(base_url="http://127.0.0.1:9/v1", models=["b", "a"])
    assert list(await engine.models()) == ["b", "a"]
    await engine.aclose()


async def test_models_are_asked_for_once_by_all_who_wait(
    engine: OpenAIEngine, model_server: ModelServer, models_script: str
) -> None:
    listing = {"data": [{"id": "first"}, {"id": "second"}, {"id": "first"}, {"id": None}, "odd"]}
    model_server.script(models_script, {"json": listing, "delay_seconds": 0.1})
    model_server.forget_requests()
    for names in await asyncio.gather(engine.models(), engine.models(), engine.models()):
        assert list(names) == ["first", "second"]
    assert len(model_server.requests(models_script)) == 1


async def test_a_model_whose_name_no_row_could_hold_is_left_out(
    engine: OpenAIEngine, model_server: ModelServer, models_script: str
) -> None:
    names = ["", "a\x00b", "x" * 201, "x" * 200]
    model_server.script(models_script, {"json": {"data": [{"id": name} for name in names]}})
    assert list(await engine.models()) == ["x" * 200]


async def test_models_are_asked_for_again_when_the_cache_is_old(model_server: ModelServer, models_script: str) -> None:
    engine = OpenAIEngine(base_url=model_server.url, models_cache_seconds=0)
    model_server.script(models_script, {"json": {"data": [{"id": "old"}]}}, {"json": {"data": [{"id": "new"}]}})
    assert [list(await engine.models()), list(await engine.models())] == [["old"], ["new"]]
    await engine.aclose()


async def test_a_failed_list_of_models_is_remembered_for_a_while(
    engine: OpenAIEngine, model_server: ModelServer, models_script: str
) -> None:
    model_server.script(models_script, {"status": 401, "json": {"error": {"message": "no"}}})
    model_server.forget_requests()
    for _ in range(3):
        with pytest.raises(EngineError) as caught:
            await engine.models()
        assert caught.value.code is ErrorCode.MODEL_AUTH
    assert len(model_server.requests(models_script)) == 1


async def test_a_server_that_never_lists_its_models_times_out(
    engine: OpenAIEngine, model_server: ModelServer, models_script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.engines.openai_models.MODELS_TIMEOUT_SECONDS", 0.2)
    model_server.script(models_script, {"delay_seconds": 60})
    started_at = time.monotonic()
    with pytest.raises(EngineError) as caught:
        await engine.models()
    assert caught.value.code is ErrorCode.TIMEOUT
    assert time.monotonic() - started_at < 2
