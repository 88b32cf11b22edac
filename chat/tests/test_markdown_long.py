"""One long list, table or piece of code grows late at the cost of early, and looks as if it were rendered whole."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.markdown import BlockRenderer, render, render_partial
from chat.tests.test_markdown_growing import Screen

# Lines that begin such a block, go on with it (the plainest first), and may end it; ¦ is between them.
BEGINNINGS = {
    "code": "```py\n¦~~~\n¦  ````\n¦\n\n```\n¦```\n\n¦intro\n\n```py\n¦[x]: http://e.e\n\n```\n",
    "list": "- a **b** `c`\n¦* a\n¦1. one\n¦3) three\n¦\n- x\n¦- [ ] task\n¦- a\n\n¦1. a\n\n   b\n\n"
    "¦- [x] y\n- [x]\n¦-\n¦- # h\n¦intro:\n- a\n¦[x]: http://e.e\n\n- [x]\n",
    "table": "| a | b |\n|---|:-:|\n¦|a|\n|-|\n¦\n| a | `|` |\n| - | - |\n¦a | b\n--|--\n¦| no | table |\n|-|\n",
}
MIDDLES = {
    "code": 'x = 1\n¦\n¦    y = **2**\n¦< & > "q"\n¦가 😀\n¦> ```\n¦``\n¦- a\n¦| a |\n¦a[b]: c\n¦\t\n'
    "¦~~~\n¦`````\n¦    ```\n¦\u00a0x\n",
    "list": "- x *y* z\n¦- **a**: b\n¦1. x\n¦  - nested\n¦2. y **z\n¦  more\n¦lazy\n¦* x\n¦  ```\n  code\n  ```\n"
    '¦- | a\n¦- [x] t\n¦- [x](http://e.e/a) b\n¦   para\n¦> q\n¦- &amp; 😀 가\n¦3) z\n¦4) **"강조"**는\n'
    "¦- \n¦-\n¦- a ~~b\n¦* * *\n¦- \ue000\n",
    "table": "| 1 | 2 |\n¦|x|\n¦| `a|b` | **c** |\n¦| a | [x](http://e.e) |\n¦no pipe\n¦|\n¦| < | & 😀 |\n"
    "¦ | in | dented |\n¦| a \\| b | c | d |\n",
}
ENDS = "\n¦\n\n¦> q\n¦# h\n¦```\n¦---\n¦<div>\n¦[x]: http://f.f\n¦text\n¦\r\n¦| t |\n|---|\n¦- i\n¦    indented\n¦***\n"
LONG = {
    "code": ("```py\n", "total = sum(cost for cost in costs if cost > 0)\n"),
    "a tight list": ("", "- water runs down the hill, and *nobody* has to tell it\n"),
    "a loose list": ("", "- water runs down the hill, and *nobody* has to tell it\n\n"),
    "a nested list": ("", "1. **Water** runs down the hill\n   - and *nobody*\n   - has to tell it\n"),
    "a table": ("| a | b |\n|---|--:|\n", "| water runs down the hill | *nobody* has to tell it |\n"),
}
ITEMS = "- some *item* of [x] a list\n" * 40
CODE = "x = 1\n" * 150
# What comes late and has to do with what was long ago.
LATE = {
    "a blank line makes all items loose": f"{ITEMS}\n{ITEMS}",
    "the first item says nothing of it": f"-\n{ITEMS}\n{ITEMS}",
    "a definition in an item": f"- a\n{ITEMS}- [x]: http://e.example\n{ITEMS}",
    "marks that healing takes for the end of code": f"```py\n{CODE}> ```\n{CODE}{CODE}x = **2",
    "the end of code": f"```py\n{CODE}```\n\n\n\n{CODE}",
    "code in an item that the next item ends": f"{ITEMS}- ```\n  a\n{ITEMS}{ITEMS}- **b",
    "a row that is none": f"{ITEMS}- a\n  | b\n{ITEMS}{ITEMS}  | c | d",
    "rows that are none": "| a |\n|-|-|\n" + "| some *row* |\n" * 80 + "| a** b |\n",
    "lines without end": "\r\n".join(["- an item"] * 200),
}


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """One beginning, a hundred lines of a few kinds that go on with it, and now and then what may end it."""
    kind = draw(st.sampled_from(sorted(BEGINNINGS)))
    few = draw(st.integers(1, 20))
    lines = st.lists(st.sampled_from(MIDDLES[kind].split("¦")[:few]), min_size=1, max_size=3)
    rare = st.lists(st.sampled_from(ENDS.split("¦")), max_size=2)
    gap = draw(st.sampled_from(["", "", "\n"]))
    text = draw(st.sampled_from(BEGINNINGS[kind].split("¦")))
    for _ in range(draw(st.integers(1, 3))):
        text += gap.join(draw(lines) * draw(st.integers(5, 30))) + "".join(draw(rare))
    return text


@pytest.mark.parametrize("late", LATE)
def test_what_comes_late_changes_what_was_long_ago(late: str) -> None:
    text, renderer, screen = LATE[late], BlockRenderer(), Screen()
    for start in range(0, len(text), 5):
        screen.apply(renderer.feed(text[start : start + 5]))
        if start % 20 == 0 or start + 5 >= len(text):
            assert [block for block in screen.blocks if block] == render_partial(text[: start + 5])


@given(text=long_texts(), sizes=st.lists(st.sampled_from([1, 4, 20, 90]), min_size=1, max_size=9), cut=st.integers(0))
@settings(max_examples=150, deadline=None)
def test_a_long_block_shows_at_every_moment_what_a_reload_would_show(text: str, sizes: list[int], cut: int) -> None:
    renderer, screen, end, steps = BlockRenderer(), Screen(), 0, 0
    while end < len(text):
        start, end, steps = end, end + sizes[steps % len(sizes)], steps + 1
        screen.apply(renderer.feed(text[start:end]))
        if steps % 10 == 0 or end >= len(text):
            assert [block for block in screen.blocks if block] == render_partial(text[:end])
    screen.finish(renderer, text[: cut % (len(text) + 1)])
    assert screen.blocks == render(text[: cut % (len(text) + 1)])


@pytest.mark.parametrize("kind", LONG)
def test_a_delta_costs_late_in_a_long_block_what_it_costs_early(kind: str) -> None:
    """Looked at whole, a list of 100 kB costs a hundred times what one of 1 kB costs."""
    begin, line = LONG[kind]
    renderer = BlockRenderer(begin + line * 20)
    early = min(seconds(renderer, line) for _ in range(20))
    renderer.feed(line * 2_000)
    late = min(seconds(renderer, line) for _ in range(20))
    assert late < 10 * early


def seconds(renderer: BlockRenderer, line: str) -> float:
    """What it takes to feed some more lines, in pieces."""
    text = line * 5
    began_at = time.process_time()
    for start in range(0, len(text), 10):
        renderer.feed(text[start : start + 10])
    return time.process_time() - began_at
