"""`python -m testing.bench [section …]`: measures the named sections, or all of them, and prints their tables."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import uvloop

from testing.bench import markdown, memory, page, redis_commands, stopping
from testing.bench.servers import Ground
from testing.bench.steady import Steady
from testing.bench.table import Table

Section = Callable[[], Awaitable[Table]]


def sections(ground: Ground) -> dict[str, Section]:
    """By the names that `BENCH` takes, in the order in which they are printed."""
    steady = Steady(ground)
    return {
        "redis": partial(redis_commands.run, ground),
        "cpu": steady.cpu,
        "lag": steady.lag,
        "stop": partial(stopping.run, ground),
        "memory": partial(memory.run, ground),
        "markdown": markdown.run,
        "page": partial(page.run, ground),
    }


async def measure(names: list[str]) -> None:
    ground = Ground()
    known = sections(ground)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no section {', '.join(unknown)}; there are: {', '.join(known)}")
    with ground:
        for name in names or known:
            sys.stderr.write(f"Measuring {name}\n")
            sys.stdout.write(f"{await known[name]()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    # Told to end, it still has to end the servers it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(sys.argv[1:]))
