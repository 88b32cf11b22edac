"""Markdown that grows: only the open block is rendered again, and the viewer gets the difference."""

from django.utils.safestring import SafeString, mark_safe

from chat.markdown.blocks import join_definitions, link_definitions, render_block, split
from chat.markdown.highlight import LIVE_COLOUR_CHARACTERS
from chat.markdown.open_block import OpenBlock
from chat.markdown.patch import Patch, difference


class BlockRenderer:
    """The growing text of one part of one reply, for one viewer.

    It holds the open block, and of each closed one a digest only.
    """

    def __init__(self, text: str = "") -> None:
        """`text` is what the viewer shows already, as `render_partial` made it; no patches are made for it."""
        self._digests: list[int] = []
        self._definitions = ""
        self._open = OpenBlock()
        if text:
            self.feed(text)

    def feed(self, text: str) -> list[Patch]:
        """Append `text`; the patches turn what the viewer shows into `render_partial` of all text so far."""
        self._open.append(text)
        return self._close_blocks() + self._patch_open_block()

    def finish(self, text: str) -> tuple[list[Patch], int]:
        """Patches that turn what the viewer shows into `render(text)`, and the number of blocks that remain.

        `text` is the final text, shorter than what was fed if a stop cut it. May be called again with another one.
        Colours long code, which takes up to 60 ms.
        """
        sources = split(text)
        definitions = link_definitions(sources)
        patches = []
        for index, source in enumerate(sources):
            if index >= len(self._digests) or self._digests[index] != _digest(source, definitions):
                patches.append(self._final_patch(index, render_block(source, definitions)))
        self._digests = [_digest(source, definitions) for source in sources]
        self._open = OpenBlock()
        return patches, len(sources)

    def _close_blocks(self) -> list[Patch]:
        """Close every block but the last."""
        sources, rest = self._open.split()
        patches = []
        for source in sources:
            patches.append(self._close_block(source, self._open.page))
            self._open = OpenBlock(rest)
        return patches

    def _close_block(self, source: str, shown: str) -> Patch:
        self._definitions = join_definitions(self._definitions, link_definitions([source]))
        page = render_block(source, self._definitions, colour_characters=LIVE_COLOUR_CHARACTERS)
        # The parser may make four spaces of a tab.
        has_colours_left = "<pre" in page and len(source.expandtabs(4)) > LIVE_COLOUR_CHARACTERS
        self._digests.append(0 if has_colours_left else _digest(source, self._definitions))
        return difference(len(self._digests) - 1, shown, page, is_closed=True)

    def _patch_open_block(self) -> list[Patch]:
        change = self._open.render(self._definitions)
        return [Patch(len(self._digests), *change, is_closed=False)] if change else []

    def _final_patch(self, index: int, page: str) -> Patch:
        shown = self._open.page if index == len(self._digests) else ""
        return difference(index, shown, page, is_closed=True)


def render_partial(text: str) -> list[SafeString]:
    """What a viewer of the growing reply sees at `text`: the blocks, the open one healed."""
    return [mark_safe(patch.tail) for patch in BlockRenderer().feed(text)]  # noqa: S308 - sanitized


def _digest(source: str, definitions: str) -> int:
    """Stands for the HTML, which follows from these two. Never 0, which stands for nothing."""
    return hash((source, definitions if "[" in source else "")) or 1
