"""Section `markdown`: what a delta of `?format=html` costs the server, in short and in long replies."""

from __future__ import annotations

import time

from chat.markdown import BlockRenderer
from testing.bench.table import Table

DELTA_CHARACTERS = 5
SIZES = (2_000, 50_000)
ROUNDS = 3
MIXED = """## What to look at

The first thing is *where* the time goes, and only then **how** to save it; see [the manual](https://example.org/).

- measure before and after
- change one thing at a time, and `note` what it was
- keep what pays

| step | cost |
| --- | --- |
| read | 12 |
| write | 40 |

```python
def total(costs: list[int]) -> int:
    return sum(cost for cost in costs if cost > 0)
```

"""
ONE_CODE_BLOCK = "```python\n" + "total = sum(cost for cost in costs if cost > 0)\n" * 1_100
ONE_LIST = "- water runs down the hill, and *nobody* has to tell it\n" * 1_000
ONE_TABLE = "| what | who |\n| --- | --- |\n" + "| water runs down the hill | *nobody* has to tell it |\n" * 1_000
REPLIES = {
    "mixed": MIXED * 150,
    "one list": ONE_LIST,
    "one table": ONE_TABLE,
    "one code block": ONE_CODE_BLOCK,
}


async def run() -> Table:
    columns = ["reply", *(f"{size // 1000} kB: µs per delta" for size in SIZES), "ratio"]
    table = Table("Markdown rendered while it grows, one viewer", columns)
    for name, source in REPLIES.items():
        costs = [min(_microseconds_per_delta(source[:size]) for _ in range(ROUNDS)) for size in SIZES]
        table.add(name, *(f"{cost:.0f}" for cost in costs), f"{costs[1] / costs[0]:.2f}")
    table.notes.append("Deltas of a page are merged for 0.1 s, and longer where they cost more (chat.screen).")
    return table


def _microseconds_per_delta(text: str) -> float:
    renderer, began_at = BlockRenderer(), time.process_time()
    for start in range(0, len(text), DELTA_CHARACTERS):
        renderer.feed(text[start : start + DELTA_CHARACTERS])
    return (time.process_time() - began_at) * DELTA_CHARACTERS / len(text) * 1e6
