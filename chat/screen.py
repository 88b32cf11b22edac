"""What one socket shows: its views of replies, and the one loop that sends them at the pace the client reads."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from uuid import UUID

from chat.flow import PING_SECONDS, Flow
from chat.frames import Frame, encode
from chat.view import HtmlView, View
from inference.journal import Ending
from inference.reply import Reply

PATCH_SECONDS = 0.1
"""The least time between two patches of the page; longer when they cost more."""
PATCH_COST_FACTOR = 40
PATCH_MAX_SECONDS = 1.0


class ClientIsGone(Exception):
    """The client has not answered for too long."""


class Screen:
    """Sends frames, and the replies it was told to show. `run()` lasts until it is cancelled or the client is dead."""

    def __init__(self, send_text: Callable[[str], Awaitable[None]], *, is_html: bool) -> None:
        self.flow = Flow()
        self._send_text = send_text
        self.is_html = is_html
        self._frames: deque[Frame] = deque()
        self._views: dict[UUID, View] = {}
        self._changed = asyncio.Event()
        self._views_at = 0.0

    async def send(self, frame: Frame) -> None:
        """Send a frame at once, ahead of all deltas that wait."""
        data = encode(frame)
        self.flow.sent(len(data))
        await self._send_text(data.decode())

    def tell(self, frame: Frame) -> None:
        """Send a frame soon: after those told before it, and before the deltas of whatever is shown after it."""
        self._frames.append(frame)
        self._changed.set()

    def show(self, reply: Reply, position: int = 0) -> None:
        """Send what comes after `position`; a reply that is shown already is not sent twice."""
        if reply.inference_id in self._views:
            return
        for known in [view for view in self._views.values() if view.told is not None]:
            self._drop(known)
        self._views[reply.inference_id] = HtmlView(reply, position) if self.is_html else View(reply, position)
        reply.add_reader(self._changed.set)
        self._changed.set()

    def end(self, ending: Ending) -> bool:
        """A reply has ended, or was cut back after its end; False when this screen does not show it."""
        view = self._views.get(ending.inference_id)
        if view is not None and view.reply.ending not in {None, ending} and not _lacks_text(view, ending):
            view.reply.end(ending)
        return view is not None

    def behind(self, ending: Ending) -> int | None:
        """Forget a reply that nobody feeds here any more and that this ending can't be put on: it never ended here, or
        with less text. Returns where it stood, else None."""
        view = self._views.get(ending.inference_id)
        if view is None or (view.reply.ending is not None and not _lacks_text(view, ending)):
            return None
        self._drop(view)
        return view.cursor

    def freeze(self, inference_id: UUID, position: int) -> None:
        """Send nothing of a reply beyond `position` any more."""
        view = self._views.get(inference_id)
        if view is not None:
            view.reply.freeze(position)

    def hear(self) -> None:
        """The client has sent a frame, whatever it is."""
        self.flow.heard()
        if self.flow.is_dead:
            self._changed.set()

    def pong(self, n: int) -> None:
        """The client has read so far."""
        self.flow.pong(n)
        self._changed.set()

    async def run(self) -> None:
        """Send deltas, endings and pings. Raises ClientIsGone."""
        self._look_regularly()
        try:
            while not self.flow.is_dead:
                await self._changed.wait()
                self._changed.clear()
                while self._frames:
                    await self.send(self._frames.popleft())
                await self._send_views()
                await self._ping_if_due()
        finally:
            self._look.cancel()
        raise ClientIsGone

    def close(self) -> None:
        """Stop reading the replies."""
        for view in list(self._views.values()):
            self._drop(view)

    def _look_regularly(self) -> None:
        """Wake the loop now and then, for pings and for a client that is gone: a timeout on each wait costs more."""
        self._changed.set()
        self._look = asyncio.get_running_loop().call_later(PING_SECONDS / 4, self._look_regularly)

    async def _send_views(self) -> None:
        if self.is_html:
            await self._send_patches()
            return
        for view in list(self._views.values()):
            await self._send_view(view)

    async def _send_patches(self) -> None:
        # An end settles a stop, so it does not wait for the next patch.
        if time.monotonic() < self._views_at and not any(view.has_untold_end for view in self._views.values()):
            return
        has_sent = False
        began_at = time.thread_time()
        for view in list(self._views.values()):
            has_sent = await self._send_view(view) or has_sent
        if has_sent:
            cost = time.thread_time() - began_at
            pause = min(PATCH_MAX_SECONDS, max(PATCH_SECONDS, PATCH_COST_FACTOR * cost))
            self._views_at = time.monotonic() + pause
            asyncio.get_running_loop().call_later(pause, self._changed.set)

    async def _send_view(self, view: View) -> bool:
        has_sent = False
        while not self.flow.is_blocked and (frame := await view.next_frame()):
            await self.send(frame)
            await self._ping_if_due()
            has_sent = True
        return has_sent

    async def _ping_if_due(self) -> None:
        if self.flow.is_ping_due:
            await self.send({"type": "ping", "n": self.flow.ping()})

    def _drop(self, view: View) -> None:
        view.reply.discard_reader(self._changed.set)
        del self._views[view.reply.inference_id]


def _lacks_text(view: View, ending: Ending) -> bool:
    return view.reply.generated_position < ending.position
