"""The news of rooms: which sockets are in which room of this process, and what they are told."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from django.utils import timezone

from chat.access import Visit
from chat.database import rows
from chat.doors import Standing, standings
from chat.frames import Frame, role_frame
from chat.missed import events_since, message_key, room_frames, start_key
from chat.screen import Screen
from inference.bus import Bus, Event
from inference.events import ending_of
from inference.journal import Ending, JournalError
from inference.reply import Reply
from inference.worker import Worker

logger = logging.getLogger(__name__)

RECHECK_SECONDS = 4.0
"""How often the rows are asked: who may still be here, and what news were lost."""
GATHER_SECONDS = 0.2
MARGIN_SECONDS = 10.0
"""How much further back than the last look the next one goes: a row is seen only after its commit."""
TOLD_SECONDS = 120.0
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


@dataclass(slots=True)
class _Room:
    """One room that has sockets in this process."""

    room_id: UUID
    since: datetime = field(default_factory=timezone.now)
    sockets: set[RoomSocket] = field(default_factory=set)
    known: Frame | None = None
    """How the room stands by what its sockets were told, beside its messages."""


class News:
    """One for each process. `join` and `leave` come from sockets; events come from the bus.

    The bus may lose an event, so the rows are looked at as well; what has been told is not told again.
    """

    def __init__(self, bus: Bus, worker: Worker) -> None:
        self._bus = bus
        self._worker = worker
        self._rooms: dict[str, _Room] = {}
        self._told: dict[Hashable, float] = {}
        self._ended: dict[UUID, tuple[Ending, float]] = {}
        """The last ending that was told of an inference, and when."""
        self._looked_at = timezone.now()
        self._has_new_members = asyncio.Event()
        bus.on("news", self._hear_news)
        bus.on("end", self._hear_end)
        bus.on_renewed.append(self.catch_up)

    @property
    def sockets(self) -> list[RoomSocket]:
        """All open sockets of this process."""
        return [socket for room in self._rooms.values() for socket in room.sockets]

    def count_of(self, user_id: int) -> int:
        """How many sockets a person has in this process."""
        return sum(socket.visit.user.pk == user_id for socket in self.sockets)

    async def join(self, socket: RoomSocket) -> None:
        """Tell this socket the news of its room from now on."""
        room = socket.visit.room
        self._rooms.setdefault(room.topic, _Room(room.pk)).sockets.add(socket)
        await self._bus.join(room.topic)

    def learn(self, topic: str, frame: Frame) -> None:
        """What has just been read of a room that has a socket here: later changes are told against it."""
        room = self._rooms.get(topic)
        if room is not None and room.known is None:
            room.known = frame

    async def leave(self, socket: RoomSocket) -> None:
        """Tell it no more; may be called twice."""
        topic = socket.visit.room.topic
        if topic not in self._rooms or socket not in self._rooms[topic].sockets:
            return
        self._rooms[topic].sockets.discard(socket)
        if not self._rooms[topic].sockets:
            del self._rooms[topic]
        await self._bus.leave(topic)

    async def publish(self, topic: str, frames: Sequence[Frame]) -> None:
        """Tell the room's sockets in every process, in one event."""
        await self._bus.publish(topic, {"type": "news", "topic": topic, "frames": list(frames)})

    async def run(self) -> None:
        """Look at the rows from time to time, until cancelled."""
        while True:
            await self._pause()
            try:
                await self._look_again()
                await self.catch_up()
            except JournalError:
                continue
            except Exception:
                logger.exception("recheck of sockets")

    async def close_all(self) -> None:
        """This process shuts down: browsers reconnect to another one."""
        await asyncio.gather(*(socket.leave(RESTARTING) for socket in self.sockets), return_exceptions=True)

    async def catch_up(self) -> None:
        """Tell what the rows know and the bus has lost. Raises JournalError."""
        looked_at = timezone.now()
        start = self._looked_at - timedelta(seconds=MARGIN_SECONDS)
        since = {room.room_id: max(room.since, start) for room in self._rooms.values()}
        for event in await rows.run(events_since, since, self._told.__contains__) if since else ():
            (self._hear_end if event["type"] == "end" else self._hear_news)(event)
        await self._catch_up_with_rooms()
        self._looked_at = looked_at
        self._forget_told()

    async def _catch_up_with_rooms(self) -> None:
        """Tell how rooms stand that have changed without a word."""
        before = {topic: room.known for topic, room in self._rooms.items()}
        ids = [room.room_id for room in self._rooms.values()]
        frames = await rows.run(room_frames, ids) if ids else {}
        for topic, room in self._rooms.items():
            known, frame = room.known, frames.get(room.room_id)
            # What was heard meanwhile is newer than what was read.
            if known is None or frame is None or known is not before.get(topic):
                continue
            changes = {name: value for name, value in frame.items() if known.get(name) != value}
            if changes:
                self._tell(topic, {"type": "room", "title": frame["title"], **changes})

    async def _pause(self) -> None:
        """Until the next look: at once when somebody's membership has changed."""
        try:
            async with asyncio.timeout(RECHECK_SECONDS):
                await self._has_new_members.wait()
        except TimeoutError:
            return
        # Many changes in a row cost one look.
        await asyncio.sleep(GATHER_SECONDS)
        self._has_new_members.clear()

    async def _look_again(self) -> None:
        """Close the sockets of those who may be here no more, and tell the others what they may do now."""
        doors = {socket.visit.door for socket in self.sockets}
        found = await rows.run(standings, doors) if doors else {}
        for socket in self.sockets:
            # One that has come in meanwhile was looked at as it came.
            standing = found.get(socket.visit.door, Standing(None, socket.visit.role))
            if standing.close_code:
                await socket.leave(standing.close_code)
            elif standing.role != socket.visit.role:
                socket.visit = replace(socket.visit, role=standing.role)
                socket.screen.tell(role_frame(standing.title, standing.role))

    def _hear_news(self, event: Event) -> None:
        for frame in event["frames"]:
            if self._is_new(_key_of(frame)):
                self._tell(event["topic"], frame)
            if "member_count" in frame:
                self._has_new_members.set()

    def _tell(self, topic: str, frame: Frame) -> None:
        if frame["type"] == "room":
            self._note(topic, frame)
        reply = self._reply_of(frame) if frame["type"] == "start" else None
        for socket in self._sockets_of(topic):
            socket.screen.tell(frame)
            if reply is not None:
                socket.screen.show(reply)

    def _note(self, topic: str, frame: Frame) -> None:
        room = self._rooms.get(topic)
        if room is not None and room.known is not None:
            room.known = {**room.known, **frame}

    def _reply_of(self, frame: Frame) -> Reply:
        inference_id = UUID(frame["inference_id"])
        return self._worker.find(inference_id) or self._worker.mirror(inference_id)

    def _hear_end(self, event: Event) -> None:
        ending = ending_of(event)
        earlier, _ = self._ended.get(ending.inference_id, (None, 0.0))
        if not ending.supersedes(earlier):
            return
        self._ended[ending.inference_id] = ending, time.monotonic()
        self._worker.hear_end(ending)
        for socket in self._sockets_of(ending.topic):
            socket.end(ending)

    def _sockets_of(self, topic: str) -> list[RoomSocket]:
        room = self._rooms.get(topic)
        return list(room.sockets) if room else []

    def _is_new(self, key: Hashable) -> bool:
        if key is None:
            return True
        is_new = key not in self._told
        self._told[key] = time.monotonic()
        return is_new

    def _forget_told(self) -> None:
        oldest = time.monotonic() - TOLD_SECONDS
        self._told = {key: at for key, at in self._told.items() if at > oldest}
        self._ended = {key: told for key, told in self._ended.items() if told[1] > oldest}


def _key_of(frame: Frame) -> Hashable:
    """By what a frame is known again; None for one that may be told twice."""
    match frame["type"]:
        case "message":
            return message_key(frame["message"]["id"])
        case "start":
            return start_key(frame["inference_id"])
    return None
