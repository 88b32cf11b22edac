"""A table as the terminal and Markdown both show it, and the figures that go into one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Table:
    """Rows under a title; `notes` are sentences below them."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append([str(cell) for cell in cells])

    def __str__(self) -> str:
        lines = [list(self.columns), *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.columns))]
        lines.insert(1, ["-" * width for width in widths])
        table = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
        return "\n".join([f"## {self.title}", "", *table, *([""] if self.notes else []), *self.notes, ""])


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least so many percent of the values don't exceed; NaN when there are none."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1] if ordered else math.nan


def percentiles_ms(values: Sequence[float]) -> list[str]:
    """50th, 95th and 99th percentile of seconds, as milliseconds."""
    return [f"{percentile(values, percent) * 1000:.1f}" for percent in (50, 95, 99)]


def spread(values: Sequence[float], *, digits: int = 0) -> str:
    """The mean of some rounds, and how far they lie apart."""
    mean = f"{sum(values) / len(values):.{digits}f}"
    return f"{mean} ({min(values):.{digits}f}-{max(values):.{digits}f})" if len(values) > 1 else mean
