"""How a growing reply gets onto the screen: block by block, and what stands is left alone."""

from __future__ import annotations

from playwright.sync_api import expect

from chat.markdown import BlockRenderer, Patch
from chat.tests.page.conftest import Model
from chat.tests.page.screen import Screen

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
# Returns what differs after any step from the same HTML written at once.
PAINT = """async (steps) => {
  const load = (name) => import(document.querySelector(`link[href*="js/${name}."]`).href);
  const [{ BlockList }, { setHtml }] = [await load("blocks"), await load("html")];
  const { decorate } = await load("clipboard");
  const [part, whole, pages] = [document.createElement("div"), document.createElement("div"), []];
  const list = new BlockList(part, () => {});
  return steps.filter((patches) => {
    for (const [index, keep, tail] of patches) pages[index] = (pages[index] ?? "").slice(0, keep) + tail;
    list.apply(patches);
    list.paint();
    setHtml(whole, pages.map((page) => `<div class="block">${page}</div>`).join(""));
    decorate(whole);
    const shown = Array.from(part.querySelectorAll(".block"), (block) => block.outerHTML).join("");
    return shown !== whole.innerHTML;
  });
}"""


def steps(size: int) -> list[list[Patch]]:
    renderer = BlockRenderer()
    return [renderer.feed(MARKDOWN[start : start + size]) for start in range(0, len(MARKDOWN), size)]


def test_text_that_is_added_gives_the_same_page_as_all_of_it_written_anew(alice: Screen) -> None:
    for size in (1, 3, 8):
        assert alice.page.evaluate(PAINT, steps(size)) == []


def test_what_a_reader_has_selected_stays_selected_while_its_paragraph_grows(alice: Screen, model: Model) -> None:
    model.says("Some words", " to keep", None, " and more of them.")
    alice.ask()
    expect(alice.content).to_have_text("Some words to keep")
    alice.content.locator("p").evaluate("p => getSelection().setBaseAndExtent(p.firstChild, 5, p.firstChild, 10)")
    model.go()
    expect(alice.content).to_have_text("Some words to keep and more of them.")
    assert alice.page.evaluate("getSelection().toString()") == "words"
