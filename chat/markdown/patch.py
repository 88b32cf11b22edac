"""The difference between two HTML texts, as a browser counts."""

from typing import NamedTuple


class Patch(NamedTuple):
    """Block number `block` becomes the first `keep` UTF-16 code units of its HTML, as a browser counts, and `tail`."""

    block: int
    keep: int
    tail: str
    is_closed: bool


def difference(index: int, shown: str, page: str, *, is_closed: bool) -> Patch:
    """What turns `shown` into `page`."""
    keep = common_length(shown, page)
    return Patch(index, utf16_length(page[:keep]), page[keep:], is_closed)


def utf16_length(text: str) -> int:
    """In code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def common_length(one: str, other: str) -> int:
    """Length of the common beginning, by halving: comparing slices is quicker than comparing characters."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
