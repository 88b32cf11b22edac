"""Who may read /metrics."""

from __future__ import annotations

import httpx
import pytest
from pytest_django.fixtures import Settings

from chatsite.asgi import application

TOKEN = "a-token-for-prometheus"


async def ask(**headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://10.1.2.3:8000") as http:
        return await http.get("/metrics", headers=headers)


async def test_without_a_token_in_the_settings_there_are_no_metrics(settings: Settings) -> None:
    settings.METRICS_TOKEN = ""
    for shown in ("", "Bearer ", f"Bearer {TOKEN}"):
        assert (await ask(authorization=shown)).status_code == 404


@pytest.mark.parametrize("shown", ["", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN])
async def test_whoever_does_not_show_the_token_reads_nothing(settings: Settings, shown: str) -> None:
    settings.METRICS_TOKEN = TOKEN
    response = await ask(authorization=shown)
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert "chatsite_" not in response.text
