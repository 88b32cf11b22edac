"""The scripted model server itself: which request gets which answer, and the control paths for tests.

`/v1/models` and `/v1/chat/completions` are what a product asks; paths that begin with `/_` are for tests.
A script registered as `_models` answers `/v1/models`.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from testing.model_server.connection import Connection, Request
from testing.model_server.journal import Journal, Record, State
from testing.model_server.script import BUILT_IN, Script, Step, chunk_bytes, echo_texts, step_bytes, usage_bytes

MODELS_SCRIPT = "_models"
BACKLOG = 4096
NO_SUCH_MODEL: Script = {
    "status": 404,
    "json": {"error": {"message": "no such model", "type": "invalid_request_error", "code": "model_not_found"}},
}


class CutByServerError(Exception):
    """A script has closed the connection itself."""


class ScriptedServer:
    """Holds scripts and journal; `connection` makes the protocol of each new connection."""

    def __init__(self) -> None:
        self._scripts: dict[str, list[Script]] = {}
        self._go: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))
        self._journal = Journal()
        self._control: dict[str, Callable[[Connection, Request, str], Awaitable[None]]] = {
            "_scripts": self._register,
            "_go": self._release,
            "_requests": self._requests,
            "_wait": self._wait,
        }

    def connection(self) -> Connection:
        return Connection(self._answer)

    async def _answer(self, connection: Connection, request: Request) -> None:
        _, area, *rest = request.path.split("/", 2)
        if area in self._control:
            await self._control[area](connection, request, "".join(rest))
        elif request.path == "/v1/models":
            await self._answer_as(MODELS_SCRIPT, connection, request, {})
        elif request.path == "/v1/chat/completions":
            body = json.loads(request.body)
            await self._answer_as(str(body.get("model")), connection, request, body)
        else:
            connection.send_json(404, {"error": {"message": "no such path", "type": "invalid_request_error"}})

    async def _answer_as(self, model: str, connection: Connection, request: Request, body: dict[str, object]) -> None:
        record = self._journal.begin(model, request, body)
        connection.on_lost = lambda: self._journal.end(record, "closed_by_client")
        await _Answer(connection, self._journal, record, self._go[model]).play(self._next_script(model))

    def _next_script(self, model: str) -> Script:
        """Registered scripts are used up one per request; the last one stays."""
        scripts = self._scripts.get(model)
        if scripts:
            return scripts.pop(0) if len(scripts) > 1 else scripts[0]
        if model == MODELS_SCRIPT:
            return {"json": self._listing()}
        return BUILT_IN.get(model, NO_SUCH_MODEL)

    def _listing(self) -> dict[str, object]:
        names = dict.fromkeys([*BUILT_IN, *self._scripts])
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 0} for name in names]}

    async def _register(self, connection: Connection, request: Request, model: str) -> None:
        if request.method == "DELETE":
            self._scripts.pop(model, None)
        else:
            value = json.loads(request.body)
            self._scripts[model] = value if isinstance(value, list) else [value]
            self._go.pop(model, None)
        connection.send_json(200, {})

    async def _release(self, connection: Connection, request: Request, model: str) -> None:
        for _ in range(int(request.query.get("count", "1"))):
            self._go[model].release()
        connection.send_json(200, {})

    async def _requests(self, connection: Connection, request: Request, _: str) -> None:
        if request.method == "DELETE":
            self._journal.clear()
            connection.send_json(200, [])
            return
        connection.send_json(200, [asdict(record) for record in self._journal.records(request.query.get("model"))])

    async def _wait(self, connection: Connection, request: Request, _: str) -> None:
        """Hold the answer until a record matches `id`, `model` and `states`, or answer 408."""
        query = request.query
        states = set(query["states"].split(",")) if "states" in query else None

        def matches(record: Record) -> bool:
            return (
                query.get("id", str(record.id)) == str(record.id)
                and query.get("model", record.model) == record.model
                and (states is None or record.state in states)
            )

        try:
            record = await self._journal.wait_for(matches, float(query.get("timeout_seconds", "5")))
        except TimeoutError:
            connection.send_json(408, [asdict(record) for record in self._journal.records(query.get("model"))])
            return
        connection.send_json(200, asdict(record))


class _Answer:
    """Plays one script on one connection."""

    def __init__(self, connection: Connection, journal: Journal, record: Record, go: asyncio.Semaphore) -> None:
        self._connection = connection
        self._journal = journal
        self._record = record
        self._go = go

    async def play(self, script: Script) -> None:
        await asyncio.sleep(script.get("delay_seconds", 0))
        if script.get("hang_up"):
            self._journal.end(self._record, "cut_by_server")
            self._connection.fin()
            return
        status, headers = script.get("status", 200), script.get("headers", {})
        self._journal.headers_sent(self._record)
        if "json" in script:
            self._connection.send_json(status, script["json"], headers)
            self._journal.end(self._record, "complete")
            return
        self._connection.send_head(status, {"Content-Type": "text/event-stream", **headers})
        self._journal.end(self._record, await self._play_steps(script.get("steps", [])))

    async def _play_steps(self, steps: list[Step]) -> State:
        try:
            for step in steps:
                await self._repeat(step)
        except CutByServerError:
            return "cut_by_server"
        self._connection.end_body()
        return "complete"

    async def _repeat(self, step: Step) -> None:
        loop = asyncio.get_running_loop()
        started_at, pace_seconds = loop.time(), step.get("pace_seconds", 0)
        for number in range(len(step["texts"]) if "texts" in step else step.get("repeat", 1)):
            if pace_seconds:
                await asyncio.sleep(started_at + (number + 1) * pace_seconds - loop.time())
            await self._take(step, number)

    async def _take(self, step: Step, number: int) -> None:
        if "sleep_seconds" in step:
            await asyncio.sleep(step["sleep_seconds"])
        elif "wait_go" in step:
            await self._go.acquire()
        elif "stall" in step:
            await asyncio.Event().wait()
        elif "fin" in step:
            self._cut(self._connection.fin)
        elif "rst" in step:
            self._cut(self._connection.reset)
        else:
            await self._send(step, number)

    def _cut(self, close: Callable[[], None]) -> None:
        self._journal.end(self._record, "cut_by_server")  # before the close, which would say closed_by_client
        close()
        raise CutByServerError

    async def _send(self, step: Step, number: int) -> None:
        for data in self._payloads(step, number):
            size = step.get("split_bytes", len(data)) or 1
            for start in range(0, len(data), size):
                self._connection.send_piece(data[start : start + size])
                self._journal.sent(self._record, min(size, len(data) - start))
                await asyncio.sleep(0)

    def _payloads(self, step: Step, number: int) -> list[bytes]:
        model = self._record.model
        if "echo" in step:
            messages = self._record.body.get("messages")
            return [chunk_bytes(model, {"content": text}) for text in echo_texts(_list(messages))]
        if "usage" in step:
            options = self._record.body.get("stream_options")
            is_asked = isinstance(options, dict) and options.get("include_usage") is True
            return [usage_bytes(model, self._record.chunks_sent)] if is_asked else []
        return [step_bytes(step, model, number)]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


async def serve(host: str, port: int) -> asyncio.Server:
    """Listen; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(ScriptedServer().connection, host, port, backlog=BACKLOG)
