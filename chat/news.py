"""The news of rooms: which sockets are in which room of this process, and what they are told."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

from chat.access import Door, Refused, Visit, enter
from chat.database import rows
from chat.frames import Frame
from chat.screen import Screen
from inference.bus import Bus, Event
from inference.events import ending_of
from inference.journal import Ending, JournalError
from inference.reply import Reply
from inference.worker import Worker

logger = logging.getLogger(__name__)

RECHECK_SECONDS = 5.0
"""How often sessions and memberships of open sockets are looked at again."""
RESTARTING = 1012


class RoomSocket(Protocol):
    """What the news need of a socket."""

    visit: Visit
    screen: Screen

    def end(self, ending: Ending) -> None:
        """A reply has ended, or was cut back after its end."""
        ...

    async def leave(self, close_code: int) -> None:
        """Close."""
        ...


class News:
    """One for each process. `join` and `leave` come from sockets; events come from the bus."""

    def __init__(self, bus: Bus, worker: Worker) -> None:
        self._bus = bus
        self._worker = worker
        self._rooms: dict[str, set[RoomSocket]] = defaultdict(set)
        bus.on("news", self._hear_news)
        bus.on("end", self._hear_end)

    @property
    def sockets(self) -> list[RoomSocket]:
        """All open sockets of this process."""
        return [socket for room in self._rooms.values() for socket in room]

    def count_of(self, user_id: int) -> int:
        """How many sockets a person has in this process."""
        return sum(socket.visit.user.pk == user_id for socket in self.sockets)

    async def join(self, topic: str, socket: RoomSocket) -> None:
        """Tell this socket the news of a room from now on."""
        self._rooms[topic].add(socket)
        await self._bus.join(topic)

    async def leave(self, topic: str, socket: RoomSocket) -> None:
        """Tell it no more; may be called twice."""
        if socket not in self._rooms.get(topic, ()):
            return
        self._rooms[topic].discard(socket)
        if not self._rooms[topic]:
            del self._rooms[topic]
        await self._bus.leave(topic)

    async def publish(self, topic: str, frames: Sequence[Frame]) -> None:
        """Tell the room's sockets in every process, in one event."""
        await self._bus.publish(topic, {"type": "news", "topic": topic, "frames": list(frames)})

    async def run(self) -> None:
        """Close the sockets whose session, account or membership has ended; until cancelled."""
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            try:
                await self._recheck()
            except JournalError:
                continue
            except Exception:
                logger.exception("recheck of sockets")

    async def close_all(self) -> None:
        """This process shuts down: browsers reconnect to another one."""
        await asyncio.gather(*(socket.leave(RESTARTING) for socket in self.sockets), return_exceptions=True)

    async def _recheck(self) -> None:
        doors = {socket.visit.door for socket in self.sockets}
        refused = await rows.run(_refused, doors) if doors else {}
        for socket in self.sockets:
            close_code = refused.get(socket.visit.door)
            if close_code:
                await socket.leave(close_code)

    def _hear_news(self, event: Event) -> None:
        for frame in event["frames"]:
            reply = self._reply_of(frame) if frame["type"] == "start" else None
            for socket in list(self._rooms.get(event["topic"], ())):
                socket.screen.tell(frame)
                if reply is not None:
                    socket.screen.show(reply)

    def _reply_of(self, frame: Frame) -> Reply:
        inference_id = UUID(frame["inference_id"])
        return self._worker.find(inference_id) or self._worker.mirror(inference_id)

    def _hear_end(self, event: Event) -> None:
        ending = ending_of(event)
        self._worker.hear_end(ending)
        for socket in list(self._rooms.get(ending.topic, ())):
            socket.end(ending)


def _refused(doors: Iterable[Door]) -> dict[Door, int]:
    refused = {}
    for door in doors:
        try:
            enter(door)
        except Refused as refusal:
            refused[door] = refusal.close_code
    return refused
