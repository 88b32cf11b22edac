"""The owner's side of one inference: whatever the engine does and whenever a stop comes, the right text is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from inference import runner as runner_module
from inference.engine import Chunk, Completion, EngineError, ErrorCode, Part, Turn, Usage
from inference.journal import Ending, Status
from inference.life import Life
from inference.reply import text_of
from inference.runner import NO_LIMITS, Job, ReplyLimits, Runner
from inference.stop import StopSignal, StopSignalHolder

TOPIC = "room.x"
LAST = Chunk(finish_reason="stop")


class ScriptedEngine:
    """Yields what a test wrote: chunks, errors to raise, and functions to await in between."""

    name = "scripted"

    def __init__(self, *steps: Chunk | Exception | Callable[[], Awaitable[object]]) -> None:
        self.steps = steps
        self.is_open = False
        self.was_asked = False
        self.closed = asyncio.Event()

    async def stream(self, completion: Completion) -> AsyncGenerator[Chunk, None]:
        self.is_open = self.was_asked = True
        try:
            for step in self.steps:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, Chunk):
                    yield step
                else:
                    await step()
        finally:
            self.is_open = False
            self.closed.set()

    async def models(self) -> Sequence[str]:
        return ["scripted"]

    async def aclose(self) -> None: ...


class Waits:
    """A step that waits for ever, and tells when the engine has got there."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await asyncio.Event().wait()


class SwallowsCancel(Waits):
    """A step that takes cancels for something else and goes on, so many times."""

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self.times = times

    async def __call__(self) -> None:
        for _ in range(self.times):
            try:
                await super().__call__()
            except asyncio.CancelledError:
                continue


def runner_of(
    engine: ScriptedEngine,
    *,
    kept: str = "",
    signals: StopSignalHolder | None = None,
    limits: ReplyLimits = NO_LIMITS,
) -> Runner:
    completion = Completion("m", [Turn("user", "Hi")])
    job = Job(uuid4(), uuid4(), TOPIC, completion, kept=kept)
    held = StopSignalHolder() if signals is None else signals
    return Runner(job, engine=engine, signals=held, life=Life(), limits=limits)


def signal_for(runner: Runner, position: int | None, *, topic: str = TOPIC) -> StopSignal:
    return StopSignal(runner.job.inference_id, topic, position, user_id=1, source="page")


def saved(runner: Runner) -> tuple[Status, str]:
    """The status and the text that would be saved, cut as the journal cuts it."""
    return runner.result().status, text_of(runner.reply.runs(), Part.CONTENT)


@asynccontextmanager
async def generating(runner: Runner, reached: asyncio.Event) -> AsyncIterator[None]:
    """The engine has come to a step; afterwards the generation ends within a second."""
    task = asyncio.create_task(runner.generate())
    async with asyncio.timeout(5):
        await reached.wait()
        yield
    async with asyncio.timeout(1):
        await task


async def test_a_reply_that_ends_by_itself_is_completed_with_its_reason_and_usage() -> None:
    usage = Usage(7, 2)
    engine = ScriptedEngine(Chunk(), Chunk("Hel"), Chunk("lo"), Chunk(finish_reason="length"), Chunk(usage=usage))
    runner = runner_of(engine)
    await runner.generate()
    result = runner.result()
    assert saved(runner) == (Status.COMPLETED, "Hello")
    assert (result.finish_reason, result.usage, result.progress.chunk_count) == ("length", usage, 2)
    assert result.progress.first_chunk_seconds is not None
    assert (result.error_code, result.stop, engine.is_open) == (None, None, False)


async def test_a_stop_before_the_first_step_asks_the_engine_nothing() -> None:
    engine = ScriptedEngine(Chunk("never"), LAST)
    runner = runner_of(engine)
    assert runner.stop(signal_for(runner, 0))
    await runner.generate()
    assert saved(runner) == (Status.STOPPED, "")
    assert not engine.was_asked


async def test_a_stop_right_after_the_start_catches_a_task_that_has_not_run_yet() -> None:
    """A task that is cancelled before its first step never runs its `finally`; the runner must not need it."""
    engine = ScriptedEngine(Chunk("never"), LAST)
    runner = runner_of(engine)
    generation = asyncio.create_task(runner.generate())
    await asyncio.sleep(0)  # `generate` has made its task, which has not begun
    runner.stop(signal_for(runner, 0))
    async with asyncio.timeout(1):
        await generation
    assert saved(runner) == (Status.STOPPED, "")
    assert not engine.was_asked


async def test_a_stop_before_the_first_chunk_closes_the_engine() -> None:
    waits = Waits()
    engine = ScriptedEngine(waits, Chunk("never"))
    runner = runner_of(engine)
    async with generating(runner, waits.reached):
        runner.stop(signal_for(runner, 0))
    assert saved(runner) == (Status.STOPPED, "")
    assert not engine.is_open
    assert runner.result().progress.first_chunk_seconds is None


async def test_a_stop_between_chunks_cuts_to_its_position_at_once() -> None:
    waits = Waits()
    engine = ScriptedEngine(Chunk("Hello"), Chunk(" world"), waits, Chunk("never"))
    runner = runner_of(engine)
    async with generating(runner, waits.reached):
        runner.stop(signal_for(runner, 7))
        assert runner.reply.position == 7
    assert saved(runner) == (Status.STOPPED, "Hello w")
    assert runner.result().progress.position == 11
    assert not engine.is_open


@pytest.mark.parametrize(
    ("kept", "asked", "position"),
    [("", None, 5), ("", 99, 5), ("", 10**30, 5), ("", 0, 0), ("Kept", 2, 4), ("Kept", 6, 6), ("Kept", None, 9)],
)
async def test_a_stop_is_clamped_between_the_kept_text_and_the_end(kept: str, asked: int | None, position: int) -> None:
    waits = Waits()
    runner = runner_of(ScriptedEngine(Chunk("Hello"), waits), kept=kept)
    async with generating(runner, waits.reached):
        runner.stop(signal_for(runner, asked))
    stop = runner.result().stop
    assert stop is not None
    assert (stop.position, runner.reply.position) == (position, position)


async def test_the_first_of_two_stops_counts() -> None:
    waits = Waits()
    runner = runner_of(ScriptedEngine(Chunk("Hello world"), waits))
    async with generating(runner, waits.reached):
        assert runner.stop(signal_for(runner, 5))
        assert runner.stop(signal_for(runner, 2))
    assert saved(runner) == (Status.STOPPED, "Hello")


async def test_a_stop_that_names_another_room_is_refused() -> None:
    runner = runner_of(ScriptedEngine(Chunk("Hello"), LAST))
    assert not runner.stop(signal_for(runner, 0, topic="room.other"))
    await runner.generate()
    assert saved(runner) == (Status.COMPLETED, "Hello")


async def test_a_signal_in_the_holder_ends_the_reply_at_the_next_chunk() -> None:
    """Whoever put it there may have missed this runner by a moment."""
    signals = StopSignalHolder()
    waits = asyncio.Event()

    async def put() -> None:
        signals.put(signal_for(runner, 3))

    engine = ScriptedEngine(Chunk("Hello"), put, Chunk("never"), waits.wait)
    runner = runner_of(engine, signals=signals)
    async with asyncio.timeout(1):
        await runner.generate()
    assert saved(runner) == (Status.STOPPED, "Hel")
    assert not engine.is_open


async def test_a_swallowed_cancel_is_found_by_the_note_and_its_chunk_is_not_taken() -> None:
    swallows = SwallowsCancel()
    engine = ScriptedEngine(Chunk("Hello"), swallows, Chunk("never"), Waits())
    runner = runner_of(engine)
    async with generating(runner, swallows.reached):
        runner.stop(signal_for(runner, None))
    assert saved(runner) == (Status.STOPPED, "Hello")
    assert runner.result().progress.position == 5
    assert not engine.is_open


async def test_a_cancel_that_is_swallowed_before_a_long_wait_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "CANCEL_AGAIN_SECONDS", 0.01)
    swallows = SwallowsCancel(times=5)
    engine = ScriptedEngine(Chunk("Hello"), swallows, Waits(), Chunk("never"))
    runner = runner_of(engine)
    async with generating(runner, swallows.reached):
        runner.stop(signal_for(runner, None))
    assert saved(runner) == (Status.STOPPED, "Hello")
    assert not engine.is_open


async def test_a_stop_with_the_last_chunk_in_flight_wins_over_the_end() -> None:
    swallows = SwallowsCancel()
    runner = runner_of(ScriptedEngine(Chunk("Hello"), swallows, LAST))
    async with generating(runner, swallows.reached):
        runner.stop(signal_for(runner, 4))
    assert saved(runner) == (Status.STOPPED, "Hell")
    assert runner.result().finish_reason is None


async def test_a_stop_between_the_engines_end_and_the_save_wins() -> None:
    runner = runner_of(ScriptedEngine(Chunk("Hello"), LAST))
    await runner.generate()
    assert runner.stop(signal_for(runner, 4))
    assert saved(runner) == (Status.STOPPED, "Hell")
    assert runner.result().finish_reason is None


async def test_an_error_of_the_engine_keeps_the_text_and_its_code() -> None:
    runner = runner_of(ScriptedEngine(Chunk("Hello"), EngineError(ErrorCode.CUT_OFF, "gone")))
    await runner.generate()
    assert saved(runner) == (Status.FAILED, "Hello")
    assert runner.result().error_code == "cut_off"


async def test_an_error_that_is_no_engine_error_is_internal() -> None:
    runner = runner_of(ScriptedEngine(Chunk("Hello"), ZeroDivisionError()))
    await runner.generate()
    assert saved(runner) == (Status.FAILED, "Hello")
    assert runner.result().error_code == "internal"


async def test_an_engine_that_ends_without_a_finish_reason_was_cut_off() -> None:
    runner = runner_of(ScriptedEngine(Chunk("Hello")))
    await runner.generate()
    assert saved(runner) == (Status.FAILED, "Hello")
    assert runner.result().error_code == "cut_off"


async def test_an_error_while_a_stop_closes_the_engine_is_still_a_stop() -> None:
    waits = Waits()

    async def fails() -> None:
        try:
            await waits()
        except asyncio.CancelledError:
            raise EngineError(ErrorCode.MODEL_UNAVAILABLE, "closed under our hands") from None

    runner = runner_of(ScriptedEngine(Chunk("Hello"), fails))
    async with generating(runner, waits.reached):
        runner.stop(signal_for(runner, None))
    assert saved(runner) == (Status.STOPPED, "Hello")
    assert runner.result().error_code is None


@pytest.mark.parametrize("chunks", [["Hel", "lo", "!"], ["Hello!"], list("Hello!")], ids=repr)
async def test_a_reply_is_cut_at_its_length_limit_and_the_model_is_freed(chunks: list[str]) -> None:
    """Reasoning counts too; what a continue keeps does not."""
    waits = Waits()
    engine = ScriptedEngine(Chunk("hm", Part.REASONING), *map(Chunk, chunks), waits, LAST)
    runner = runner_of(engine, kept="Kept. ", limits=ReplyLimits(characters=7))
    async with asyncio.timeout(5):
        await runner.generate()
    assert saved(runner) == (Status.COMPLETED, "Kept. Hello")
    assert (runner.result().finish_reason, engine.is_open) == ("length", False)
    assert not waits.reached.is_set()


async def test_a_reply_of_exactly_the_limit_ends_as_the_model_says() -> None:
    runner = runner_of(ScriptedEngine(Chunk("Hello"), LAST), limits=ReplyLimits(characters=5))
    await runner.generate()
    assert saved(runner) == (Status.COMPLETED, "Hello")
    assert runner.result().finish_reason == "stop"


@pytest.mark.parametrize("step", [Waits, SwallowsCancel])
async def test_a_reply_that_takes_too_long_fails_with_timeout_and_keeps_its_text(step: type[Waits]) -> None:
    engine = ScriptedEngine(Chunk("Hello"), step(), Chunk("never"), LAST)
    runner = runner_of(engine, limits=ReplyLimits(seconds=0.1))
    async with asyncio.timeout(5):
        await runner.generate()
    assert saved(runner) == (Status.FAILED, "Hello")
    assert (runner.result().error_code, engine.is_open) == (ErrorCode.TIMEOUT, False)


async def test_an_interrupted_reply_keeps_its_text() -> None:
    waits = Waits()
    engine = ScriptedEngine(Chunk("Hello"), waits)
    runner = runner_of(engine)
    async with generating(runner, waits.reached):
        runner.interrupt()
    assert saved(runner) == (Status.INTERRUPTED, "Hello")
    assert not engine.is_open


async def test_a_stop_after_an_interruption_is_a_stop() -> None:
    waits = Waits()
    runner = runner_of(ScriptedEngine(Chunk("Hello"), waits))
    async with generating(runner, waits.reached):
        runner.interrupt()
        runner.stop(signal_for(runner, 1))
    assert saved(runner) == (Status.STOPPED, "H")


async def test_the_engine_is_closed_when_the_owner_itself_is_cancelled() -> None:
    waits = Waits()
    engine = ScriptedEngine(Chunk("Hello"), waits)
    runner = runner_of(engine)
    task = asyncio.create_task(runner.generate())
    async with asyncio.timeout(5):
        await waits.reached.wait()
    task.cancel()
    await asyncio.wait({task})
    async with asyncio.timeout(1):
        await engine.closed.wait()
    assert task.cancelled()


async def test_nul_and_split_pairs_are_cleaned_for_each_part_on_its_own() -> None:
    runner = runner_of(
        ScriptedEngine(
            Chunk("\ud83c", Part.REASONING), Chunk("\udf0a", Part.REASONING), Chunk("a\x00\ud83c"), Chunk(""), LAST
        )
    )
    await runner.generate()
    assert runner.reply.runs() == [(Part.REASONING, "🌊"), (Part.CONTENT, "a\ufffd\ufffd")]


async def test_half_a_pair_in_flight_is_not_shown_when_a_stop_comes() -> None:
    waits = Waits()
    runner = runner_of(ScriptedEngine(Chunk("a\ud83c"), waits))
    async with generating(runner, waits.reached):
        runner.stop(signal_for(runner, None))
    assert saved(runner) == (Status.STOPPED, "a")


async def test_a_reply_whose_rows_are_gone_ends_without_an_ending() -> None:
    runner = runner_of(ScriptedEngine(LAST))
    runner.end(None)
    assert (await runner.ended, runner.reply.ending) == (None, None)


async def test_the_rows_have_the_last_word_on_the_ending() -> None:
    runner = runner_of(ScriptedEngine(Chunk("Hello"), LAST))
    await runner.generate()
    ending = Ending(runner.job.inference_id, runner.job.message_id, TOPIC, Status.STOPPED, 2)
    runner.end(ending)
    assert (await runner.ended, runner.reply.position) == (ending, 2)
