"""The last block of a growing text. `chat.markdown.growing` makes patches of it and closes it."""

from chat.markdown.blocks import decided_end, render_block, split
from chat.markdown.healing import heal
from chat.markdown.patch import common_length, utf16_length
from chat.markdown.settled import Middle, can_change_what_precedes, find_middle

LONG_CHARACTERS = 500
"""So much more, and it is worth while to look for what is settled."""


class OpenBlock:
    """The source of a block that grows, and the HTML of it that the viewer shows.

    The settled middle of a long one is put aside; `_source` and `_page` lack it. It is neither parsed nor compared
    again, so what is appended costs as much late as early.
    """

    def __init__(self, source: str = "") -> None:
        self._source = source
        self._page = ""
        self._decided_end = 0
        self._begin = 0
        """Length of the source before the middle."""
        self._head = ""
        """The HTML before the middle."""
        self._middle_sources: list[str] = []
        self._middle_pages: list[str] = []
        self._middle_units = 0
        self._try_at = LONG_CHARACTERS

    @property
    def page(self) -> str:
        """All the HTML of it that the viewer shows."""
        return _insert(self._page, len(self._head), self._middle_pages)

    def append(self, text: str) -> None:
        """Let the source grow. `split` comes next."""
        self._source += text

    def split(self) -> tuple[list[str], str]:
        """The sources of the blocks that are closed now, and what follows them; no sources if it still is one block."""
        end = decided_end(self._source)
        if end <= self._decided_end:
            return [], self._source
        self._decided_end = end
        closed = split(self._source[:end])[:-1]
        rest = self._source[sum(map(len, closed)) :]
        if closed:
            closed[0] = _insert(closed[0], self._begin, self._middle_sources)
        return closed, rest

    def render(self, definitions: str) -> tuple[int, str] | None:
        """How many UTF-16 code units of `page` stay and what follows them; None if nothing changes."""
        page = self._render(definitions)
        if page == self._page:
            return None
        keep = common_length(self._page, page)
        self._page = page
        change = utf16_length(page[:keep]) + self._middle_units, page[keep:]
        if len(self._source) >= self._try_at:
            self._shorten(definitions)
        return change

    def _render(self, definitions: str) -> str:
        page = _render(self._source, definitions)
        if self._begin and (can_change_what_precedes(self._source) or not page.startswith(self._head)):
            self._restore()
            page = _render(self._source, definitions)
        return page

    def _restore(self) -> None:
        """Take back what was put aside."""
        self._page = self.page
        self._source = _insert(self._source, self._begin, self._middle_sources)
        self._decided_end += sum(map(len, self._middle_sources))
        self._middle_sources, self._middle_pages, self._middle_units = [], [], 0
        self._begin, self._head = 0, ""

    def _shorten(self, definitions: str) -> None:
        middle = find_middle(self._source)
        if self._begin and (not middle or middle.start != self._begin):
            self._restore()
            middle = find_middle(self._source)
        if middle:
            self._put_aside(middle, definitions)
        self._try_at = len(self._source) * 5 // 4 + LONG_CHARACTERS

    def _put_aside(self, middle: Middle, definitions: str) -> None:
        """Leave it out if the rest renders to the page without it."""
        begin, end = self._source[: middle.start], self._source[middle.end :]
        page = _render(begin + end, definitions)
        common = common_length(page, _render(begin + middle.probe, definitions))
        head = middle.head.match(page[:common])
        left_out = _left_out(self._page, page, head.end()) if head else ""
        if not head or not left_out:
            return
        self._middle_sources.append(self._source[middle.start : middle.end])
        self._middle_pages.append(left_out)
        self._middle_units += utf16_length(left_out)
        self._begin, self._head = middle.start, head[0]
        self._source, self._page = begin + end, page
        self._decided_end -= middle.end - middle.start


def _left_out(whole: str, page: str, position: int) -> str:
    """What `whole` has at `position` that `page` lacks; nothing if they differ in more than that."""
    length = len(whole) - len(page)
    is_all = whole[:position] == page[:position] and whole[position + length :] == page[position:]
    return whole[position : position + length] if is_all else ""


def _render(source: str, definitions: str) -> str:
    return render_block(heal(source), definitions, colour_characters=0)


def _insert(text: str, position: int, pieces: list[str]) -> str:
    return "".join([text[:position], *pieces, text[position:]])
