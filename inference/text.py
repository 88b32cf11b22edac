"""Making text safe to store and to count: NUL and lone surrogates become U+FFFD. Used on prompts and on every chunk."""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Join surrogate pairs; replace NUL and lone surrogates, which neither PostgreSQL nor UTF-8 can hold."""
    if not _UNSAFE.search(text):
        return text
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _UNSAFE.sub(_REPLACEMENT, joined)


class ChunkCleaner:
    """`clean` for a text that comes in chunks: a surrogate pair split over two chunks comes out whole."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what is safe so far; half a pair at the end is held until the next chunk."""
        text = self._held + text
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held, text = text[-1], text[:-1]
        return clean(text)

    def flush(self) -> str:
        """Return what was held: half a pair whose other half never came."""
        held, self._held = self._held, ""
        return clean(held)


def quotes(text: str, sources: Iterable[str]) -> bool:
    """Whether `text` repeats one of the sources, or a stretch of 17 characters or more of one."""
    pieces = [text[start : start + 12] for start in range(0, len(text) - 11, 6)]
    return any(source and (source in text or any(piece in source for piece in pieces)) for source in sources)
