"""One room seen by two people's sockets on two workers: what the tests of single races look at."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from testing.client import Frame, RoomClient
from testing.model_server import ModelServer, Script
from testing.storm.row import Row
from testing.workers import Site


@dataclass
class Room:
    """One room with a socket on each of two workers, and the model of its replies."""

    site: Site
    room_id: str
    asking: RoomClient
    other: RoomClient
    model: str

    async def ask(self, text: str = "Hello") -> str:
        """Ask on the first worker; the second socket has heard of it too."""
        inference_id: str = (await self.asking.ask(text, model=self.model))["inference_id"]
        await self.other.wait_for("start", inference_id=inference_id)
        return inference_id

    async def ends(self, inference_id: str) -> list[Frame]:
        return [await socket.wait_for("end", inference_id=inference_id) for socket in (self.asking, self.other)]

    async def row(self, inference_id: str) -> Row:
        row = await asyncio.to_thread(Row.read, self.site.variables["DATABASE_URL"], inference_id)
        assert row is not None
        return row


@asynccontextmanager
async def open_room(
    site: Site, model_server: ModelServer, *scripts: Script, owner: int = 0, other: int = 1
) -> AsyncIterator[Room]:
    """A new room of Alice's, with sockets at these two of the site's workers, and a model that answers with these."""
    model = f"model-{uuid.uuid4().hex}"
    await asyncio.to_thread(model_server.script, model, *scripts)
    room_id = await asyncio.to_thread(site.account("alice").create_room)
    first, second = (site.account_at(site.workers[index], "alice") for index in (owner, other))
    async with first.open_room(room_id) as asking, second.open_room(room_id) as looking:
        await looking.wait_for("hello")
        yield Room(site, room_id, asking, looking, model)
