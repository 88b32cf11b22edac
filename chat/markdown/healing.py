"""Make the unfinished end of a growing text look finished, so that no raw marks flash while it streams."""

import re

# A last half line that says nothing yet: marks only (it may turn into a heading, a list item, a rule, a table's edge),
# the first line of a fence, a link definition. Possessive (`*+`): what begins with a thousand spaces must not be tried
# in all the ways to share them out.
_UNDECIDED_LINE = re.compile(
    r"""[ \t>]*+
    (?: [-=*_+#~`|:!\ \t]*+
      | \d{1,3}[.)]?
      | (?:[-*+]|\d{1,3}[.)])[ \t]++ \[[ xX]?\]?
      | (?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+ (?:`{3}|~{3})[^`\n]*+
      | \[[^\[\]\n]++\]:[^\n]*+
    )[ \t]*+\Z""",
    re.VERBOSE,
)
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})")
_TABLE_EDGE = re.compile(r"(?=[^-]*-)[ \t:|-]*+\Z")
_ITEM_OR_HEADING = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]|[ \t]*\|")
_HALF_LINK = re.compile(r"!?\[([^\[\]\n]*)(?:\](?:\([^()\n]*)?)?\Z")
_OPEN_MARKS = 4
_MARKS = re.compile(r"\\.|(`+)|(\*{1,3}|~~)", re.DOTALL)


def heal(source: str) -> str:
    """`source` without what says nothing yet, and with what is open closed. `source` is one open block."""
    source = _without_undecided_line(source)
    if has_open_fence(source):
        return source
    source = _without_half_table(source)
    start = _last_run_start(source)
    return source[:start] + _heal_run(source[start:])


def has_open_fence(source: str) -> bool:
    """Whether it ends in code that a row of marks has begun, at the margin, in a list or in a quote."""
    fence = ""
    for line in source.split("\n"):
        if not fence:
            match = _FENCE.match(line)
            fence = match[1] if match else ""
        elif not line.strip(" \t>").strip(fence[0]) and line.count(fence[0]) >= len(fence):
            fence = ""
    return bool(fence)


def _without_undecided_line(source: str) -> str:
    start = source.rfind("\n") + 1
    return source[:start] if _UNDECIDED_LINE.match(source, start) else source


def _without_half_table(source: str) -> str:
    """Hold back the first row of a table until the row of dashes below it has come."""
    lines = source.rstrip("\n").split("\n")
    first = next((i for i, line in enumerate(lines) if line.lstrip().startswith("|")), len(lines))
    if first == len(lines) - 1 or (first == len(lines) - 2 and _half_edge(source, lines[-1])):
        return "".join(line + "\n" for line in lines[:first])
    return source


def _half_edge(source: str, line: str) -> bool:
    return not source.endswith("\n") and bool(_TABLE_EDGE.match(line))


def _last_run_start(source: str) -> int:
    """Where the last run of inline text begins: emphasis reaches over no item, heading, row or blank line."""
    position = source.rstrip("\n").rfind("\n") + 1
    while position:
        previous = source.rfind("\n", 0, position - 1) + 1
        if _ITEM_OR_HEADING.match(source, position) or not source[previous:position].strip():
            break
        position = previous
    return position


def _heal_run(run: str) -> str:
    run = run.rstrip("\n")
    marks, code_start = _open_marks(run)
    if code_start is not None:
        return _heal_code_span(run, code_start) + "".join(reversed(marks))
    half_link = _HALF_LINK.search(run)
    if half_link:
        run = run[: half_link.start()] + half_link[1]
    shown = run.rstrip("*~ \t")
    marks, _ = _open_marks(shown)
    return shown + "".join(reversed(marks))


def _heal_code_span(run: str, start: int) -> str:
    inside = run[start:].lstrip("`")
    ticks = run[start : len(run) - len(inside)]
    inside = inside.rstrip("`")
    return run[:start] + ticks + inside + ticks if inside.strip() else run[:start].rstrip("*~ \t")


def _open_marks(run: str) -> tuple[list[str], int | None]:
    """The emphasis marks still open at the end of `run`, and where a code span begins that is still open."""
    marks: list[str] = []
    code_start, code = None, ""
    for match in _MARKS.finditer(run):
        if match[1] and not code:
            code_start, code = match.start(), match[1]
        elif match[1] == code:
            code_start, code = None, ""
        elif match[2] and not code:
            before = run[match.start() - 1] if match.start() else ""
            _toggle_mark(marks, match[2], before, run[match.end() : match.end() + 1])
    return marks, code_start


def _toggle_mark(marks: list[str], mark: str, before: str, after: str) -> None:
    """`before` and `after` are the characters beside the mark, empty at the edges of the run."""
    if before.strip() and mark in marks:
        del marks[marks.index(mark) :]
    elif len(marks) < _OPEN_MARKS and after.strip() and not (before.isascii() and before.isalnum()):
        marks.append(mark)
