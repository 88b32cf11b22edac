"""Writes that need no selector, and those that do."""

from __future__ import annotations

import asyncio

import pytest

from chatsite.eager_writes import EagerWrites, Writer

BUFFER = 10


class Reactor:
    """Keeps which writers it was given to watch."""

    def __init__(self) -> None:
        self.watched: set[Writer] = set()

    def addWriter(self, writer: Writer) -> None:  # Twisted's names
        self.watched.add(writer)

    def removeWriter(self, writer: Writer) -> None:
        self.watched.discard(writer)


class Socket:
    """As Twisted's connections do it: tells when there is something to write, and when there is no more."""

    def __init__(self, writes: EagerWrites, *, error: Exception | None = None) -> None:
        self._writes = writes
        self._error = error
        self._left = b""
        self.sent: list[bytes] = []
        self.descriptor = 7

    def write(self, data: bytes) -> None:
        self._left += data
        self._writes.add(self)

    def doWrite(self) -> object:
        if self._error:
            raise self._error
        data, self._left = self._left[:BUFFER], self._left[BUFFER:]
        self.sent.append(data)
        if not self._left:
            self._writes.remove(self)
        return None

    def fileno(self) -> int:
        return self.descriptor


async def test_what_the_socket_takes_goes_out_at_once_in_one_piece_and_is_never_watched() -> None:
    reactor = Reactor()
    socket = Socket(EagerWrites(reactor))
    socket.write(b"one ")
    socket.write(b"two")
    await asyncio.sleep(0)
    assert (socket.sent, reactor.watched) == ([b"one two"], set())


async def test_what_does_not_fit_is_watched_until_it_is_gone() -> None:
    reactor = Reactor()
    socket = Socket(EagerWrites(reactor))
    socket.write(b"more than ten")
    await asyncio.sleep(0)
    assert (socket.sent, reactor.watched) == ([b"more than "], {socket})
    socket.doWrite()
    assert (socket.sent, reactor.watched) == ([b"more than ", b"ten"], set())


async def test_what_was_taken_back_is_not_written() -> None:
    writes = EagerWrites(Reactor())
    socket = Socket(writes)
    socket.write(b"never")
    writes.remove(socket)
    await asyncio.sleep(0)
    assert socket.sent == []


@pytest.mark.parametrize(("descriptor", "is_watched"), [(7, True), (-1, False)])
async def test_a_failing_socket_is_left_to_the_reactor_unless_it_is_closed(descriptor: int, is_watched: bool) -> None:
    reactor = Reactor()
    socket = Socket(EagerWrites(reactor), error=OSError())
    socket.descriptor = descriptor
    socket.write(b"x")
    await asyncio.sleep(0)
    assert (socket in reactor.watched) is is_watched
