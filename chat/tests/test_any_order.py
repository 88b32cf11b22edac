"""Start, chunk, stop, finish, crash, reap, reconnect: in any order, against real rows, with what must hold after each.

Two workers share a PostgreSQL and a channel layer. Hypothesis chooses the steps; nothing here happens by itself, since
the once-a-second loops of the workers are steps too. What a step does is what the product does: only the model is a
tap, and the line to the database can be cut.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from channels.layers import InMemoryChannelLayer
from django.contrib.auth.models import User
from django.db.models.functions import Now
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pytest_django.fixtures import Settings

from chat import prompts, stops
from chat.journal import DjangoJournal
from chat.models import Inference, Room
from chat.models import inference as inference_model
from chat.prompts import Ask, PromptError
from chat.stops import Outcome, Stop
from inference import owners, pulse
from inference import worker as worker_module
from inference.bus import Bus
from inference.engine import Chunk, Completion, Part
from inference.events import ending_of
from inference.journal import Ending, Heartbeat, JournalError, Progress, Record, Result, Status
from inference.reply import Reply, text_of
from inference.runner import Job
from inference.stop import StopSignal
from inference.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")

WAIT_SECONDS = 10.0
DEAD_AFTER = timedelta(hours=1)
"""On a slow machine one order takes longer than the ten seconds of the product: only a step makes an owner dead."""
AFTER_THE_END = {
    Status.COMPLETED: {Status.STOPPED},
    Status.INTERRUPTED: {Status.COMPLETED, Status.STOPPED, Status.INTERRUPTED},
    Status.STOPPED: {Status.STOPPED},
}
"""The transitions of DESIGN section 4 that leave a final status; here no engine fails."""


class Taps:
    """An engine that gives what a step pours, to the inference whose prompt says so."""

    name = "taps"

    def __init__(self) -> None:
        self._chunks: dict[str, asyncio.Queue[Chunk]] = {}

    def pour(self, prompt: str, chunk: Chunk) -> None:
        self._chunks.setdefault(prompt, asyncio.Queue()).put_nowait(chunk)

    async def stream(self, completion: Completion) -> AsyncGenerator[Chunk, None]:
        chunks = self._chunks.setdefault(completion.turns[-1].content, asyncio.Queue())
        chunk = Chunk()
        while chunk.finish_reason is None:
            chunk = await chunks.get()
            yield chunk

    async def models(self) -> Sequence[str]:
        return ["taps"]

    async def aclose(self) -> None: ...


class Line(DjangoJournal):
    """The journal at the end of a line that can be cut."""

    is_cut = False

    def _look(self) -> None:
        if self.is_cut:
            raise JournalError("the line is cut")

    async def checkpoint(self, batch: Sequence[Progress]) -> None:
        self._look()
        await super().checkpoint(batch)

    async def heartbeat(self, worker_id: UUID, inference_ids: Sequence[UUID]) -> Heartbeat:
        self._look()
        return await super().heartbeat(worker_id, inference_ids)

    async def finish(self, result: Result) -> Ending | None:
        self._look()
        return await super().finish(result)

    async def read(self, inference_id: UUID) -> Record | None:
        self._look()
        return await super().read(inference_id)

    async def reap(self) -> Sequence[Ending]:
        self._look()
        return await super().reap()


class SharedLayer(InMemoryChannelLayer):  # type: ignore[misc]
    """The layer of both workers, which a worker that goes must leave as it is."""

    async def flush(self) -> None: ...


class Process:
    """A worker as one process has it, until it is killed."""

    def __init__(self, layer: Any) -> None:
        self.engine = Taps()
        self.line = Line()
        self.bus = Bus(layer)
        self.worker = Worker(engine=self.engine, journal=self.line, bus=self.bus)
        self.bus.on("end", lambda event: self.worker.hear_end(ending_of(event)))
        self._running = asyncio.create_task(self.worker.run())

    async def kill(self) -> None:
        self.line.is_cut = True
        await self.end()

    async def end(self) -> None:
        self._running.cancel()
        await asyncio.wait({self._running})


@dataclass(eq=False)
class Case:
    """One inference and what is known of it from outside."""

    job: Job
    room: Room
    prompt: str
    owner: Process
    generated: str = ""
    checkpointed: str = ""
    is_told_to_end: bool = False
    settled_at: int | None = None
    """Where a stop was said to be saved."""
    seen: tuple[Status, int] | None = None
    """The last final status, and its position."""
    is_orphaned: bool = False
    """Whether its owner was dead, or taken for it, at any time."""

    @property
    def row(self) -> Inference:
        return Inference.objects.select_related("message").get(pk=self.job.inference_id)


class AnyOrder(RuleBasedStateMachine):
    texts = st.text("aé가🙂", min_size=1, max_size=6)
    positions = st.integers(0, 12)
    sides = st.sampled_from([0, 1])
    any_of_them = st.integers(0, 2)
    """Which one of the latest, or of those that are being generated."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.layer = SharedLayer()
        self.user, _ = User.objects.get_or_create(username="alice")
        self.rooms = [Room.objects.create_for(self.user) for _ in range(2)]
        self.processes = [self.do(self._process()) for _ in range(2)]
        self.known: list[Case] = []

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, WAIT_SECONDS))

    # what people do

    @rule(side=sides, room=st.sampled_from([0, 1]), text=texts)
    def ask(self, side: int, room: int, text: str) -> None:
        case = self._ask(self._connected(side), self.rooms[room])
        if case is not None:
            self.known.append(case)
            self._pour(case, text)

    @precondition(lambda self: self.known)
    @rule(which=any_of_them, side=sides, position=st.one_of(st.none(), positions))
    def stop(self, which: int, side: int, position: int | None) -> None:
        case = self._latest(which)
        was_live = _is_live(case)
        press = Stop(self.user, case.job.inference_id, position, "page", room_id=case.room.pk)
        result = self.do(stops.stop(self._connected(side).worker, press))
        if result.outcome in {Outcome.STOPPED, Outcome.ALREADY_STOPPED, Outcome.CUT_AFTER_FINISH}:
            assert case.settled_at in {None, result.position}
            case.settled_at = result.position
        if was_live:
            assert result.outcome in {Outcome.STOPPED, Outcome.ALREADY_STOPPED, Outcome.RECORDED}
            self._tell_to_end(case)
        else:
            # An owner that was cut off and taken for dead hears of the end with its next heartbeat.
            self._settle()

    @precondition(lambda self: self.known)
    @rule(which=any_of_them, position=positions)
    def stop_whose_signal_is_lost(self, which: int, position: int) -> None:
        job = self._latest(which).job
        signal = StopSignal(job.inference_id, job.topic, position, self.user.pk, "page")
        Inference.objects.record_stop(signal)

    @precondition(lambda self: self.known)
    @rule(which=any_of_them, side=sides)
    def reconnect(self, which: int, side: int) -> None:
        case = self._latest(which)
        text = self.do(self._text_after_reload(self._connected(side), case))
        assert case.generated.startswith(text)
        assert _is_live(case) or text == text_of(case.row.runs, Part.CONTENT)

    # what the model does

    @precondition(lambda self: self._generating)
    @rule(which=any_of_them, text=texts)
    def chunk(self, which: int, text: str) -> None:
        self._pour(self._generating[which % len(self._generating)], text)

    @precondition(lambda self: self._generating)
    @rule(which=any_of_them)
    def finish(self, which: int) -> None:
        self._finish(self._generating[which % len(self._generating)])

    # what workers do once a second

    @rule(side=sides)
    def beat(self, side: int) -> None:
        process = self._connected(side)
        self.do(process.worker._pulse.beat())
        self._settle()

    @rule(side=sides)
    def checkpoint(self, side: int) -> None:
        process = self._connected(side)
        self.do(process.worker._pulse.checkpoint())
        for case in self._owned_by(process):
            if _is_live(case):
                case.checkpointed = case.generated

    @rule(side=sides)
    def reap(self, side: int) -> None:
        process = self._connected(side)
        self.do(process.worker._pulse.beat())
        self.do(process.worker.reap())
        self._settle()

    # what goes wrong

    @rule(side=sides)
    def crash(self, side: int) -> None:
        process = self.processes[side]
        self.do(process.kill())
        self._bury(process)
        self.processes[side] = self.do(self._process())

    @rule(side=sides)
    def cut_off(self, side: int) -> None:
        """From the database, for long enough to be taken for dead; the other one stays connected."""
        process = self.processes[side]
        if not any(other.line.is_cut for other in self.processes):
            process.line.is_cut = True
            self._bury(process)

    @rule()
    def mend(self) -> None:
        for process in self.processes:
            process.line.is_cut = False
        self._settle()

    # what holds after each step

    @invariant()
    def rows_agree_with_what_was_told_and_generated(self) -> None:
        for case in self.known:
            row = case.row
            text = text_of(row.runs, Part.CONTENT)
            assert case.generated.startswith(text)
            assert row.position == len(text)
            if Status(row.status).is_live:
                assert text == case.checkpointed
            else:
                self._check_end(case, row, text)

    def _check_end(self, case: Case, row: Inference, text: str) -> None:
        status = Status(row.status)
        assert (row.message.status, row.message.text) == (status, text)
        if case.settled_at is not None:
            assert (status, row.position) == (Status.STOPPED, case.settled_at)
        if status is Status.COMPLETED:
            assert (text, row.stop_requested_at) == (case.generated, None)
        if status is Status.INTERRUPTED:
            assert case.is_orphaned
            assert len(text) >= len(case.checkpointed)
        if status is Status.STOPPED:
            self._check_cut(case, row)
        if case.seen is not None and case.seen != (status, row.position):
            assert status in AFTER_THE_END[case.seen[0]]
            assert row.position >= case.seen[1] or status is Status.STOPPED
        case.seen = (status, row.position)

    def _check_cut(self, case: Case, row: Inference) -> None:
        assert row.stop_requested_at is not None
        if row.stop_position is None:
            return
        exact = min(row.stop_position, len(case.generated))
        at_least = min(row.stop_position, len(case.checkpointed)) if case.is_orphaned else exact
        assert at_least <= row.position <= exact

    def teardown(self) -> None:
        try:
            self._end_everything()
        finally:
            for process in self.processes:
                self.do(process.end())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    def _end_everything(self) -> None:
        self.mend()
        for case in self._generating:
            self._finish(case)
        for side in (0, 1):
            self.reap(side)
        self.rows_agree_with_what_was_told_and_generated()
        assert not [case for case in self.known if _is_live(case)]
        for case in self.known:
            text = text_of(case.row.runs, Part.CONTENT)
            assert [self.do(self._text_after_reload(process, case)) for process in self.processes] == [text, text]
        for room in self.rooms:
            assert self._ask(self.processes[0], room) is not None

    # how the steps are done

    async def _process(self) -> Process:
        process = Process(self.layer)
        await process.bus.has_subscription.wait()
        # As the sockets that reconnect to it do before they follow a reply.
        for room in self.rooms:
            await process.bus.join(room.topic)
        await process.worker._pulse.beat()
        return process

    def _connected(self, side: int) -> Process:
        chosen = self.processes[side]
        return self.processes[1 - side] if chosen.line.is_cut else chosen

    def _ask(self, process: Process, room: Room) -> Case | None:
        prompt = uuid4().hex
        ask = Ask(self.user, room.pk, uuid4(), process.worker.worker_id, model="m", default_model="m")
        is_busy = Inference.objects.live().filter(room=room).exists()
        try:
            taken = prompts.send(ask, prompt, None, has_parent=False)
        except PromptError as error:
            assert (error.code, is_busy) == ("busy", True)
            return None
        assert taken.job is not None
        self.do(self._start(process, taken.job))
        return Case(taken.job, room, prompt, process)

    async def _start(self, process: Process, job: Job) -> None:
        process.worker.start(job)

    @property
    def _generating(self) -> list[Case]:
        return [case for case in self.known if case.owner in self.processes and not case.is_told_to_end]

    def _latest(self, which: int) -> Case:
        return self.known[-1 - which % len(self.known)]

    def _finish(self, case: Case) -> None:
        case.owner.engine.pour(case.prompt, Chunk(finish_reason="stop"))
        self._tell_to_end(case)

    def _pour(self, case: Case, text: str) -> None:
        case.owner.engine.pour(case.prompt, Chunk(text))
        case.generated += text
        reply = case.owner.worker.find(case.job.inference_id)
        assert reply is not None
        self.do(self._until(lambda: reply.generated_position == len(case.generated)))

    def _tell_to_end(self, case: Case) -> None:
        case.is_told_to_end = True
        self._settle()

    def _settle(self) -> None:
        """Wait for the ends that nothing is in the way of, and learn which replies have been told to end."""
        for case in self.known:
            if case.owner in self.processes and not case.owner.line.is_cut:
                self.do(self._until(lambda case=case: not self._is_ending(case)))

    def _is_ending(self, case: Case) -> bool:
        reply = case.owner.worker.find(case.job.inference_id)
        runner = case.owner.worker._live.get(case.job.inference_id)
        if runner is None:
            case.is_told_to_end = True
            return False
        case.is_told_to_end = case.is_told_to_end or runner._is_cut_short
        return case.is_told_to_end and reply is not None

    def _owned_by(self, process: Process) -> Iterator[Case]:
        return (case for case in self.known if case.owner is process)

    def _bury(self, process: Process) -> None:
        for case in self._owned_by(process):
            case.is_orphaned = case.is_orphaned or _is_live(case)
        Inference.objects.live().filter(worker=process.worker.worker_id).update(heartbeat_at=Now() - 2 * DEAD_AFTER)

    async def _text_after_reload(self, process: Process, case: Case) -> str:
        reply = await process.worker.watch(case.job.inference_id)
        assert reply is not None
        reply.add_reader(_nothing)
        try:
            owner = case.owner.worker.find(case.job.inference_id) if case.owner in self.processes else None
            if owner is not None and owner.ending is None:
                # It may be over here while its owner, cut off, does not know yet.
                await self._until(lambda: reply.ending is not None or _shown(reply) == _shown(owner))
            return _shown(reply)
        finally:
            reply.discard_reader(_nothing)

    async def _until(self, condition: Any) -> None:
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def _nothing() -> None: ...


def _is_live(case: Case) -> bool:
    return Status(case.row.status).is_live


def _shown(reply: Reply) -> str:
    return text_of(reply.runs(), Part.CONTENT)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """Workers that do nothing by the clock, and wait for nobody long."""
    settings.LIMITS = False
    monkeypatch.setattr(inference_model, "DEAD_AFTER", DEAD_AFTER)
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 3600.0)
    monkeypatch.setattr(pulse, "TRUST_SECONDS", 0.0)
    monkeypatch.setattr(owners, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(worker_module, "ACKNOWLEDGE_SECONDS", 0.1)
    monkeypatch.setattr(worker_module, "SAVE_RETRY_SECONDS", 0.005)
    monkeypatch.setattr(worker_module, "SAVE_ON_EXIT_SECONDS", 0.01)


@pytest.mark.timeout(1800)
def test_whatever_the_order_every_reply_ends_once_and_as_was_told(impatient: None) -> None:
    """The same twenty orders in each run; a thousand others in each `make soak`."""
    is_long = hypothesis_settings.get_current_profile_name() == "long"
    run_state_machine_as_test(
        AnyOrder,
        settings=hypothesis_settings(
            max_examples=1000 if is_long else 20,
            derandomize=not is_long,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
