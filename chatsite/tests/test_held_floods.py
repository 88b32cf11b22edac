"""A flood on one socket: it is read no further until what it has sent was taken."""

from __future__ import annotations

import asyncio

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


class Protocol:
    """As daphne's: it puts each frame into the queue of the application."""

    def __init__(self) -> None:
        self.application_queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.transport = Transport()

    @held
    def onMessage(self, payload: bytes, is_binary: bool) -> None:  # Autobahn's signature
        self.application_queue.put_nowait(payload)

    def flood(self, count: int) -> None:
        for _ in range(count):
            self.onMessage(b"{}", False)

    def take(self, count: int) -> None:
        for _ in range(count):
            self.application_queue.get_nowait()


async def until(protocol: Protocol, done: list[str]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while protocol.transport.done != done:  # noqa: ASYNC110
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
    await asyncio.sleep(0.1)
    assert protocol.transport.done == ["pause"]
    protocol.take(MAX_WAITING_FRAMES)
    await until(protocol, ["pause", "resume"])


async def test_the_next_flood_is_held_back_too() -> None:
    protocol = Protocol()
    for round_number in (1, 2):
        protocol.flood(MAX_WAITING_FRAMES)
        protocol.take(MAX_WAITING_FRAMES)
        await until(protocol, ["pause", "resume"] * round_number)
