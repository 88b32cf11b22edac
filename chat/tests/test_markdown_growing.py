"""Markdown that grows shows what a reload would show, and ends as what is saved."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.markdown import BlockRenderer, Patch, render, render_partial
from chat.markdown.blocks import split
from chat.markdown.healing import heal
from chat.tests.test_markdown import HOSTILE, assert_inert

# In the manner of the CommonMark examples: what begins like one thing and ends as another.
EXAMPLES = [
    "Foo\nbar\n===\n\nbaz\n---\n",
    "- foo\n***\n- bar\n",
    "* a\n\n  b\n\n      code\n\nend\n",
    "1.  A paragraph\n    with two lines.\n\n        indented code\n\n    > A quote.\n\nnext",
    "> # Foo\n> bar\n> baz\nlazy\n\n> new\n",
    "> ```\n> a\n\nb\n",
    "```\n<\n >\n```\n~~~ js x\n\n```\n~~~\nafter",
    "````\naaa\n```\n``````\n",
    "- one\n\n two\n",
    "- a\n- b\n\n\n- c\n+ d\n1. e\n2) f\n",
    "   - a\n    - b\n     - c\n- d\n",
    "10) foo\n   - bar\n",
    "*foo*bar **baz** ***x*** __y__ `a ``b` ``c ` d``\n",
    "* * *\n_____\n-\n - -\n",
    "# a\n## b ##\n#c\nd\n",
    "    a\n\n      b\n    c\n\nd\n",
    "| a | b |\n| - | :-: |\n| 1 | `|` |\n> bar\n\n| no table |\nx\n",
    "foo\na | b\n--|--\n1 | 2\n\nafter\n",
    "<div>\n*hello*\n\n*world*\n</div>\n\n<!-- a\n\nb -->\nc\n",
    "[foo][bar]\n\nx [foo]\n\n- [a](http://a.example/(x)) and <http://b.example>\n",
    "line  \nbreak\\\nbreak\r\nwindows\r\n\r\nnext\rold\n",
    "- [ ] open\n- [x] done **bold\n  over lines**\n",
    '그는 **"강조"**는 말을 **강조(emphasis)**은 했다.\n\n1. **첫째**: `코드`를\n2. 둘째 😀**셋**\n',
    "Here 😀 is\n\n```python\nprint('😀')\n```\n\n**Note:** done",
    "2 * 3 * 4 and a*b*c and 2**3 ~~gone~~ ~x~\n",
    "\n\n\nlate start\n\n\n\n42\n",
]
MARKS = "- ¦* ¦1. ¦> ¦# ¦```¦```py\n¦~~~¦`¦**¦*¦~~¦[x]¦[x]: http://e\n¦](¦http://a.example¦)¦![¦<div>¦---\n¦=¦- [ ] "
TABLE = "¦|¦| a | b |\n¦|--|--|\n"
WORDS = '¦a¦word ¦가¦**"강조"**는¦😀¦\\¦&amp;¦\n¦\n\n¦\r\n¦\r¦    ¦\t¦\u2028¦\x00'
PIECES = st.sampled_from((MARKS + TABLE + WORDS).split("¦"))
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=30).map("".join)


class Screen:
    """What the browser does with patches: it slices UTF-16."""

    def __init__(self, blocks: Sequence[str] = ()) -> None:
        self.blocks = list(blocks)

    def apply(self, patches: list[Patch]) -> None:
        for index, keep, tail, _ in patches:
            assert index <= len(self.blocks)
            if index == len(self.blocks):
                self.blocks.append("")
            kept = self.blocks[index].encode("utf-16-le")[: 2 * keep].decode("utf-16-le")
            self.blocks[index] = kept + tail

    def finish(self, renderer: BlockRenderer, text: str) -> None:
        patches, count = renderer.finish(text)
        self.apply(patches)
        del self.blocks[count:]


def grow(text: str, size: int) -> tuple[BlockRenderer, Screen]:
    renderer, screen = BlockRenderer(), Screen()
    for start in range(0, len(text), size):
        screen.apply(renderer.feed(text[start : start + size]))
    return renderer, screen


@pytest.mark.parametrize("text", EXAMPLES)
@pytest.mark.parametrize("size", [1, 2, 5, 13])
def test_at_every_moment_the_screen_shows_what_a_reload_would_show(text: str, size: int) -> None:
    renderer, screen = BlockRenderer(), Screen()
    for start in range(0, len(text), size):
        screen.apply(renderer.feed(text[start : start + size]))
        assert [block for block in screen.blocks if block] == render_partial(text[: start + size])


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_closed_block_never_changes_again(text: str) -> None:
    renderer, closed = BlockRenderer(), set()
    for character in text:
        for patch in renderer.feed(character):
            assert patch.block not in closed
            closed |= {patch.block} if patch.is_closed else set()
    patches, _ = renderer.finish(text)
    assert not [patch for patch in patches if patch.block in closed]


@given(text=TEXTS, size=st.integers(1, 9), cut=st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_after_the_end_the_screen_shows_the_saved_text_wherever_it_was_cut(text: str, size: int, cut: int) -> None:
    renderer, screen = grow(text, size)
    screen.finish(renderer, text[:cut])
    assert screen.blocks == render(text[:cut])
    screen.finish(renderer, text)
    assert screen.blocks == render(text)


@given(text=TEXTS, size=st.integers(1, 9), reloaded_at=st.integers(0, 200), cut=st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_a_page_reloaded_in_mid_reply_goes_on_from_what_it_shows(
    text: str, size: int, reloaded_at: int, cut: int
) -> None:
    screen, renderer = Screen(render_partial(text[:reloaded_at])), BlockRenderer(text[:reloaded_at])
    rest = text[reloaded_at:]
    for start in range(0, len(rest), size):
        screen.apply(renderer.feed(rest[start : start + size]))
    screen.finish(renderer, text[:cut])
    assert screen.blocks == render(text[:cut])


@given(text=TEXTS)
@settings(max_examples=300, deadline=None)
def test_splitting_drops_no_character(text: str) -> None:
    assert "".join(split(text)) == text or not text.strip()


@pytest.mark.parametrize("payload", HOSTILE)
def test_nothing_in_a_growing_reply_can_act(payload: str) -> None:
    renderer, screen = BlockRenderer(), Screen()
    for character in f"- a **b\n\n{payload}\n\nx":
        screen.apply(renderer.feed(character))
        assert_inert("".join(screen.blocks))


@pytest.mark.parametrize(
    ("growing", "shown"),
    [
        ("text\n-", "<p>text</p>\n"),
        ("some **bol", "<p>some <strong>bol</strong></p>\n"),
        ("some **", "<p>some</p>\n"),
        ("**bold*", "<p><strong>bold</strong></p>\n"),
        ("an *it", "<p>an <em>it</em></p>\n"),
        ("a ~~gone", "<p>a <del>gone</del></p>\n"),
        ("a `co", "<p>a <code>co</code></p>\n"),
        ("a `", "<p>a</p>\n"),
        ("a [link](http://exa", "<p>a link</p>\n"),
        ("a [lin", "<p>a lin</p>\n"),
        ("2 * 3", "<p>2 * 3</p>\n"),
        ("2**3", "<p>2**3</p>\n"),
        ("intro\n\n| a | b |\n|--", "<p>intro</p>\n"),
        ("- [", ""),
        ("```pyth", ""),
        ("see\n\n[x]: http://exa", "<p>see</p>\n"),
        ("가**나", "<p>가<strong>나</strong></p>\n"),
    ],
)
def test_a_half_mark_does_not_flash(growing: str, shown: str) -> None:
    assert "".join(render_partial(growing)) == shown


@pytest.mark.parametrize("begin", ["", "a\n", "| a |\n|", "- ", "> "])
@pytest.mark.parametrize("mark", [" ", "\t", "-", "- ", "> ", "| ", ": ", "`", "*", "[", "[x](", "1. "])
def test_a_long_line_of_marks_costs_little(begin: str, mark: str) -> None:
    """Seen: 3,000 spaces before a word kept the event loop busy for 20 s at every delta."""
    began_at = time.process_time()
    heal(begin + mark * 3_000 + "x")
    assert time.process_time() - began_at < 1


def test_a_half_fence_is_code_with_its_bar_from_the_first_frame() -> None:
    (page,) = render_partial("```py\nx = **1")
    assert page.startswith('<div class="code"><div class="code-bar"><span class="code-language">py</span></div>')
    assert "x = **1" in page


def test_code_gets_its_colours_when_the_fence_closes_and_prose_follows() -> None:
    renderer, screen = BlockRenderer(), Screen()
    screen.apply(renderer.feed("```py\nx = 1\n"))
    assert '<span class="n">' not in screen.blocks[0]
    screen.apply(renderer.feed("```\n\nN"))
    assert '<span class="n">' in screen.blocks[0]


def test_long_code_gets_its_colours_only_at_the_end() -> None:
    text = "```py\n" + "x = 1\n" * 500 + "```\n\nNext\n"
    renderer, screen = grow(text, 100)
    assert '<span class="n">' not in screen.blocks[0]
    screen.finish(renderer, text)
    assert '<span class="n">' in screen.blocks[0]


@pytest.mark.parametrize(
    "text", ["```html\n" + "<b>\n" * 400 + "```\n\nNext\n", "- ```py\n" + "\tx=1\n" * 380 + "  ```\n\nNext\n"]
)
def test_code_that_gets_longer_on_the_page_gets_its_colours_at_the_latest_at_the_end(text: str) -> None:
    renderer, screen = grow(text, 100)
    screen.finish(renderer, text)
    assert '<span class="' in screen.blocks[0].replace('<span class="code-language">', "")
    assert screen.blocks == render(text)


def test_a_link_defined_late_is_set_at_the_end() -> None:
    text = "See [x].\n\nMore.\n\n[x]: http://a.example\n"
    renderer, screen = grow(text, 3)
    assert "href" not in screen.blocks[0]
    screen.finish(renderer, text)
    assert 'href="http://a.example"' in screen.blocks[0]


def test_a_patch_counts_utf_16_as_the_browser_does() -> None:
    renderer = BlockRenderer("😀 a")
    assert renderer.feed("b") == [(0, len("<p>😀 a".encode("utf-16-le")) // 2, "b</p>\n", False)]


def test_an_open_block_grows_by_little_patches() -> None:
    renderer, _ = grow("word " * 500, 5)
    (patch,) = renderer.feed("word ")
    assert len(patch.tail) < 20


def test_a_text_of_nothing_has_no_blocks() -> None:
    assert render("") == render(" \n\n\t\n") == render_partial("\n") == []
    assert BlockRenderer().finish("") == ([], 0)
