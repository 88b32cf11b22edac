"""A worker that has started goes through its garbage seldom, and never again through what it has loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx

from testing.services import PROJECT, site_environment
from testing.workers import Worker

# In a process of its own: what is frozen stays so. It starts as under a server that has a lifespan.
START = """
import asyncio, gc
from chatsite.asgi import application

async def main():
    told = asyncio.Queue()
    told.put_nowait({"type": "lifespan.startup"})
    started = asyncio.Event()

    async def send(message):
        started.set()

    running = asyncio.create_task(application({"type": "lifespan"}, told.get, send))
    await started.wait()
    print(gc.get_freeze_count(), len(gc.get_objects()), *gc.get_threshold())
    told.put_nowait({"type": "lifespan.shutdown"})
    await running

asyncio.run(main())
"""


def test_what_is_loaded_at_the_start_is_spared() -> None:
    command = [sys.executable, "-c", START]
    environment = site_environment(DATABASE_URL="sqlite://:memory:", OPENAI_BASE_URL="http://127.0.0.1:1/v1")
    done = subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True)
    frozen, looked_at, *thresholds = map(int, done.stdout.split())
    assert frozen > 100_000
    assert looked_at < frozen / 10
    assert thresholds[0] >= 10_000


ASK = """
import gc
from chatsite.asgi import application as site

async def application(scope, receive, send):
    if scope.get("path") != "/frozen":
        await site(scope, receive, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(gc.get_freeze_count()).encode()})
"""


class AskedWorker(Worker):
    """The site with a page more."""

    application = "asked:application"


def test_it_is_spared_under_daphne_too(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text(ASK)
    variables = {"DATABASE_URL": f"sqlite:///{tmp_path}/site.sqlite3", "PYTHONPATH": f"{tmp_path}:{PROJECT}"}
    with AskedWorker(variables) as worker:
        assert int(httpx.get(f"{worker.url}/frozen", trust_env=False).text) > 80_000
