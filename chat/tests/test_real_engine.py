"""The whole way to a model server that nobody here wrote: llama.cpp's own, stopped from the site."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.llama_server import LlamaServer
from testing.server_process import wait_until
from testing.services import PostgresServer
from testing.workers import Site

pytestmark = pytest.mark.processes

FREED_SECONDS = 1.0


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    folder: Path = tmp_path_factory.mktemp("llama")
    with LlamaServer(folder) as server:
        yield server


@pytest.fixture(scope="module")
def site(postgres_server: PostgresServer, llama: LlamaServer) -> Iterator[Site]:
    """One worker whose model is llama.cpp's server; it finds the model's name by itself."""
    with (
        postgres_server.new_database() as database_url,
        Site(1, database_url=database_url, openai_base_url=llama.url) as started,
    ):
        yield started


async def test_a_stop_on_the_site_ends_the_computing_of_llama_cpp_within_a_second(
    site: Site, llama: LlamaServer
) -> None:
    room_id = site.account("alice").create_room()
    async with site.account("alice").open_room(room_id) as socket:
        inference_id = (await socket.ask("Tell me something long"))["inference_id"]
        position = await socket.wait_for_position(inference_id, 50, timeout_seconds=30)
        assert await asyncio.to_thread(llama.requests_processing) == 1
        result = await socket.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position)
        await asyncio.to_thread(
            wait_until, lambda: llama.requests_processing() == 0, "llama.cpp idle", timeout_seconds=FREED_SECONDS
        )
        computed = await asyncio.to_thread(llama.tokens_predicted)
        following = (await socket.ask("And now something else"))["inference_id"]
        await socket.wait_for_position(following, 10, timeout_seconds=30)
        await socket.stop(following)
        assert await asyncio.to_thread(llama.tokens_predicted) >= computed
