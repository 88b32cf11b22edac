"""The owners of inferences as another worker reaches them: a stop is sent to all workers, and the owner answers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from inference.bus import WORKERS, Bus, Event
from inference.events import ending_of, stop_event
from inference.journal import Ending
from inference.stop import StopSignal

ANSWER_SECONDS = 2.0
"""How long a stop waits for the owner (DESIGN section 5, step 3)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a stop: whether the owner has heard of it, and how the inference ended if that is saved."""

    is_heard: bool
    ending: Ending | None = None


class Owners:
    """Stops that were sent out from here, and who waits for their answers."""

    def __init__(self, bus: Bus, *, spawn: Callable[..., object]) -> None:
        self._bus = bus
        self._spawn = spawn
        self._waiters: dict[UUID, set[asyncio.Future[Answer]]] = defaultdict(set)
        bus.on("stopped", self._hear)

    @property
    def waiting_count(self) -> int:
        return len(self._waiters)

    async def ask(self, signal: StopSignal) -> Answer:
        """Tell the owner to stop, and wait for a while for its answer."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters[signal.inference_id].add(answer)
        try:
            # Redis may take long to refuse: the stop is recorded, and the answer does not wait for that.
            self._spawn(self._send(signal, answer))
            done, _ = await asyncio.wait({answer}, timeout=ANSWER_SECONDS)
            return answer.result() if done else Answer(is_heard=False)
        finally:
            self._waiters[signal.inference_id].discard(answer)
            if not self._waiters[signal.inference_id]:
                del self._waiters[signal.inference_id]

    def answer(self, inference_id: UUID, answer: Answer) -> None:
        """Whoever waits for the stop of this inference has this answer."""
        for waiter in self._waiters.get(inference_id, ()):
            if not waiter.done():
                waiter.set_result(answer)

    async def _send(self, signal: StopSignal, answer: asyncio.Future[Answer]) -> None:
        is_sent = await self._bus.publish(WORKERS, stop_event(signal, reply_to=self._bus.address))
        if not is_sent and not answer.done():
            answer.set_result(Answer(is_heard=False))

    def _hear(self, event: Event) -> None:
        ending = ending_of(event["ending"]) if event["ending"] else None
        self.answer(UUID(event["inference_id"]), Answer(is_heard=True, ending=ending))
