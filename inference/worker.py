"""This worker: the inferences it owns, the stops it hears, the replies it follows, and its shutdown."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from uuid import UUID, uuid4

from inference.bus import Bus, Event
from inference.engine import Engine
from inference.events import end_event, signal_of
from inference.follow import Lease, Mirrors
from inference.ids import about, context_of_ids
from inference.journal import Ending, Journal, JournalError, Record
from inference.life import HeardBy, Life, Renewed, Started
from inference.owners import ANSWER_SECONDS, Answer, Owners
from inference.pulse import Pulse
from inference.reply import Reply
from inference.runner import NO_LIMITS, Job, ReplyLimits, Runner
from inference.stop import StopSignal, StopSignalHolder

T = TypeVar("T")

logger = logging.getLogger(__name__)

ACKNOWLEDGE_SECONDS = 1.5
"""How long the owner waits for its commit before it acknowledges a stop that is not yet saved."""
SAVE_RETRY_SECONDS = 0.5
SAVE_ON_EXIT_SECONDS = 10.0
"""How long the last saves of a shutdown may take."""


class Worker:
    """Owns inferences from `start` to their saved end. `run()` returns after `close`, when all it started has ended."""

    def __init__(
        self,
        *,
        engine: Engine,
        journal: Journal,
        bus: Bus,
        limits: ReplyLimits = NO_LIMITS,
        life: Life | None = None,
    ) -> None:
        self.worker_id = uuid4()
        self.is_draining = False
        self.signals = StopSignalHolder()
        self.life = life or Life()
        self._engine = engine
        self._journal = journal
        self._bus = bus
        self._limits = limits
        self._live: dict[UUID, Runner] = {}
        self._leases: dict[UUID, Lease] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._takings: set[asyncio.Task[Any]] = set()
        self._owners = Owners(bus, spawn=self.spawn)
        self._mirrors = Mirrors(bus=bus, journal=journal, spawn=self.spawn)
        self._pulse = Pulse(self.worker_id, live=self._live, journal=journal, life=self.life, on_reaped=self.announce)
        bus.on("stop", self._hear_stop)
        bus.on("follow", self._hear_follow)
        bus.on_renewed.extend((self._note_renewal, self._pulse.beat))

    async def run(self) -> None:
        """Beat and listen until cancelled; then end what is still live and save it."""
        try:
            async with asyncio.TaskGroup() as services:
                for service in (self._bus.run(), *self._pulse.loops()):
                    services.create_task(service)
        finally:
            self.is_draining = True
            self.hurry()
            await self._wait_for_saves(SAVE_ON_EXIT_SECONDS)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def spawn(self, work: Coroutine[Any, Any, T], *, expected: tuple[type[Exception], ...] = ()) -> asyncio.Task[T]:
        """Run something that must outlive whoever asked for it; this worker owns the task and logs its failure.

        Whoever awaits the task handles the `expected` errors.
        """
        # In a context of its own: that of an HTTP request holds on to a thread and a connection of that request.
        task = asyncio.create_task(work, context=context_of_ids())
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._forget, expected=expected))
        return task

    def take(self, work: Coroutine[Any, Any, T], *, expected: tuple[type[Exception], ...] = ()) -> asyncio.Task[T]:
        """`spawn` for what may end in a `start`: a drain waits for it before it looks at what is live."""
        task = self.spawn(work, expected=expected)
        self._takings.add(task)
        task.add_done_callback(self._takings.discard)
        return task

    def database_time(self) -> float | None:
        """Seconds since 1970 by the database's clock; None before this worker's first heartbeat."""
        return self._journal.database_time()

    @property
    def live_count(self) -> int:
        return len(self._live)

    @property
    def followed_count(self) -> int:
        return len(self._mirrors)

    def start(self, job: Job) -> Reply:
        """Begin an inference whose rows are written; this worker owns it from now on."""
        runner = Runner(
            job,
            engine=self._engine,
            signals=self.signals,
            life=self.life,
            limits=self._limits,
            database_time=self.database_time,
        )
        self._live[job.inference_id] = runner
        self.life.tell(Started(job.inference_id, job.completion.model))
        # The stop may have been faster than the rows.
        signal = self.signals.get(job.inference_id)
        if signal is not None:
            runner.stop(signal, HeardBy.EVENT)
        self.spawn(self._own(runner))
        return runner.reply

    async def stop(self, signal: StopSignal) -> Answer:
        """Stop an inference wherever it runs, and wait for a while for its saved end."""
        runner = self._live.get(signal.inference_id)
        if runner is not None:
            is_heard = self._stop_own(runner, signal, HeardBy.HERE)
            return await self._saved(runner, ANSWER_SECONDS) if is_heard else Answer(is_heard=False)
        return await self._owners.ask(signal)

    def find(self, inference_id: UUID) -> Reply | None:
        """The reply as this process holds it, owned or mirrored."""
        runner = self._live.get(inference_id)
        return runner.reply if runner else self._mirrors.get(inference_id)

    def mirror(self, inference_id: UUID) -> Reply:
        """A mirror of a live inference that another worker has just announced; the caller becomes a reader at once."""
        return self._mirrors.add(Record(inference_id, runs=(), position=0, ending=None))

    async def watch(self, inference_id: UUID) -> Reply | None:
        """The reply, from this process, from its owner's, or from its row; None when there is no such inference.

        The caller must become a reader before its next await, or a mirror may end at once. Raises JournalError.
        """
        reply = self.find(inference_id)
        if reply is not None and reply.ending is None:
            return reply
        # Also when its mirror here has ended: a later end, which cut the reply back, may be lost on its way.
        record = await self._journal.read(inference_id)
        if record is None:
            return None
        if record.ending is None:
            return self.find(inference_id) or self._mirrors.add(record)
        reply = Reply(inference_id, runs=record.runs)
        reply.end(record.ending)
        return reply

    async def reap(self) -> None:
        """End the inferences of dead owners now, if this worker can be sure who is dead. Raises JournalError."""
        await self._pulse.reap()

    async def announce(self, ending: Ending) -> None:
        """Tell everybody who shows an inference how it ended."""
        await self._bus.publish(ending.topic, end_event(ending))

    def hear_end(self, ending: Ending) -> None:
        """An inference has ended somewhere: its mirror here ends, and whoever waits for its stop is answered."""
        self._mirrors.end(ending)
        self._owners.answer(ending.inference_id, Answer(is_heard=True, ending=ending))

    async def drain(self, seconds: float) -> None:
        """Take nothing new, let replies end for so long, then end what is left as interrupted. May be called twice."""
        self.is_draining = True
        await self._wait_for_saves(seconds)
        self.hurry()
        await self._wait_for_saves(SAVE_ON_EXIT_SECONDS)

    def hurry(self) -> None:
        """End what is live as interrupted, now."""
        for runner in self._live.values():
            runner.interrupt()

    async def _own(self, runner: Runner) -> None:
        with about(runner.job.inference_id):
            ending = await self._run(runner)
            if ending is not None:
                await self._tell(ending)

    async def _run(self, runner: Runner) -> Ending | None:
        inference_id, ending = runner.job.inference_id, None
        try:
            await runner.generate()
            ending = await self._save(runner)
        finally:
            del self._live[inference_id]
            self.signals.discard(inference_id)
            runner.end(ending)
        return ending

    async def _save(self, runner: Runner) -> Ending | None:
        is_refused = False
        while True:
            result = runner.result()
            try:
                ending = await self._journal.finish(result)
            except JournalError as error:
                logger.warning("not saved yet: %s", error)
                await asyncio.sleep(SAVE_RETRY_SECONDS)
                continue
            except Exception:
                if is_refused:
                    raise
                is_refused = True
                logger.exception("not saved; once more with the text alone")
                runner.fail("its end was refused by the rows")
                continue
            if result.stop is not None or not runner.is_stopped:
                return ending
            # A stop came while the end was being saved: once more, with it.

    async def _tell(self, ending: Ending) -> None:
        lease = self._leases.get(ending.inference_id)
        if lease is not None:
            await lease.publish()
        await self.announce(ending)

    async def _saved(self, runner: Runner, seconds: float) -> Answer:
        done, _ = await asyncio.wait({runner.ended}, timeout=seconds)
        return Answer(is_heard=True, ending=runner.ended.result() if done else None)

    def _hear_stop(self, event: Event) -> None:
        signal = signal_of(event)
        runner = self._live.get(signal.inference_id)
        if runner is None:
            self.signals.put(signal)
        elif self._stop_own(runner, signal, HeardBy.EVENT):
            self.spawn(self._acknowledge(runner, event["reply_to"]))

    def _stop_own(self, runner: Runner, signal: StopSignal, by: HeardBy) -> bool:
        # The first one heard counts, unless it names a room that this reply is not in: it must not keep others out.
        return runner.stop(self.signals.put(signal), by) or runner.stop(signal, by)

    async def _acknowledge(self, runner: Runner, reply_to: str) -> None:
        answer = await self._saved(runner, ACKNOWLEDGE_SECONDS)
        event: Event = {"type": "stopped", "inference_id": str(runner.job.inference_id), "ending": None}
        if answer.ending is not None:
            event["ending"] = end_event(answer.ending)
        await self._bus.send(reply_to, event)

    def _hear_follow(self, event: Event) -> None:
        runner = self._live.get(UUID(event["inference_id"]))
        if runner is not None and event["reply_to"]:
            self.spawn(self._lend(runner, event["position"], event["reply_to"]))

    async def _lend(self, runner: Runner, position: int, reply_to: str) -> None:
        inference_id = runner.job.inference_id
        lease = self._leases.get(inference_id)
        if lease is not None:
            await lease.answer(position, reply_to)
            return
        lease = self._leases[inference_id] = Lease(runner.reply, self._bus)
        try:
            await lease.answer(position, reply_to)
            await lease.run()
        finally:
            del self._leases[inference_id]

    async def _note_renewal(self) -> None:
        self.life.tell(Renewed())

    async def _wait_for_saves(self, seconds: float) -> None:
        started_at = time.monotonic()
        if self._takings:
            await asyncio.wait(self._takings, timeout=seconds)
            seconds = max(0.0, seconds - (time.monotonic() - started_at))
        pending: Sequence[asyncio.Future[Ending | None]] = [runner.ended for runner in self._live.values()]
        if pending:
            await asyncio.wait(pending, timeout=seconds)

    def _forget(self, task: asyncio.Task[Any], *, expected: tuple[type[Exception], ...]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and not isinstance(task.exception(), expected):
            logger.error("task %s failed", task.get_name(), exc_info=task.exception())
