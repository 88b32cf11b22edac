"""The buffer of one reply in one process: the owner, or a mirror, writes it; each viewer reads it with its cursor."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from inference.engine import Part
from inference.journal import Ending, Run

PIECE_CHARACTERS = 4096
"""Chunks are joined into pieces of about this length, so that there is little to go through at a checkpoint."""


class Delta(NamedTuple):
    """New text of one part, from position `start` up to `position` (code points, DESIGN section 6)."""

    part: Part
    start: int
    text: str

    @property
    def position(self) -> int:
        return self.start + len(self.text)


class Reply:
    """Grows until it is frozen or ended. What was appended is kept, so that a stop can still move."""

    def __init__(self, inference_id: UUID, *, runs: Iterable[Run] = ()) -> None:
        self.inference_id = inference_id
        self.ending: Ending | None = None
        self._parts: list[Part] = []
        self._texts: list[str] = []
        self._starts: list[int] = []
        self._length = 0
        self._limit: int | None = None
        self._readers: set[Callable[[], None]] = set()
        for part, text in runs:
            self.append(part, text)

    @property
    def position(self) -> int:
        """The end of what may be shown."""
        return self._length if self._limit is None else min(self._length, self._limit)

    @property
    def generated_position(self) -> int:
        """The end of all that was appended, beyond a stop too."""
        return self._length

    @property
    def has_readers(self) -> bool:
        return bool(self._readers)

    def append(self, part: Part, text: str) -> None:
        """Add text to the end and wake the readers."""
        if not text:
            return
        if self._parts and self._parts[-1] is part and len(self._texts[-1]) < PIECE_CHARACTERS:
            self._texts[-1] += text
        else:
            self._parts.append(part)
            self._texts.append(text)
            self._starts.append(self._length)
        self._length += len(text)
        self._wake()

    def extend(self, start: int, runs: Iterable[Run]) -> bool:
        """Add runs that begin at `start`, skipping what is here already; False when there is a gap before them."""
        for part, text in runs:
            if start > self._length:
                return False
            self.append(part, text[self._length - start :])
            start += len(text)
        return start <= self._length

    def freeze(self, position: int) -> None:
        """Show nothing beyond `position` any more. Only an ending can show more again: who freezes may be late."""
        self._limit = position if self._limit is None else min(self._limit, position)
        self._wake()

    def end(self, ending: Ending) -> None:
        """Say how it ended. A later ending, which cuts a finished reply back, replaces the first; never the reverse."""
        if ending.supersedes(self.ending):
            self.ending = ending
            self._limit = ending.position
            self._wake()

    def read(self, cursor: int, max_length: int) -> Delta | None:
        """The text after `cursor` up to the end of its part's run, at most `max_length` long; None at the end."""
        end = min(self.position, cursor + max_length)
        if cursor >= end:
            return None
        first = last = bisect_right(self._starts, cursor) - 1
        part = self._parts[first]
        while last < len(self._parts) and self._starts[last] < end and self._parts[last] is part:
            last += 1
        text = "".join(self._texts[first:last])
        offset = self._starts[first]
        return Delta(part, cursor, text[cursor - offset : end - offset])

    def runs(self, start: int = 0, end: int | None = None) -> list[Run]:
        """The text from `start` to `end` (default: what may be shown) as runs of one part each."""
        end = self.position if end is None else min(end, self._length)
        return merge_runs(
            (part, text[max(0, start - at) : max(0, end - at)])
            for part, text, at in zip(self._parts, self._texts, self._starts, strict=True)
        )

    def add_reader(self, wake: Callable[[], None]) -> None:
        """Call `wake` at every change; it must be quick and must not raise."""
        self._readers.add(wake)

    def discard_reader(self, wake: Callable[[], None]) -> None:
        self._readers.discard(wake)

    def _wake(self) -> None:
        for wake in self._readers:
            wake()


def merge_runs(pieces: Iterable[Run]) -> list[Run]:
    """Join neighbouring texts of the same part; empty texts vanish."""
    grouped: list[tuple[Part, list[str]]] = []
    for part, text in pieces:
        if not text:
            continue
        if grouped and grouped[-1][0] is part:
            grouped[-1][1].append(text)
        else:
            grouped.append((part, [text]))
    return [(part, "".join(texts)) for part, texts in grouped]


def cut_runs(runs: Sequence[Run], position: int) -> list[Run]:
    """The runs up to `position`."""
    cut: list[Run] = []
    for part, text in runs:
        if position <= 0:
            break
        cut.append((part, text[:position]))
        position -= len(text)
    return cut


def text_of(runs: Iterable[Run], part: Part) -> str:
    """All the text of one part."""
    return "".join(text for run_part, text in runs if run_part is part)
