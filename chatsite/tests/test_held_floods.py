"""A flood on one socket: it is read no further until what it has sent was taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from chatsite.held_floods import MAX_WAITING_FRAMES, held

DEADLINE_SECONDS = 5.0


class Transport:
    """Keeps what was done with it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def pauseProducing(self) -> None:  # Twisted's names
        self.done.append("pause")

    def resumeProducing(self) -> None:
        self.done.append("resume")


class Frames(asyncio.Queue[bytes]):
    """Counts how often it was looked at."""

    looks = 0

    def qsize(self) -> int:
        self.looks += 1
        return super().qsize()


class Protocol:
    """As daphne's: it puts each frame into the queue of the application."""

    STATE_CLOSING, STATE_OPEN = 2, 3  # Autobahn's

    def __init__(self) -> None:
        self.application_queue = Frames()
        self.transport = Transport()
        self.state = self.STATE_OPEN

    @held
    def onMessage(self, payload: bytes, is_binary: bool) -> None:  # Autobahn's signature
        self.application_queue.put_nowait(payload)

    def flood(self, count: int) -> None:
        for _ in range(count):
            self.onMessage(b"{}", False)

    def take(self, count: int) -> None:
        for _ in range(count):
            self.application_queue.get_nowait()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110  # nothing announces what is polled here
            await asyncio.sleep(0.001)


async def test_a_few_frames_are_taken_without_a_pause() -> None:
    protocol = Protocol()
    protocol.flood(MAX_WAITING_FRAMES - 1)
    assert protocol.transport.done == []


async def test_a_flood_is_held_back_until_most_of_it_was_taken() -> None:
    protocol = Protocol()
    protocol.flood(3 * MAX_WAITING_FRAMES)
    assert protocol.transport.done == ["pause"]
    protocol.take(2 * MAX_WAITING_FRAMES)
    looks = protocol.application_queue.looks
    await until(lambda: protocol.application_queue.looks > looks + 2)
    assert protocol.transport.done == ["pause"]
    protocol.take(MAX_WAITING_FRAMES)
    await until(lambda: protocol.transport.done == ["pause", "resume"])


async def test_a_socket_that_closes_is_let_go_though_nobody_takes_its_frames() -> None:
    """Otherwise its client's last frame were never read, and it would be looked at for ever."""
    protocol = Protocol()
    protocol.flood(MAX_WAITING_FRAMES)
    protocol.state = Protocol.STATE_CLOSING
    await until(lambda: protocol.transport.done == ["pause", "resume"])


async def test_the_next_flood_is_held_back_too() -> None:
    protocol = Protocol()
    for _ in range(2):
        protocol.transport.done.clear()
        protocol.flood(MAX_WAITING_FRAMES)
        protocol.take(MAX_WAITING_FRAMES)
        await until(lambda: protocol.transport.done == ["pause", "resume"])
