"""Many replies at once, each in a room of its own with one viewer, and what a server spends on them for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from testing.bench.viewer import Viewer

T = TypeVar("T")
U = TypeVar("U")

AT_ONCE = 10
"""How many sockets open, or prompts are sent, at the same time: a load that begins is not what is measured."""
ENDLESS = "paced-0"
REFERENCE = "paced-80"
"""80 chunks in 10 s."""
REFERENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Place:
    """A room, and the server through which it is entered."""

    port: int
    room_id: str
    cookie: str = ""


@dataclass(frozen=True, slots=True)
class Live:
    """A reply that runs, and the socket that asked for it."""

    viewer: Viewer
    inference_id: str

    async def stop(self) -> None:
        """Stop it, and wait until it has ended."""
        await self.viewer.stop(self.inference_id)
        await self.viewer.wait("end")


async def open_viewers(places: Iterable[Place]) -> list[Viewer]:
    """Sockets that show nothing yet."""
    return await each([Viewer(place.port, place.room_id, place.cookie) for place in places], Viewer.open)


async def begin(viewers: Sequence[Viewer], model: str) -> list[Live]:
    """Each of them asks."""

    async def ask(viewer: Viewer) -> Live:
        return Live(viewer, await viewer.ask(model))

    return await each(viewers, ask)


async def end(replies: Sequence[Live]) -> None:
    """Stop all replies and close their sockets."""
    await each(replies, Live.stop)
    close([reply.viewer for reply in replies])


def close(viewers: Iterable[Viewer]) -> None:
    for viewer in viewers:
        viewer.close()


async def each(items: Sequence[T], act: Callable[[T], Awaitable[U]]) -> list[U]:
    """Do it with all of them, a few at a time."""
    places = asyncio.Semaphore(AT_ONCE)

    async def act_in_turn(item: T) -> U:
        async with places:
            return await act(item)

    return await asyncio.gather(*map(act_in_turn, items))
