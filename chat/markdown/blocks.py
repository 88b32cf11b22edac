"""Split Markdown into top-level blocks and render each as sanitized HTML.

The only module that knows the parser (comrak) and the sanitizer (nh3).
"""

import html
import itertools
import re

import comrak
import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from chat.markdown.highlight import COLOUR_CHARACTERS, dress_code

_EXTENSIONS = comrak.ExtensionOptions(
    table=True,
    strikethrough=True,
    tasklist=True,
    autolink=True,
    # Without it `**"강조"**는`, everyday Korean, keeps its asterisks.
    cjk_friendly_emphasis=True,
)
# Raw HTML is shown as text: it must neither act nor vanish.
_OPTIONS = comrak.RenderOptions(escape=True)
_OPTIONS_WITH_LINES = comrak.RenderOptions(escape=True, sourcepos=True)

_TAGS = "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul"
_CLEANER = nh3.Cleaner(
    tags=set(_TAGS.split()),
    clean_content_tags=set(),
    attributes={
        "a": {"href", "title"},
        "code": {"class"},
        "ol": {"start"},
        "span": {"class"},
    },
    tag_attribute_values={
        "div": {"class": {"code", "code-bar", "table"}},
        "td": {"align": {"left", "center", "right"}},
        "th": {"align": {"left", "center", "right"}},
    },
    # What scrolls sideways must be reachable by keyboard.
    set_tag_attribute_values={"pre": {"tabindex": "0"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
)

# The parser ends a line at these three and at nothing else; str.splitlines knows seven more.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
# Text can't forge these: a quotation mark in it is escaped.
_SOURCE_LINES = re.compile(r'data-sourcepos="(\d+):\d+-(\d+):\d+"')
_PROSE = re.compile(r"(?:\*\*|`)?[^\W\d_]")
_DEFINITIONS = re.compile(r"(?:\A|\n[ \t]*\n)((?: {0,3}\[[^\[\]\n]+\]:[^\n]+(?:\n|\Z))+)")
_FENCED = re.compile(r" {0,3}(?:```|~~~)")
_DEFINITIONS_CHARACTERS = 10_000
_TASK_BOX = re.compile(r'<input type="checkbox"( checked="")? disabled="" />')
_DEPTH = 100
_NESTING = re.compile(r"<(/)?(?:blockquote|del|em|ol|strong|ul)\b")
_IMAGE = re.compile(r'<img src="([^"]*)" alt="([^"]*)"(?: title="[^"]*")? />')


def render(text: str) -> list[SafeString]:
    """The sanitized HTML of a finished text, one string per top-level block."""
    sources = split(text)
    definitions = link_definitions(sources)
    return [render_block(source, definitions) for source in sources]


def split(text: str) -> list[str]:
    """The source of each top-level block. Joined they are `text`; appending to `text` changes only the last one.

    What shows nothing of its own (link definitions) or has no line numbers (raw HTML) belongs to the block before it,
    at the start of the text to the one after.
    """
    starts = _first_lines(text)
    if not starts and not text.strip():
        return []
    lines = _LINE.findall(text)
    bounds = [0, *(start - 1 for start in starts[1:]), len(lines)]
    return ["".join(lines[first:last]) for first, last in itertools.pairwise(bounds)]


def link_definitions(sources: list[str]) -> str:
    """The `[label]: target` lines of these blocks, followed by a blank line. To be put before each block."""
    found = [
        line
        for source in sources
        if "]:" in source and not _FENCED.match(source)
        for match in _DEFINITIONS.finditer(source)
        for line in match[1].rstrip().split("\n")
        if _shows_nothing(line)
    ]
    return join_definitions("", "\n".join(found))


def join_definitions(known: str, more: str) -> str:
    """Both, bounded in length: every block with a bracket in it pays for them."""
    if not more or len(known) + len(more) > _DEFINITIONS_CHARACTERS:
        return known
    return f"{known.rstrip()}\n{more.rstrip()}\n\n".lstrip("\n")


def render_block(source: str, definitions: str, *, colour_characters: int = COLOUR_CHARACTERS) -> SafeString:
    """Sanitized HTML of one block; code longer than `colour_characters` stays without colours."""
    text = definitions + source if "[" in source else source
    page = comrak.markdown_to_html(text, extension_options=_EXTENSIONS, render_options=_OPTIONS)
    if _is_too_deep(page):
        return format_html("<p>{}</p>", source)
    if "<pre>" in page:
        page = dress_code(page, colour_characters=colour_characters)
    if "<table>" in page:
        page = page.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    if "<input" in page:
        # A box that nobody can tick is not a form's control: it would need a label.
        page = _TASK_BOX.sub(lambda match: f'<span class="task">{"☑" if match[1] else "☐"}</span>', page)
    if "<img" in page:
        page = _IMAGE.sub(_link_to_image, page)
    return mark_safe(_CLEANER.clean(page))  # noqa: S308 - sanitized


def decided_end(text: str) -> int:
    """Up to where the blocks of a growing `text` can be told: the end of its last complete line, or of the first word
    of the next one where that is plainly prose. Other half lines lie: `*` looks like a list, then becomes `*this*`.
    """
    # A return at the very end may yet become return and line feed.
    end = len(text) - 1 if text.endswith("\r") else len(text)
    end = max(text.rfind("\n", 0, end), text.rfind("\r", 0, end)) + 1
    prose = _PROSE.match(text, end)
    return prose.end() if prose else end


def _first_lines(text: str) -> list[int]:
    """Line numbers, from 1, at which top-level blocks begin.

    They are read from the HTML, since the parser's tree is made of Python objects in cycles: collecting them took
    pauses of 100 ms.
    """
    page = comrak.markdown_to_html(text, extension_options=_EXTENSIONS, render_options=_OPTIONS_WITH_LINES)
    starts, end = [], 0
    for match in _SOURCE_LINES.finditer(page):
        if int(match[1]) > end:
            starts.append(int(match[1]))
        end = max(end, int(match[2]))
    return starts


def _shows_nothing(line: str) -> bool:
    """Whether it is a definition for the parser too: a footnote's text, say, would be shown in every block."""
    return not comrak.markdown_to_html(line, extension_options=_EXTENSIONS, render_options=_OPTIONS)


def _is_too_deep(page: str) -> bool:
    """20,000 nested quotes keep the sanitizer busy for 1.5 s."""
    depth = 0
    for match in _NESTING.finditer(page):
        depth += -1 if match[1] else 1
        if depth > _DEPTH:
            return True
    return False


def _link_to_image(match: re.Match[str]) -> str:
    """A remote image would tell its server who reads the reply, and could carry text out in its address."""
    address, description = match[1], match[2]
    if not address:
        return f"[{description}]"
    return f'<a href="{address}">[{description or html.escape(html.unescape(address))}]</a>'
