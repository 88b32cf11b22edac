"""Workers that share a database and a channel layer: who owns, who stops, who follows, and what a shutdown saves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

import psycopg
import pytest
from channels.layers import InMemoryChannelLayer
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from pytest_django.fixtures import Settings

from chat import endings, prompts
from chat.database import rows
from chat.journal import DjangoJournal
from chat.models import Inference, Room
from chat.prompts import Ask
from inference import follow, pulse
from inference import worker as worker_module
from inference.bus import Bus
from inference.engine import Chunk, Completion, Part
from inference.events import ending_of
from inference.journal import Status
from inference.life import Life, Moment
from inference.reply import Reply, text_of
from inference.runner import Job
from inference.stop import StopSignal
from inference.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")
WAIT_SECONDS = 5.0


class Faucet:
    """An engine that gives what the test pours in."""

    name = "faucet"

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[Chunk] = asyncio.Queue()
        self.is_open = False

    def pour(self, text: str, *, is_last: bool = False) -> None:
        self._chunks.put_nowait(Chunk(text))
        if is_last:
            self.end("stop")

    def end(self, finish_reason: str) -> None:
        self._chunks.put_nowait(Chunk(finish_reason=finish_reason))

    async def stream(self, completion: Completion) -> AsyncGenerator[Chunk, None]:
        self.is_open = True
        try:
            chunk = Chunk()
            while chunk.finish_reason is None:
                chunk = await self._chunks.get()
                yield chunk
        finally:
            self.is_open = False

    async def models(self) -> Sequence[str]:
        return ["faucet"]

    async def aclose(self) -> None: ...


class Process:
    """A worker as one process has it."""

    def __init__(self, layer: Any) -> None:
        self.engine = Faucet()
        self.bus = Bus(layer)
        self.moments: list[Moment] = []
        life = Life(self.moments.append)
        self.worker = Worker(engine=self.engine, journal=DjangoJournal(), bus=self.bus, life=life)
        # What the news of rooms do with it; a socket would have joined the room.
        self.bus.on("end", lambda event: self.worker.hear_end(ending_of(event)))

    async def begin(self) -> Job:
        """A new live inference of this worker, in a room of its own."""
        taken = await rows.run(_take, self.worker.worker_id)
        assert taken.job is not None
        await self.bus.join(taken.job.topic)
        self.worker.start(taken.job)
        return taken.job


def _take(worker_id: UUID) -> prompts.Taken:
    user, _ = User.objects.get_or_create(username="alice")
    room = Room.objects.create_for(user)
    ask = Ask(user, room.pk, uuid4(), worker_id, model="m", default_model="m")
    return prompts.send(ask, "Hello", None, has_parent=False)


@asynccontextmanager
async def processes(count: int = 2) -> AsyncIterator[list[Process]]:
    layer = InMemoryChannelLayer()
    started = [Process(layer) for _ in range(count)]
    tasks = [asyncio.create_task(process.worker.run()) for process in started]
    async with asyncio.timeout(WAIT_SECONDS):
        for process in started:
            await process.bus.has_subscription.wait()
    try:
        yield started
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def signal_for(job: Job, position: int | None, *, topic: str = "") -> StopSignal:
    return StopSignal(job.inference_id, topic or job.topic, position, None, "page")


async def changed(reply: Reply, look: Callable[[], T | None], *, seconds: float = WAIT_SECONDS) -> T:
    """Wait until something holds of a reply."""
    event = asyncio.Event()
    reply.add_reader(event.set)
    try:
        async with asyncio.timeout(seconds):
            while not (value := look()):
                event.clear()
                await event.wait()
    finally:
        reply.discard_reader(event.set)
    return value


async def becomes(query: Callable[[], object], *, seconds: float = WAIT_SECONDS) -> None:
    """Wait until the rows say something that is true."""
    async with asyncio.timeout(seconds):
        while not await rows.run(query):  # noqa: ASYNC110  # rows have no event
            await asyncio.sleep(0.02)


async def holds(condition: Callable[[], object], *, seconds: float = WAIT_SECONDS) -> None:
    """Wait until a worker has done something that it tells nobody."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def row(job: Job) -> tuple[str, str]:
    inference = await rows.run(Inference.objects.get, pk=job.inference_id)
    return inference.status, text_of(inference.runs, Part.CONTENT)


def shown(reply: Reply) -> str:
    return text_of(reply.runs(), Part.CONTENT)


async def poured(process: Process, job: Job, text: str) -> Reply:
    """The owner's reply once it has this text."""
    reply = process.worker.find(job.inference_id)
    assert reply is not None
    process.engine.pour(text)
    await changed(reply, lambda: shown(reply).endswith(text))
    return reply


# owning


async def test_a_reply_is_generated_saved_and_forgotten() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        reply = await poured(owner, job, "Hel")
        owner.engine.pour("lo", is_last=True)
        ending = await changed(reply, lambda: reply.ending)
        assert (ending.status, ending.position, ending.finish_reason) == (Status.COMPLETED, 5, "stop")
        assert await row(job) == ("completed", "Hello")
        assert owner.worker.live_count == 0
        assert not owner.engine.is_open


async def test_an_end_that_the_rows_refuse_is_saved_as_failed_with_its_text() -> None:
    """Whatever an engine tells beside the text: it must not cost the text, nor leave the reply live."""
    async with processes(1) as (owner,):
        job = await owner.begin()
        reply = await poured(owner, job, "Hello")
        owner.engine.end("st\x00op")
        ending = await changed(reply, lambda: reply.ending)
        assert (ending.status, ending.position, ending.error_code) == (Status.FAILED, 5, "internal")
        assert await row(job) == ("failed", "Hello")


async def test_a_live_reply_is_checkpointed_within_a_second_or_so() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hello")
        await becomes(lambda: Inference.objects.filter(pk=job.inference_id, status="streaming", position=5).exists())


# stopping


async def test_a_stop_where_the_owner_is_waits_for_the_saved_end() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hello")
        answer = await owner.worker.stop(signal_for(job, 3))
        assert answer.ending is not None
        assert (answer.ending.status, answer.ending.position) == (Status.STOPPED, 3)
        assert await row(job) == ("stopped", "Hel")
        assert len(owner.worker.signals) == 0


async def test_a_stop_elsewhere_reaches_the_owner_who_acknowledges_with_the_end() -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        await poured(owner, job, "Hello")
        answer = await other.worker.stop(signal_for(job, 3))
        assert answer.is_heard
        assert answer.ending is not None
        assert (answer.ending.status, answer.ending.position) == (Status.STOPPED, 3)
        assert await row(job) == ("stopped", "Hel")


async def test_a_stop_that_is_faster_than_the_rows_stops_before_the_first_token() -> None:
    async with processes(1) as (owner,):
        taken = await rows.run(_take, owner.worker.worker_id)
        assert taken.job is not None
        stopping = asyncio.create_task(owner.worker.stop(signal_for(taken.job, 0)))
        await asyncio.sleep(0)
        owner.engine.pour("never", is_last=True)
        reply = owner.worker.start(taken.job)
        ending = await changed(reply, lambda: reply.ending)
        assert (ending.status, ending.position) == (Status.STOPPED, 0)
        stopping.cancel()


async def test_a_stop_that_names_another_room_neither_stops_nor_keeps_the_right_one_out() -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        await poured(owner, job, "Hello")
        assert not (await owner.worker.stop(signal_for(job, 0, topic="room.other"))).is_heard
        answer = await other.worker.stop(signal_for(job, 3))
        assert answer.ending is not None
        assert answer.ending.position == 3


async def test_a_stop_of_what_nobody_owns_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "ANSWER_SECONDS", 0.1)
    async with processes() as (_, other):
        answer = await other.worker.stop(StopSignal(uuid4(), "room.x", 0, None, "page"))
        assert (answer.is_heard, answer.ending) == (False, None)
        assert other.worker._owners.waiting_count == 0


async def test_a_stop_that_the_owner_never_heard_is_found_in_its_row() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        reply = await poured(owner, job, "Hello")
        assert await rows.run(Inference.objects.record_stop, signal_for(job, 2))
        ending = await changed(reply, lambda: reply.ending, seconds=3)
        assert (ending.status, ending.position) == (Status.STOPPED, 2)


# following


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Followers that lose their patience soon."""
    monkeypatch.setattr(follow, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(follow, "SILENCE_SECONDS", 0.25)


async def watched(process: Process, job: Job) -> Reply:
    """The reply as another worker's viewer reads it."""
    reply = await process.worker.watch(job.inference_id)
    assert reply is not None
    reply.add_reader(lambda: None)
    return reply


async def test_a_follower_has_the_owners_text_and_its_end() -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        await other.bus.join(job.topic)
        await poured(owner, job, "Hel")
        copy = await watched(other, job)
        await changed(copy, lambda: shown(copy) == "Hel")
        await poured(owner, job, "lo")
        await changed(copy, lambda: shown(copy) == "Hello")
        owner.engine.pour("!", is_last=True)
        ending = await changed(copy, lambda: copy.ending)
        assert (ending.status, shown(copy)) == (Status.COMPLETED, "Hello!")


async def test_viewers_of_one_reply_share_one_mirror() -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        first = await watched(other, job)
        assert await watched(other, job) is first
        assert other.worker.find(job.inference_id) is first


async def test_a_mirror_that_nobody_reads_ends(quick: None) -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        copy = await other.worker.watch(job.inference_id)
        assert copy is not None
        await holds(lambda: other.worker.find(job.inference_id) is None)


async def test_a_lost_delta_is_asked_for_again() -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        copy = await watched(other, job)
        await poured(owner, job, "Hel")
        await changed(copy, lambda: shown(copy) == "Hel")
        hear = other.bus._handlers["delta"]
        lost = asyncio.Event()
        other.bus.on("delta", lambda event: lost.set() if event["runs"] else None)
        await poured(owner, job, "lo ")
        async with asyncio.timeout(WAIT_SECONDS):
            await lost.wait()
        other.bus.on("delta", hear)
        await poured(owner, job, "world")
        await changed(copy, lambda: shown(copy) == "Hello world", seconds=1)


async def test_a_lost_end_is_read_from_the_row(quick: None) -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        copy = await watched(other, job)
        await poured(owner, job, "Hello")
        await changed(copy, lambda: shown(copy) == "Hello")
        for kind in ("delta", "end"):
            other.bus.on(kind, lambda event: None)
        owner.engine.pour(" world", is_last=True)
        ending = await changed(copy, lambda: copy.ending, seconds=2)
        assert (ending.status, shown(copy)) == (Status.COMPLETED, "Hello world")


async def test_an_end_whose_text_is_missing_here_waits_for_the_text() -> None:
    async with processes() as (owner, other):
        job = await owner.begin()
        await other.bus.join(job.topic)
        copy = await watched(other, job)
        other.bus.on("delta", lambda event: None)
        await poured(owner, job, "Hello")
        owner.engine.pour("", is_last=True)
        await changed(copy, lambda: copy.ending, seconds=1.5)
        assert shown(copy) == "Hello"


async def test_the_lease_of_a_follower_that_has_gone_runs_out(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LEASE_SECONDS", 0.2)
    async with processes() as (owner, other):
        job = await owner.begin()
        copy = await other.worker.watch(job.inference_id)
        assert copy is not None
        copy.add_reader(stay := lambda: None)
        await poured(owner, job, "Hel")
        await changed(copy, lambda: shown(copy) == "Hel")
        assert owner.worker._leases
        copy.discard_reader(stay)
        await holds(lambda: not owner.worker._leases)


async def test_what_nobody_has_can_not_be_watched() -> None:
    async with processes(1) as (owner,):
        assert await owner.worker.watch(uuid4()) is None


async def test_a_mirror_made_in_the_owners_own_process_is_fed_by_it(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody read the live row in the moment between its commit and the start of its inference."""
    monkeypatch.setattr(follow, "SILENCE_SECONDS", 60.0)
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hel")
        copy = owner.worker.mirror(job.inference_id)
        copy.add_reader(lambda: None)
        await poured(owner, job, "lo")
        await changed(copy, lambda: shown(copy) == "Hello", seconds=2)


# the end of a worker


async def test_a_drain_lets_replies_end() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hel")
        draining = asyncio.create_task(owner.worker.drain(WAIT_SECONDS))
        owner.engine.pour("lo", is_last=True)
        await draining
        assert await row(job) == ("completed", "Hello")


async def test_a_drain_lets_a_reply_end_whose_prompt_was_being_written_when_it_began() -> None:
    async with processes(1) as (owner,):
        taking = owner.worker.take(owner.begin())
        draining = asyncio.create_task(owner.worker.drain(WAIT_SECONDS))
        job = await taking
        owner.engine.pour("All of it.", is_last=True)
        await draining
        assert await row(job) == ("completed", "All of it.")


async def test_a_drain_that_has_waited_long_enough_saves_what_is_left_as_interrupted() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hel")
        await owner.worker.drain(0.1)
        assert await row(job) == ("interrupted", "Hel")
        assert not owner.engine.is_open


async def test_a_worker_that_is_cancelled_saves_what_is_left() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hel")
    assert await row(job) == ("interrupted", "Hel")


# heartbeats and reaping


def _age(job: Job, worker_id: UUID) -> None:
    """The inference is another worker's, of which nothing has been heard for 11 seconds."""
    old = Now() - timedelta(seconds=11)
    Inference.objects.filter(pk=job.inference_id).update(worker=worker_id, heartbeat_at=old)


async def test_an_inference_ended_by_somebody_else_is_given_up_with_its_longer_text() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        reply = await poured(owner, job, "Hello")

        def end_for_the_dead() -> None:
            _age(job, owner.worker.worker_id)
            assert endings.reap()

        await rows.run(end_for_the_dead)
        ending = await changed(reply, lambda: reply.ending, seconds=4)
        assert (ending.status, ending.position) == (Status.INTERRUPTED, 5)
        assert await row(job) == ("interrupted", "Hello")
        assert not owner.engine.is_open


async def test_a_reply_whose_room_is_deleted_ends_and_nothing_comes_back() -> None:
    async with processes(1) as (owner,):
        job = await owner.begin()
        await poured(owner, job, "Hello")
        await rows.run(Room.objects.all().delete)
        await holds(lambda: owner.worker.live_count == 0)
        assert not owner.engine.is_open
        assert not await rows.run(Inference.objects.exists)


async def test_a_worker_reaps_only_when_its_own_heart_has_beaten_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "TRUST_SECONDS", 0.0)
    taken = await rows.run(_take, uuid4())
    assert taken.job is not None
    job = taken.job
    await rows.run(_age, job, uuid4())
    async with processes(1):
        await becomes(lambda: Inference.objects.filter(pk=job.inference_id, status="interrupted").exists())


async def test_a_young_worker_reaps_nobody() -> None:
    taken = await rows.run(_take, uuid4())
    assert taken.job is not None
    await rows.run(_age, taken.job, uuid4())
    async with processes(1) as (young,):
        await young.worker._pulse.beat()
        await young.worker.reap()
        assert await row(taken.job) == ("pending", "")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("LOCK TABLE chat_inference", "no answer within"),
        ("ALTER TABLE chat_inference RENAME TO chat_broken", "does not exist"),
    ],
)
async def test_a_worker_whose_heartbeat_fails_trusts_itself_no_longer(
    statement: str, message: str, settings: Settings
) -> None:
    """Whether the database does not answer or answers with an error."""
    settings.DATABASE_TIMEOUT_SECONDS = 0.3
    async with processes(1) as (process,):
        heart = process.worker._pulse
        await heart.beat()
        assert heart._healthy_since is not None
        async with troubled(statement):
            with pytest.raises(Exception, match=message):
                await heart.beat()
            assert heart._healthy_since is None
        await heart.beat()


@asynccontextmanager
async def troubled(statement: str) -> AsyncIterator[None]:
    """Another connection does this to the table for a while."""
    target = connection.settings_dict
    address = psycopg.conninfo.make_conninfo(
        host=target["HOST"], port=target["PORT"], user=target["USER"], dbname=target["NAME"]
    )
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as other:
        if statement.startswith("LOCK"):
            async with other.transaction(force_rollback=True):
                await other.execute(statement)
                yield
            return
        await other.execute(statement)
        try:
            yield
        finally:
            await other.execute("ALTER TABLE chat_broken RENAME TO chat_inference")
