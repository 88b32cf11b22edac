"""The whole site inside the test's own process: pages, API and sockets without a server, and a count of the queries."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.db import connections
from django.db.backends.utils import CursorWrapper
from django.test import AsyncClient

from chat import runtime

ANSWER_SECONDS = 10.0

is_background: ContextVar[bool] = ContextVar("is_background", default=False)
"""Set for what the process does by itself: heartbeats and looks at open sockets."""

Frame = dict[str, Any]
Communicator: Any = ApplicationCommunicator  # which has no types


class InsideSocket:
    """A socket in a room, as `InsideSite.open` gives it.

    Not Channels' own communicator: while that waits, connections of the database's threads stay open.
    """

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator

    async def send(self, frame: Frame) -> None:
        await self._communicator.send_input({"type": "websocket.receive", "text": json.dumps(frame)})

    async def next(self, *types: str) -> Frame:
        """The next frame of one of these types; a close is `{"type": "close", "code": ...}`."""
        while True:
            output = await self._communicator.receive_output(ANSWER_SECONDS)
            frame = json.loads(output["text"]) if "text" in output else {"type": "close", "code": output.get("code")}
            if frame["type"] in types:
                return dict(frame)


class InsideSite:
    """People are users, or None for somebody who is not signed in."""

    def __init__(self) -> None:
        self._clients: dict[int | None, AsyncClient] = {}
        self._statements: list[str] = []

    async def client(self, person: User | None) -> AsyncClient:
        """The person's browser, the same each time."""
        key = person.pk if person else None
        if key not in self._clients:
            self._clients[key] = AsyncClient()
            if person:
                await self._clients[key].aforce_login(person)
        return self._clients[key]

    @asynccontextmanager
    async def open(
        self, person: User | None, room_id: UUID | str, *, query: bytes = b""
    ) -> AsyncIterator[InsideSocket]:
        from chatsite.asgi import application

        cookies = (await self.client(person)).cookies
        cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())
        headers = [(b"host", b"testserver"), (b"cookie", cookie.encode())]
        scope = {"type": "websocket", "path": f"/ws/rooms/{room_id}/", "query_string": query, "headers": headers}
        communicator: Any = Communicator(application, scope)
        await communicator.send_input({"type": "websocket.connect"})
        assert (await communicator.receive_output(ANSWER_SECONDS))["type"] == "websocket.accept"
        try:
            yield InsideSocket(communicator)
        finally:
            await communicator.send_input({"type": "websocket.disconnect", "code": 1000})
            await communicator.wait(ANSWER_SECONDS)

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        """The SQL of everything that is not background, in all threads."""
        found: list[str] = []
        self._statements = found
        yield found
        self._statements = []

    def note(self, sql: str) -> None:
        if not is_background.get():
            self._statements.append(sql)


@pytest.fixture
async def inside(transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> AsyncIterator[InsideSite]:
    """The site, with a demo model that answers at once."""
    settings.DEMO_CHUNK_SECONDS = 0
    site = InsideSite()
    execute = CursorWrapper.execute

    def noted(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        site.note(str(sql))
        return execute(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", noted)
    token = is_background.set(True)
    runtime.current()
    is_background.reset(token)
    yield site
    await runtime.shut_down(0)
    # That of the thread in which the test itself has asked for rows.
    await sync_to_async(connections.close_all)()
