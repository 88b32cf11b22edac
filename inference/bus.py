"""The channel layer as one worker uses it: one channel, the groups it has joined, and a watchdog that renews both.

Events are nudges: the rows are the truth, so a lost event costs delay and not data. Whoever joins a group in this
process hears what this process publishes to it even while Redis is away.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol
from uuid import uuid4

from inference.journal import JournalError

logger = logging.getLogger(__name__)

Event = dict[str, Any]
Handler = Callable[[Event], None]

WORKERS = "workers"
"""The group of all workers."""

PROBE_SECONDS = 5.5
"""Between two probes of the subscription: under 12 commands a minute (DESIGN section 8, I6)."""
PROBE_TIMEOUT_SECONDS = 3.0
"""PROBE_SECONDS + PROBE_TIMEOUT_SECONDS bounds how long a dead subscription goes unnoticed."""
RETRY_SECONDS = 0.5
REMINDER_SECONDS = 30.0
"""How often the log says that there is still no subscription."""


class ChannelLayer(Protocol):
    """What we use of a Channels layer."""

    async def new_channel(self) -> str: ...
    async def send(self, channel: str, message: Event) -> None: ...
    async def receive(self, channel: str) -> Event: ...
    async def group_add(self, group: str, channel: str) -> None: ...
    async def group_discard(self, group: str, channel: str) -> None: ...
    async def group_send(self, group: str, message: Event) -> None: ...
    async def flush(self) -> None: ...


class Bus:
    """Publishes and hears events. `run()` hears until it is cancelled; everything else may be called before that."""

    def __init__(self, layer: ChannelLayer) -> None:
        self.address = ""
        """The channel of this process, for events to it alone; empty while there is no subscription."""
        self.has_subscription = asyncio.Event()
        self.on_renewed: list[Callable[[], Awaitable[None]]] = []
        """Called after a subscription was lost and renewed: events in between are lost."""
        self._layer = layer
        self._origin = uuid4().hex
        self._handlers: dict[str, Handler] = {}
        self._groups: Counter[str] = Counter({WORKERS: 1})
        self._probe_heard = asyncio.Event()
        self._is_broken = asyncio.Event()
        self._reminder_at = 0.0
        self.on("probe", lambda _: self._probe_heard.set())

    def on(self, kind: str, handler: Handler) -> None:
        """Call `handler` for each event of this type; it must not block."""
        self._handlers[kind] = handler

    async def join(self, group: str) -> None:
        """Hear a group; counted, so each `join` needs its `leave`. While Redis is away it takes effect later."""
        self._groups[group] += 1
        # Also for the second join, which must not return before the first one's subscription has begun.
        if self.address and not await self._quietly(self._layer.group_add(group, self.address)):
            # Nothing else would find out: the layer mends its connection, but not with this group.
            self._is_broken.set()

    async def leave(self, group: str) -> None:
        """Take one `join` back."""
        self._groups[group] -= 1
        if self._groups[group] > 0:
            return
        del self._groups[group]
        if not self.address:
            return
        is_left = False
        try:
            is_left = await self._quietly(self._layer.group_discard(group, self.address))
        finally:
            if not is_left:
                # The layer would hear the group for ever: it has forgotten it, but its subscription is still there.
                self._is_broken.set()

    async def publish(self, group: str, event: Event) -> bool:
        """Tell a group: this process at once, the others through Redis. False when Redis did not take it."""
        if group in self._groups:
            self._dispatch(event)
        return await self._quietly(self._layer.group_send(group, {**event, "origin": self._origin}))

    async def send(self, address: str, event: Event) -> bool:
        """Tell one worker, which may be this one. False when Redis did not take it."""
        if address == self.address:
            self._dispatch(event)
            return True
        return await self._quietly(self._layer.send(address, {**event, "origin": self._origin}))

    async def run(self) -> None:
        """Subscribe, hear, probe, and renew whenever the subscription is found dead; until cancelled."""
        is_first = True
        while True:
            try:
                await self._subscribe()
            except Exception as error:
                self._remind(error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            _raise_if_cancelled()
            hearing = asyncio.create_task(self._hear(self.address), name="bus hears")
            hearing.add_done_callback(lambda _: self._is_broken.set())
            try:
                await self._announce(is_first=is_first)
                await self._probe_until_dead(hearing)
            finally:
                await self._unsubscribe(hearing)
            is_first = False

    def _remind(self, error: Exception) -> None:
        if time.monotonic() >= self._reminder_at:
            logger.warning("no subscription, trying again until Redis can be reached: %s", error)
            self._reminder_at = time.monotonic() + REMINDER_SECONDS

    async def _subscribe(self) -> None:
        self._is_broken.clear()
        address = await self._layer.new_channel()
        early = set(self._groups)
        for group in early:
            await self._layer.group_add(group, address)
        self.address = address
        # A group joined or left meanwhile saw no address yet.
        for group in list(self._groups):
            await self._layer.group_add(group, address)
        for group in early - self._groups.keys():
            await self._layer.group_discard(group, address)

    async def _announce(self, *, is_first: bool) -> None:
        self.has_subscription.set()
        self._reminder_at = 0.0
        if is_first:
            return
        logger.info("subscription renewed")
        for renewed in self.on_renewed:
            try:
                await renewed()
            except JournalError as error:
                # What could not be read again now is read at the next beat.
                logger.warning("after the subscription was renewed: %s", error)
            except Exception:
                logger.exception("after the subscription was renewed")

    async def _hear(self, address: str) -> None:
        while True:
            event = await self._layer.receive(address)
            if event.get("origin") != self._origin or event["type"] == "probe":
                self._dispatch(event)

    def _dispatch(self, event: Event) -> None:
        handler = self._handlers.get(event["type"])
        if handler is None:
            logger.warning("event of unknown type %s", event["type"])
            return
        try:
            handler(event)
        except Exception:
            logger.exception("event %s", event["type"])

    async def _probe_until_dead(self, hearing: asyncio.Task[None]) -> None:
        while not hearing.done():
            self._probe_heard.clear()
            try:
                # The sending too: on a half-open connection it takes as long as Redis is given to answer.
                async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
                    await self._quietly(self._layer.send(self.address, {"type": "probe"}))
                    await self._probe_heard.wait()
            except TimeoutError:
                logger.warning("subscription is dead")
                return
            if await self._breaks_within(PROBE_SECONDS):
                return

    async def _breaks_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._is_broken.wait()
        except TimeoutError:
            return False
        return True

    async def _unsubscribe(self, hearing: asyncio.Task[None]) -> None:
        self.has_subscription.clear()
        self.address = ""
        # Before the hearing is cancelled: the layer would unsubscribe its channel over the dead connection.
        with suppress(Exception):
            await self._layer.flush()
        hearing.cancel()
        await asyncio.wait({hearing})

    async def _quietly(self, command: Awaitable[object]) -> bool:
        is_taken = True
        try:
            await command
        except Exception as error:
            # redis-py raises its own errors and OSError; the layer may raise RuntimeError after a flush.
            logger.warning("channel layer: %s", error)
            is_taken = False
        _raise_if_cancelled()
        return is_taken


def _raise_if_cancelled() -> None:
    """A cancel that comes as a Redis command ends can be swallowed (`asyncio.wait_for` does); its task still knows."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
