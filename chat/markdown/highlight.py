"""Code blocks in the parser's HTML: their header bar and their colours."""

import functools
import html
import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

# Colours cost about 3 µs a character. While a reply streams only short blocks get them at once; the rest when it ends.
LIVE_COLOUR_CHARACTERS = 2_000
COLOUR_CHARACTERS = 20_000

# A closed list: an unknown name makes Pygments search every installed plug-in, and a model can make up names for ever.
_NAMES = """
ada apache awk bash basic bat batch c c# c++ clojure cmake cobol coffeescript console cpp cs csharp css dart diff
django docker dockerfile elixir elm erlang f# fortran fsharp gherkin go golang graphql groovy haskell hcl html http
ini java javascript jinja js json json5 jsonc jsx julia kotlin latex less lisp lua make makefile markdown matlab md
nginx nim nix objective-c objectivec ocaml octave pascal perl php powershell prolog properties proto protobuf ps1
py pycon python python3 r racket rb rs ruby rust sass scala scheme scss sh shell solidity sql svelte svg swift
systemd tcl terraform tex toml ts tsx typescript vb.net vim vue wasm xml yaml yml zig zsh
"""
LANGUAGES = frozenset(_NAMES.split())
_ALIASES = {"svelte": "html", "svg": "xml", "jsonc": "json5", "ps1": "powershell", "wasm": "wast"}
_CODE_BLOCK = re.compile(r'<pre><code(?: class="language-([^"]*)")?>(.*?)</code></pre>', re.DOTALL)
_FORMATTER = HtmlFormatter(nowrap=True)


def dress_code(page: str, *, colour_characters: int) -> str:
    """Give each code block of `page` its header bar, and its colours if it is at most `colour_characters` long."""
    return _CODE_BLOCK.sub(lambda match: _dress(match[1] or "", match[2], colour_characters), page)


def _dress(language: str, code: str, colour_characters: int) -> str:
    """`language` and `code` come from the parser's output, so they are escaped already."""
    if colour_characters and language.lower() in LANGUAGES:
        code = _colour(language.lower(), code, colour_characters)
    name = f' class="language-{language}"' if language else ""
    return (
        f'<div class="code"><div class="code-bar"><span class="code-language">{language}</span></div>'
        f"<pre><code{name}>{code}</code></pre></div>"
    )


def _colour(language: str, code: str, characters: int) -> str:
    plain = html.unescape(code)
    return highlight(plain, _lexer(language), _FORMATTER) if len(plain) <= characters else code


@functools.lru_cache(maxsize=len(LANGUAGES))
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(_ALIASES.get(language, language), stripnl=False, ensurenl=False)
