"""How a growing reply gets onto the screen: block by block, and what stands is left alone."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from playwright.sync_api import expect

from chat.markdown import BlockRenderer, Patch
from chat.markdown.patch import difference
from chat.tests.page.conftest import Model
from chat.tests.page.screen import Screen
from chat.tests.test_markdown import HOSTILE
from chat.tests.test_markdown_growing import EXAMPLES
from chat.tests.test_markdown_long import LATE, LONG

Step = dict[str, Any]

MARKDOWN = """# A <title> & more

Words with `a < b && c`, **"강조"**는 and [a link](https://example.com/?a=1&b=2) 🌊 to "it".

- one *two*
  - three & four

    five
- [x] six

```html
<p class="x">1 &amp; 2</p>

  indented
```

| a | b < c |
|---|--:|
| 1 | `2` & 3 |

> quoted
> on & on
"""
WITH_MODULES = """
  const load = (name) => import(document.querySelector(`link[href*="js/${name}."]`).href);
  const [{ BlockList }, { setHtml }] = [await load("blocks"), await load("html")];
  const { decorate } = await load("clipboard");
  const part = document.createElement("div");
  const list = new BlockList(part, () => {});
"""
# Returns the steps after which the page is not the one that the same HTML gives when it is written at once.
PAINT = f"""async (steps) => {{ {WITH_MODULES}
  const [whole, pages] = [document.createElement("div"), []];
  return steps.filter(({{ patches, blocks }}) => {{
    for (const [index, keep, tail] of patches) pages[index] = (pages[index] ?? "").slice(0, keep) + tail;
    pages.length = Math.min(pages.length, blocks);
    list.apply(patches);
    list.truncate(blocks);
    list.paint();
    setHtml(whole, pages.map((page) => `<div class="block">${{page}}</div>`).join(""));
    decorate(whole);
    const shown = [...part.querySelectorAll(".block")];
    return shown.length !== pages.length || !shown.every((block, at) => block.isEqualNode(whole.children[at]));
  }});
}}"""
# Returns how much text is in the nodes that come with each of the patches after the first ones.
WEIGH = f"""async ([first, ...later]) => {{ {WITH_MODULES}
  list.apply(first);
  list.paint();
  const observer = new MutationObserver(() => {{}});
  observer.observe(part, {{ childList: true, subtree: true }});
  return later.map((patches) => {{
    list.apply(patches);
    list.paint();
    const nodes = observer.takeRecords().flatMap(({{ addedNodes }}) => [...addedNodes]);
    return nodes.map(({{ textContent }}) => textContent).join("").length;
  }});
}}"""

# Pages of one block whose common beginning ends in the midst of something.
CHANGES = {
    "a character": ("<p>1 &lt; 2</p>\n", "<p>1 &amp; 2</p>\n"),
    "a tag": ("<p>a <strong>b</strong> c</p>\n", "<p>a <span>b</span></p>\n"),
    "an attribute": ('<p><a href="http://a.e" title="&lt;&gt;">b</a></p>', '<p><a href="http://a.f">b</a></p>'),
    "a text too long for one node": (f"<p>{'long ' * 14_000}<em>b</em></p>", "<p>long <em>b</em></p>"),
    "a bar with its button": (
        '<div class="code-bar"><span>p</span></div>',
        '<div class="code-bar"><span>py</span></div>',
    ),
    "nothing": ("<p>a</p>\n", "<p>a</p>\n<p>b<br>\nc</p>\n<hr>\n"),
    "everything": ("<p>a</p>\n", "text &quot;&nbsp;"),
}


def steps(text: str, seed: int) -> list[Step]:
    """The text in pieces of any length, some of them painted together, and an end that cuts it."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    renderer, made, waiting, end = BlockRenderer(), list[Step](), list[Patch](), 0
    while end < len(text):
        start, end = end, end + chance.choice([1, 2, 3, 8, 40])
        waiting += renderer.feed(text[start:end])
        if chance.random() < 0.8:
            made.append({"patches": waiting, "blocks": len(text)})
            waiting = []
    patches, blocks = renderer.finish(text[: chance.randint(len(text) // 2, len(text))])
    return [*made, {"patches": waiting + patches, "blocks": blocks}]


def test_a_page_that_has_grown_is_the_one_that_is_written_at_once(alice: Screen) -> None:
    for number, text in enumerate([MARKDOWN] * 3 + EXAMPLES + HOSTILE + list(LATE.values())):
        assert alice.page.evaluate(PAINT, steps(text, number)) == [], text


def test_a_change_may_begin_in_the_midst_of_anything(alice: Screen) -> None:
    for place, pages in CHANGES.items():
        patches = [difference(0, one, other, is_closed=False) for one, other in itertools.pairwise(["", *pages])]
        assert alice.page.evaluate(PAINT, [{"patches": [patch], "blocks": 1} for patch in patches]) == [], place


def test_little_is_written_anew_in_a_long_block(alice: Screen) -> None:
    for kind, (begin, line) in LONG.items():
        renderer = BlockRenderer()
        pieces = [begin + line * 300, *[line[:9], line[9:], line[:5], line[5:]] * 3]
        written = alice.page.evaluate(WEIGH, [renderer.feed(piece) for piece in pieces])
        assert max(written) < 2 * len(line), kind


def test_what_a_reader_has_selected_stays_selected_while_its_paragraph_grows(alice: Screen, model: Model) -> None:
    model.says("Some words", " to keep", None, " and more of them.")
    alice.ask()
    expect(alice.content).to_have_text("Some words to keep")
    alice.content.locator("p").evaluate("p => getSelection().setBaseAndExtent(p.firstChild, 5, p.firstChild, 10)")
    model.go()
    expect(alice.content).to_have_text("Some words to keep and more of them.")
    assert alice.page.evaluate("getSelection().toString()") == "words"


@pytest.mark.parametrize(
    ("begin", "more", "selected"),
    [
        ("- Some words\n- and", " more\n- **of** them\n", "li"),
        ("| Some words |\n|---|\n| and |\n", "| more |\n| **of** them |\n", "th"),
        ("```\nSome words\n", "and more\n```\n\nNext\n", "code"),
    ],
    ids=["list", "table", "code"],
)
def test_what_a_reader_has_selected_stays_selected_while_its_block_gets_more_lines(
    alice: Screen, model: Model, begin: str, more: str, selected: str
) -> None:
    model.says(begin, None, more)
    alice.ask()
    place = alice.content.locator(selected).first
    expect(place).to_contain_text("Some words")
    place.evaluate("place => getSelection().setBaseAndExtent(place.firstChild, 5, place.firstChild, 10)")
    model.go()
    alice.expect_status("completed")
    assert alice.page.evaluate("getSelection().toString()") == "words"


def test_after_a_reload_in_mid_reply_a_selection_stays_too(alice: Screen, model: Model) -> None:
    model.says("- Some words\n- **and", None, " more**\n- of them\n")
    alice.ask()
    expect(alice.content).to_contain_text("and")
    alice.page.reload()
    expect(alice.content).to_contain_text("and")
    place = alice.content.locator("li").first
    place.evaluate("place => getSelection().setBaseAndExtent(place.firstChild, 5, place.firstChild, 10)")
    alice.expect_button("stop")
    model.go()
    alice.expect_status("completed")
    expect(alice.content.locator("li")).to_have_text(["Some words", "and more", "of them"])
    assert alice.page.evaluate("getSelection().toString()") == "words"


def test_a_button_keeps_the_focus_while_the_list_around_it_grows(alice: Screen, model: Model) -> None:
    model.says("- one\n\n  ```py\n  x\n  ```\n\n- two", None, "\n\n- three\n")
    alice.ask()
    expect(alice.content).to_contain_text("two")
    alice.content.get_by_role("button", name="Copy").focus()
    model.go()
    alice.expect_status("completed")
    expect(alice.content).to_contain_text("three")
    expect(alice.content.get_by_role("button", name="Copy")).to_be_focused()
