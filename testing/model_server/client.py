"""The test's side of the scripted model server: starts the process, scripts it, reads its journal.

All calls block; an async test makes them through `asyncio.to_thread`, so that its own loop goes on.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

from testing.model_server.journal import LIVE_STATES, Record, State
from testing.model_server.script import Script

REPOSITORY = Path(__file__).resolve().parents[2]
CALL_TIMEOUT_SECONDS = 30
EXIT_TIMEOUT_SECONDS = 5
FREED_SECONDS = 1.0
ENDED_STATES: tuple[State, ...] = ("complete", "cut_by_server", "closed_by_client")


class ModelServer:
    """A scripted OpenAI-compatible server in a process of its own; use as a context manager.

    `url` is what OPENAI_BASE_URL wants. Built-in models: steady (80 chunks in 10 s), fast, long, slow-start,
    reasoning, silent (no head at all), stall (10 chunks, then nothing) and echo.
    """

    def __init__(self) -> None:
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "testing.model_server", "--until-stdin-closes"]
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=EXIT_TIMEOUT_SECONDS)

    def script(self, model: str, *scripts: Script) -> None:
        """Requests for `model` get these answers in turn; the last one stays. `_models` answers /v1/models."""
        self._call("PUT", f"/_scripts/{quote(model)}", list(scripts))

    def unscript(self, model: str) -> None:
        """Forget the scripts of `model`."""
        self._call("DELETE", f"/_scripts/{quote(model)}")

    def go(self, model: str, *, count: int = 1) -> None:
        """Let `count` waits (step `wait_go`) of requests for `model` go on."""
        self._call("POST", f"/_go/{quote(model)}?count={count}")

    def requests(self, model: str | None = None) -> list[Record]:
        """The journal, oldest first."""
        query = urlencode({"model": model}) if model else ""
        records = self._call("GET", f"/_requests?{query}")
        assert isinstance(records, list)
        return [Record(**record) for record in records]

    def forget_requests(self) -> None:
        self._call("DELETE", "/_requests")

    def wait_request(
        self, model: str, *, states: Iterable[State] = tuple(LIVE_STATES), timeout_seconds: float = 5
    ) -> Record:
        """The newest request for `model` in one of `states`, as soon as there is one. Raises TimeoutError."""
        return self._wait(timeout_seconds, model=model, states=",".join(states))

    def wait_closed(self, request_id: int, timeout_seconds: float = FREED_SECONDS) -> Record:
        """The request when its connection is closed or its answer complete. Raises TimeoutError."""
        return self._wait(timeout_seconds, id=str(request_id), states=",".join(ENDED_STATES))

    def _wait(self, timeout_seconds: float, **query: str) -> Record:
        answer = self._call("GET", "/_wait?" + urlencode({**query, "timeout_seconds": timeout_seconds}))
        if isinstance(answer, list):
            raise TimeoutError(f"no request with {query} within {timeout_seconds} s; there are: {answer}")
        assert isinstance(answer, dict)
        return Record(**answer)

    def _call(self, method: str, path: str, value: object = None) -> object:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, json.dumps(value).encode())
            answer: object = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer
