"""What daphne's reactor is given to write goes out in the next turn of the loop, without the selector.

Twisted has the selector watch a socket for each write, waits to hear that it can be written to, and has it forgotten
again. A socket that takes a frame at once, which is nearly every one, needs none of that. `chatsite.lifespan` puts this
in place; docs/BENCHMARKS.md has what it saves.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol


class Writer(Protocol):
    """What the reactor writes with, of Twisted's `IWriteDescriptor`."""

    def doWrite(self) -> object: ...  # Twisted's names

    def fileno(self) -> int: ...


def write_eagerly(reactor: Any) -> None:
    """Let this reactor write eagerly from now on."""
    writes = EagerWrites(reactor)
    reactor.addWriter, reactor.removeWriter = writes.add, writes.remove


class EagerWrites:
    """Stands before a reactor's own `addWriter` and `removeWriter`, which get the sockets that can't take it all."""

    def __init__(self, reactor: Any) -> None:
        self._watch = reactor.addWriter
        self._forget = reactor.removeWriter
        self._due: set[Writer] = set()

    def add(self, writer: Writer) -> None:
        """There is something to write."""
        if writer not in self._due:
            self._due.add(writer)
            asyncio.get_running_loop().call_soon(self._write, writer)

    def remove(self, writer: Writer) -> None:
        """There is nothing to write any more."""
        self._due.discard(writer)
        self._forget(writer)

    def _write(self, writer: Writer) -> None:
        if writer not in self._due:
            return
        try:
            has_failed = bool(writer.doWrite())
        except Exception:
            has_failed = True
        if has_failed or writer in self._due:
            # It can't take more now, or is over: what to do then, and what to log, the reactor knows.
            self._due.discard(writer)
            if writer.fileno() != -1:
                self._watch(writer)
