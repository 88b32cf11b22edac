"""Markdown that grows: only the open block is rendered again, and the viewer gets the difference."""

from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

from chat.markdown.blocks import decided_end, join_definitions, link_definitions, render_block, split
from chat.markdown.healing import heal
from chat.markdown.highlight import LIVE_COLOUR_CHARACTERS


class Patch(NamedTuple):
    """Block number `block` becomes the first `keep` UTF-16 code units of its HTML, as a browser counts, and `tail`."""

    block: int
    keep: int
    tail: str
    is_closed: bool


class BlockRenderer:
    """The growing text of one part of one reply, for one viewer.

    It holds the source of the open block, and of each closed one a digest only.
    """

    def __init__(self, text: str = "") -> None:
        """`text` is what the viewer shows already, as `render_partial` made it; no patches are made for it."""
        self._digests: list[int] = []
        self._definitions = ""
        self._source = ""
        self._decided_end = 0
        self._shown = ""
        if text:
            self.feed(text)

    def feed(self, text: str) -> list[Patch]:
        """Append `text`; the patches turn what the viewer shows into `render_partial` of all text so far."""
        self._source += text
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
        self._source = self._shown = ""
        return patches, len(sources)

    def _close_blocks(self) -> list[Patch]:
        """Close every block but the last."""
        end = decided_end(self._source)
        if end <= self._decided_end:
            return []
        sources = split(self._source[:end])[:-1]
        length = sum(map(len, sources))
        self._source = self._source[length:]
        self._decided_end = end - length
        return [self._close_block(source) for source in sources]

    def _close_block(self, source: str) -> Patch:
        self._definitions = join_definitions(self._definitions, link_definitions([source]))
        page = render_block(source, self._definitions, colour_characters=LIVE_COLOUR_CHARACTERS)
        has_colours_left = "<pre" in page and len(source) > LIVE_COLOUR_CHARACTERS
        self._digests.append(0 if has_colours_left else _digest(source, self._definitions))
        patch = _difference(len(self._digests) - 1, self._shown, page, is_closed=True)
        self._shown = ""
        return patch

    def _patch_open_block(self) -> list[Patch]:
        page = render_block(heal(self._source), self._definitions, colour_characters=0)
        if page == self._shown:
            return []
        patch = _difference(len(self._digests), self._shown, page, is_closed=False)
        self._shown = page
        return [patch]

    def _final_patch(self, index: int, page: str) -> Patch:
        shown = self._shown if index == len(self._digests) else ""
        return _difference(index, shown, page, is_closed=True)


def render_partial(text: str) -> list[SafeString]:
    """What a viewer of the growing reply sees at `text`: the blocks, the open one healed."""
    return [mark_safe(patch.tail) for patch in BlockRenderer().feed(text)]  # noqa: S308 - sanitized


def _digest(source: str, definitions: str) -> int:
    """Stands for the HTML, which follows from these two. Never 0, which stands for nothing."""
    return hash((source, definitions if "[" in source else "")) or 1


def _difference(index: int, shown: str, page: str, *, is_closed: bool) -> Patch:
    keep = _common_length(shown, page)
    units = keep if page.isascii() else len(page[:keep].encode("utf-16-le")) // 2
    return Patch(index, units, page[keep:], is_closed)


def _common_length(one: str, other: str) -> int:
    """Length of the common beginning, by halving: comparing slices is quicker than comparing characters."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
