"""One reply on one socket: how far it is shown, as text or as patches of rendered blocks."""

from __future__ import annotations

import asyncio
from typing import Any

from chat.frames import Frame, end_frame
from chat.markdown import BlockRenderer, Patch, render
from inference.engine import Part
from inference.journal import Ending
from inference.reply import Delta, Reply, text_of

DELTA_CHARACTERS = 16_384
"""The most that one delta brings, so that flow control has something to hold on to."""


class View:
    """A cursor into a reply. `next_frame` gives the deltas after it and then the end."""

    def __init__(self, reply: Reply, position: int) -> None:
        self.reply = reply
        self.told: Ending | None = None
        """The ending that the client knows."""
        self.cursor = position
        """Up to where the client has been sent the reply."""

    @property
    def has_untold_end(self) -> bool:
        return self.reply.ending is not None and self.reply.ending != self.told

    async def next_frame(self) -> Frame | None:
        """What the client is to be sent next; None when it is up to date."""
        delta = self.reply.read(self.cursor, DELTA_CHARACTERS)
        if delta is not None:
            self.cursor = delta.position
            return self._delta_frame(delta)
        ending = self.reply.ending
        if ending is None or ending == self.told:
            return None
        self.told = ending
        # The client cuts back to it: what a later ending brings has to come again from there.
        self.cursor = min(self.cursor, ending.position)
        return await self._end_frame(ending)

    def _delta_frame(self, delta: Delta) -> Frame:
        return {
            "type": "delta",
            "inference_id": str(self.reply.inference_id),
            "part": str(delta.part),
            "from": delta.start,
            "position": delta.position,
            "text": delta.text,
        }

    async def _end_frame(self, ending: Ending) -> Frame:
        return end_frame(ending)


class HtmlView(View):
    """The same for the page: patches of rendered blocks in place of text."""

    def __init__(self, reply: Reply, position: int) -> None:
        super().__init__(reply, position)
        self._renderers: dict[Part, BlockRenderer] | None = None

    def _delta_frame(self, delta: Delta) -> Frame:
        renderers = self._renderers or self._renderers_at(delta.start)
        self._renderers = renderers
        frame = super()._delta_frame(delta)
        frame["patches"] = renderers[delta.part].feed(frame.pop("text"))
        return frame

    async def _end_frame(self, ending: Ending) -> Frame:
        renderers, self._renderers = self._renderers, None
        # Colouring a long reply takes tens of milliseconds: not on the event loop.
        parts = await asyncio.to_thread(_final_parts, self.reply, ending.position, renderers)
        return {**end_frame(ending), "parts": parts}

    def _renderers_at(self, position: int) -> dict[Part, BlockRenderer]:
        runs = self.reply.runs(0, position)
        return {part: BlockRenderer(text_of(runs, part)) for part in Part}


def _final_parts(reply: Reply, position: int, renderers: dict[Part, BlockRenderer] | None) -> dict[str, Any]:
    """The patches that turn the screen into the final text; all blocks whole where it is not known what it shows."""
    runs = reply.runs(0, position)
    parts: dict[str, Any] = {}
    for part in Part:
        text = text_of(runs, part)
        if renderers is not None:
            patches, blocks = renderers[part].finish(text)
        else:
            pages = render(text)
            patches, blocks = [Patch(index, 0, page, True) for index, page in enumerate(pages)], len(pages)
        parts[part.value] = {"patches": patches, "blocks": blocks}
    return parts
