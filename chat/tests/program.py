"""A program of a person that uses the HTTP API with a token, as docs/API.md describes it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import httpx

from testing.client import Account

Frame = dict[str, Any]

SECRET = re.compile(r'value="(chatsite_[\w-]+)"')
TIMEOUT_SECONDS = 20.0


def make_token(account: Account, name: str = "a program") -> str:
    """Make a token on the account's page, as a person does, and read its secret there."""
    fields = {"name": name, "csrfmiddlewaretoken": account.http.cookies["csrftoken"]}
    answer = account.http.post("/accounts/tokens/", data=fields)
    found = SECRET.search(answer.text)
    assert found, answer.text
    return found[1]


class Program:
    """Requests with a token, as an async context manager."""

    def __init__(self, site_url: str, token: str) -> None:
        self.http = httpx.AsyncClient(
            base_url=f"{site_url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )

    async def get(self, path: str, **query: Any) -> Any:
        return _read(await self.http.get(path, params=query))

    async def post(self, path: str, **body: Any) -> Any:
        return _read(await self.http.post(path, json=body))

    async def stop(self, inference_id: str, position: int) -> Any:
        return await self.post("/inference/stop", inference_id=inference_id, position=position)

    @asynccontextmanager
    async def events(self, method: str, path: str, **options: Any) -> AsyncIterator[AsyncIterator[Frame]]:
        """The frames of an event stream."""
        async with self.http.stream(method, path, **options) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield _frames(response)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.http.aclose()


async def _frames(response: httpx.Response) -> AsyncIterator[Frame]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def _read(response: httpx.Response) -> Any:
    assert response.is_success, f"{response.status_code}: {response.text}"
    return response.json()
