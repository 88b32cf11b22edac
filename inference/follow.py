"""Following a reply that another worker owns: the follower's mirrors, and the owner's answers.

A follower joins the group of the inference and asks the owner, which answers with what is missing and publishes
merged deltas for as long as somebody renews the lease. A gap means ask again; silence means read the row.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from uuid import UUID

from inference.bus import WORKERS, Bus, Event
from inference.engine import Part
from inference.journal import Ending, Journal, JournalError, Record, Run
from inference.reply import Reply

logger = logging.getLogger(__name__)

RENEW_SECONDS = 2.0
LEASE_SECONDS = 3 * RENEW_SECONDS
SILENCE_SECONDS = 3.0
"""A mirror that hears nothing for so long reads the row."""
PUBLISH_SECONDS = 0.05
"""At most 20 events a second for one followed reply."""


def group_of(inference_id: UUID) -> str:
    """The group that hears the deltas of one inference."""
    return f"inference.{inference_id}"


class Mirror:
    """A copy of a reply owned elsewhere, one per worker and inference however many viewers it has."""

    def __init__(self, inference_id: UUID, *, bus: Bus, journal: Journal) -> None:
        self.reply = Reply(inference_id)
        self._bus = bus
        self._journal = journal
        self._heard_at = time.monotonic()

    def start_from(self, record: Record) -> None:
        """Take what the row says; it may be a second old."""
        self.reply.extend(0, record.runs)
        if record.ending is not None:
            self.reply.end(record.ending)

    async def run(self) -> None:
        """Keep the copy up to date until the reply has ended or nobody here reads it any more."""
        while self.reply.ending is None and self.reply.has_readers:
            await self.ask()
            await asyncio.sleep(RENEW_SECONDS)
            if time.monotonic() - self._heard_at > SILENCE_SECONDS:
                await self.read_row()

    async def ask(self) -> None:
        """Ask the owner for what comes after the end of this copy; renews the lease."""
        event = {
            "type": "follow",
            "inference_id": str(self.reply.inference_id),
            "position": self.reply.generated_position,
            "reply_to": self._bus.address,
        }
        await self._bus.publish(WORKERS, event)

    async def read_row(self) -> None:
        """Take what the row says now: it is all there is when the owner is silent, or dead."""
        try:
            record = await self._journal.read(self.reply.inference_id)
        except JournalError:
            return
        if record is not None:
            self.start_from(record)

    def hear(self, event: Event) -> bool:
        """Take a delta event; False when text before it is missing and the owner must be asked again."""
        self._heard_at = time.monotonic()
        runs = [(Part(part), text) for part, text in event["runs"]]
        return self.reply.extend(event["from"], runs)


class Mirrors:
    """All mirrors of this worker."""

    def __init__(self, *, bus: Bus, journal: Journal, spawn: Callable[..., object]) -> None:
        self._bus = bus
        self._journal = journal
        self._spawn = spawn
        self._mirrors: dict[UUID, Mirror] = {}
        bus.on("delta", self._hear)
        bus.on_renewed.append(self._ask_all)

    def __len__(self) -> int:
        return len(self._mirrors)

    def get(self, inference_id: UUID) -> Reply | None:
        mirror = self._mirrors.get(inference_id)
        return mirror.reply if mirror else None

    def add(self, record: Record) -> Reply:
        """A mirror of a live inference, begun from its row. The caller must become a reader before its next await."""
        mirror = self._mirrors.get(record.inference_id)
        if mirror is None:
            mirror = Mirror(record.inference_id, bus=self._bus, journal=self._journal)
            self._mirrors[record.inference_id] = mirror
            self._spawn(self._run(mirror))
        mirror.start_from(record)
        return mirror.reply

    def end(self, ending: Ending) -> None:
        """An inference has ended; if its mirror lacks text before the ending, it is fetched first."""
        mirror = self._mirrors.get(ending.inference_id)
        if mirror is None or not ending.supersedes(mirror.reply.ending):
            return
        if mirror.reply.generated_position >= ending.position:
            mirror.reply.end(ending)
        else:
            self._spawn(mirror.read_row())

    async def _run(self, mirror: Mirror) -> None:
        group = group_of(mirror.reply.inference_id)
        try:
            await self._bus.join(group)
            await mirror.run()
        finally:
            # Before leaving, which waits for Redis: a viewer who comes then must not read what nobody updates.
            del self._mirrors[mirror.reply.inference_id]
            await self._bus.leave(group)

    def _hear(self, event: Event) -> None:
        mirror = self._mirrors.get(UUID(event["inference_id"]))
        if mirror is not None and not mirror.hear(event):
            self._spawn(mirror.ask())

    async def _ask_all(self) -> None:
        for mirror in list(self._mirrors.values()):
            await mirror.ask()


class Lease:
    """The owner's side: publishes the deltas of one reply while somebody on another worker follows it."""

    def __init__(self, reply: Reply, bus: Bus) -> None:
        self._reply = reply
        self._bus = bus
        self._cursor = reply.position
        self._changed = asyncio.Event()
        self._expires_at = 0.0

    async def answer(self, position: int, reply_to: str) -> None:
        """Send one follower what comes after its position, and go on publishing for a while."""
        self._expires_at = time.monotonic() + LEASE_SECONDS
        start = min(position, self._reply.position)
        await self._bus.send(reply_to, self._event(start))

    async def run(self) -> None:
        """Publish until the reply ends or the lease does."""
        self._reply.add_reader(self._changed.set)
        try:
            while self._reply.ending is None and time.monotonic() < self._expires_at:
                await self.publish()
                await asyncio.sleep(PUBLISH_SECONDS)
                await self._change()
        finally:
            self._reply.discard_reader(self._changed.set)

    async def publish(self) -> None:
        """Publish what has come since the last time; also called when the reply has ended, before that is told."""
        self._changed.clear()
        if self._cursor >= self._reply.position:
            return
        event = self._event(self._cursor)
        self._cursor = event["position"]
        await self._bus.publish(group_of(self._reply.inference_id), event)

    async def _change(self) -> None:
        try:
            async with asyncio.timeout(RENEW_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return

    def _event(self, start: int) -> Event:
        runs: list[Run] = self._reply.runs(start)
        return {
            "type": "delta",
            "inference_id": str(self._reply.inference_id),
            "from": start,
            "position": self._reply.position,
            "runs": [[str(part), text] for part, text in runs],
        }
