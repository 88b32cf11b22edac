"""What finished Markdown becomes, and that nothing in it can act."""

import re

import pytest

from chat.markdown import render

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>*{background:url(http://evil.example)}</style>",
    "<!-- --><script>alert(1)</script><!-- -->",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox)",
    "[x](//evil.example)",
    "![x](javascript:alert(1))",
    '![x](http://evil.example/a.png "onload=alert(1)")',
    '[x](http://a.example/" onmouseover="alert(1)")',
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    '```"><script>alert(1)</script>\ncode\n```',
    "```html\n<script>alert(1)</script>\n```",
    "| <script>alert(1)</script> |\n|---|\n| [x](javascript:alert(1)) |",
    "`<script>alert(1)</script>`",
    '<div class="code-bar" data-action="regenerate"><button form="x">Stop</button></div>',
    "- [x] <input autofocus onfocus=alert(1)>",
]
TAGS = "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul"
ALLOWED_TAGS = set(TAGS.split())
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)([^>]*)>")
ATTRIBUTE = re.compile(r'([a-z-]+)="([^"]*)"')
ALLOWED_ATTRIBUTES = {"align", "class", "href", "rel", "start", "tabindex", "title"}


def assert_inert(page: str) -> None:
    for closing, name, attributes in TAG.findall(page):
        assert name in ALLOWED_TAGS, page
        assert not (closing and attributes.strip()), page
        for attribute, value in ATTRIBUTE.findall(attributes):
            assert attribute in ALLOWED_ATTRIBUTES, page
            assert attribute != "href" or value.startswith(("http://", "https://", "mailto:")), page


@pytest.mark.parametrize("payload", HOSTILE)
def test_nothing_in_a_reply_can_act_at_any_prefix(payload: str) -> None:
    for text in (payload, f"Look:\n\n- a\n\n  {payload}\n", f"> {payload}", f"# {payload}"):
        for end in range(len(text) + 1):
            assert_inert("".join(render(text[:end])))


def test_raw_html_is_shown_as_text_and_does_not_vanish() -> None:
    assert render("<div>hi</div>") == ["&lt;div&gt;hi&lt;/div&gt;\n"]
    assert render("a <b>c</b>") == ["<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"]


def test_an_image_becomes_a_link_since_a_remote_image_tells_who_reads() -> None:
    (page,) = render("![a chart](https://example.com/c.png)")
    assert "<img" not in page
    assert '<a href="https://example.com/c.png" rel="noopener noreferrer nofollow">[a chart]</a>' in page


def test_an_image_without_description_shows_its_address() -> None:
    assert "[https://example.com/c.png]</a>" in render("![](https://example.com/c.png)")[0]


def test_links_do_not_pass_on_where_they_were_clicked() -> None:
    assert 'rel="noopener noreferrer nofollow"' in render("[x](https://example.com)")[0]


@pytest.mark.parametrize(
    ("text", "strong"),
    [('**"강조"**는', '"강조"'), ("**강조(emphasis)**은", "강조(emphasis)"), ("이것은 **굵게**입니다", "굵게")],
)
def test_korean_particles_right_behind_emphasis_leave_no_asterisks(text: str, strong: str) -> None:
    assert f"<strong>{strong}</strong>" in render(text)[0].replace("&quot;", '"')


def test_table_alignment_is_an_attribute_because_style_is_forbidden() -> None:
    (page,) = render("| a | b |\n|:-:|--:|\n| 1 | 2 |\n")
    assert '<th align="center">a</th>' in page
    assert '<td align="right">2</td>' in page
    assert page.startswith('<div class="table"><table>')
    assert "style" not in page


def test_a_code_block_has_a_bar_with_its_language_and_colours() -> None:
    (page,) = render("```python\ndef f(): pass\n```\n")
    assert '<div class="code-bar"><span class="code-language">python</span></div>' in page
    assert '<span class="k">def</span>' in page
    assert '<pre tabindex="0">' in page


@pytest.mark.parametrize("language", ["", "made-up", "c++", "c#", "python title", "Python"])
def test_any_language_name_keeps_the_code_to_the_character(language: str) -> None:
    code = "\n\n  if a < b && c:\n\t'x'  \n\n\n"
    (page,) = render(f"```{language}\n{code}```\n")
    shown = re.sub(r"<[^>]+>", "", re.sub(r"<div class=\"code-bar\">.*?</div>", "", page))
    assert shown.strip("\n") == code.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").strip("\n")


def test_very_long_code_stays_without_colours() -> None:
    (page,) = render("```python\n" + "x = 1\n" * 4_000 + "```\n")
    assert '<span class="' not in page.replace('<span class="code-language">', "")


def test_reference_links_reach_over_blocks_wherever_they_are_defined() -> None:
    first, *_, last = render(
        "See [x].\n\n```\n[y]: http://no.example\n```\n\n- [y]\n\n[x]: http://a.example\n\nAnd [x]."
    )
    assert 'href="http://a.example"' in first
    assert 'href="http://a.example"' in last


@pytest.mark.parametrize("line", ["[^1]: The note.", "[note]: two words", "[a]:", "[x]: <unclosed"])
def test_what_only_looks_like_a_definition_is_shown_once_where_it_stands(line: str) -> None:
    pages = render(f"First [one].\n\n{line}\n\nLast [one] and [x].")
    label = line.partition(":")[0]
    assert [f"{label}:" in page for page in pages] == [False, True, False]


def test_a_task_list_has_boxes_that_nobody_can_tick() -> None:
    (page,) = render("- [x] done\n- [ ] open\n")
    assert '<span class="task">☑</span> done' in page
    assert '<span class="task">☐</span> open' in page


def test_only_line_feeds_and_returns_end_a_line() -> None:
    assert len(render("a\u2028b\x0bc\x85d\n\ne\r\n\r\nf")) == 3


@pytest.mark.timeout(5)
@pytest.mark.parametrize("text", [">" * 20_000, "*a " * 20_000 + "**b" * 20_000, "[" * 50_000, "- " * 20_000])
def test_deep_nesting_does_not_hold_up_the_worker(text: str) -> None:
    render(text)
