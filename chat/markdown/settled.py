"""What stands in the middle of a long open block and changes no more, whatever follows.

A line of code, a row of a table and an item of a list render alike with and without those around them, so whole ones
between the first and the last can be left out. Exceptions are looked for here; `chat.markdown.open_block` asks, and
compares the pages besides.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from chat.markdown.healing import has_open_fence

_BLANK_LINES = r"(?:[ \t]*+\n)*+"
_CODE = re.compile(_BLANK_LINES + r" {0,3}(?:`{3,}[^`\n]*|~{3,}[^\n]*)\n[^\n]*\n")
_TABLE = re.compile(_BLANK_LINES + r"\|[^\n]*\n(?=[^\n]*-)[ \t:|-]++\n\|[^\n]*\n")
_LIST = re.compile(_BLANK_LINES + r"(?:([-*+])|\d{1,9}([.)]))[ \t]")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_ROW = re.compile(r"^\|", re.MULTILINE)
# Whatever ends code, or what healing takes for its end.
_FENCE_END = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[ \t>]*$", re.MULTILINE)

# Stands for whatever follows the beginning.
_ANYTHING = "\ue000"
_CODE_HEAD = re.compile(r'<div class="code">.*\n', re.DOTALL)
_TABLE_HEAD = re.compile(r'<div class="table"><table>\n.*</tr>\n', re.DOTALL)
# A blank line between two items changes all of them; here the first one tells whether there was one.
_LIST_HEAD = re.compile(r"<(?:ul|ol[^>]*)>\n<li>(?:\n<p>|[^\n<]|<(?!/li>)).*</li>\n", re.DOTALL)


class Middle(NamedTuple):
    """`source[start:end]` can be left out."""

    start: int
    end: int
    probe: str
    """A line, item or row that can stand in its place."""
    head: re.Pattern[str]
    """Matches the HTML of what comes before it, up to the probe's."""


def find_middle(source: str) -> Middle | None:
    """The settled middle of an open block, if it is one list, one table or one piece of code, and has one."""
    if "\r" in source or _ANYTHING in source or can_change_what_precedes(source):
        return None
    middle = _middle_of_code(source) or _middle_of_table(source) or _middle_of_list(source)
    return middle if middle and middle.start < middle.end else None


def can_change_what_precedes(source: str) -> bool:
    """Whether there may be a definition of a link in it, which holds for the whole block."""
    return "]:" in source and not _CODE.match(source)


def _middle_of_code(source: str) -> Middle | None:
    begin = _CODE.match(source)
    if not begin:
        return None
    end = source.rfind("\n", 0, source.rfind("\n")) + 1
    is_over = _FENCE_END.search(source[begin.end() : end])
    return None if is_over else Middle(begin.end(), end, _ANYTHING, _CODE_HEAD)


def _middle_of_table(source: str) -> Middle | None:
    begin = _TABLE.match(source)
    rows = _complete(source, _ROW.finditer(source, begin.end())) if begin else []
    if not begin or not rows or has_open_fence(source[begin.end() : rows[-1]]):
        return None
    return Middle(begin.end(), rows[-1], f"|{_ANYTHING}", _TABLE_HEAD)


def _middle_of_list(source: str) -> Middle | None:
    begin = _LIST.match(source)
    if not begin:
        return None
    marker = re.escape(begin[1]) if begin[1] else r"\d{1,9}" + re.escape(begin[2])
    items = _complete(source, re.finditer(rf"^{marker}[ \t]", source, re.MULTILINE))
    blank = _BLANK_LINE.search(source, items[0]) if items else None
    later = [item for item in items[1:] if not blank or item > blank.start()]
    if not later or not _is_plain(source[: later[0]]) or not _is_plain(source[later[0] : later[-1]]):
        return None
    return Middle(later[0], later[-1], f"{begin[1] or 1}{begin[2] or ''} {_ANYTHING}", _LIST_HEAD)


def _complete(source: str, starts: Iterable[re.Match[str]]) -> list[int]:
    """Where those begin that begin in a line that has ended."""
    end = source.rfind("\n")
    return [start.start() for start in starts if start.start() < end]


def _is_plain(source: str) -> bool:
    """Whether healing looks back at nothing in it."""
    return not has_open_fence(source) and not any(line.lstrip().startswith("|") for line in source.split("\n"))
