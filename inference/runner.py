"""Runs one inference in its owner: reads the engine into the buffer and ends at once when told to."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from uuid import UUID

from inference.engine import Chunk, Completion, Engine, EngineError, ErrorCode, Part, Usage
from inference.journal import Ending, Progress, Result, Status
from inference.life import Ended, FirstChunk, HeardBy, Life, Stopped, StopTimes
from inference.reply import Reply
from inference.stop import StopSignal, StopSignalHolder
from inference.text import ChunkCleaner, quotes

logger = logging.getLogger(__name__)

LENGTH = "length"
"""The API's finish reason of a reply that has reached a limit."""
CANCEL_AGAIN_SECONDS = 0.25
"""A cancel can be swallowed by what the engine awaits; it is repeated until the generation has ended."""


@dataclass(frozen=True, slots=True)
class Job:
    """One inference to run. `topic` is the channel-layer group that is told of it; `kept` is what a continue keeps."""

    inference_id: UUID
    message_id: UUID
    topic: str
    completion: Completion
    kept: str = ""


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """How much a model may write for one inference, beyond what a continue keeps, and for how long; None: no bound."""

    characters: int | None = None
    seconds: float | None = None


NO_LIMITS = ReplyLimits()


class Runner:
    """The owner's side of one inference. `generate()` runs once; `stop` and `interrupt` may come at any moment."""

    def __init__(
        self,
        job: Job,
        *,
        engine: Engine,
        signals: StopSignalHolder,
        life: Life,
        limits: ReplyLimits = NO_LIMITS,
        database_time: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.job = job
        self.reply = Reply(job.inference_id, runs=[(Part.CONTENT, job.kept)])
        self.ended: asyncio.Future[Ending | None] = asyncio.get_running_loop().create_future()
        """Set by the worker after the commit; None when the rows are gone."""
        self._engine = engine
        self._signals = signals
        self._limits = limits
        self._life = life
        self._database_time = database_time
        self._cleaners = {part: ChunkCleaner() for part in Part}
        self._started_at = self._closed_at = time.monotonic()
        self._stopped_at: float | None = None
        self._first_chunk_seconds: float | None = None
        self._chunk_count = 0
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self._error: EngineError | None = None
        self._stop: StopSignal | None = None
        self._is_interrupted = False
        self._is_full = False
        self._generation: asyncio.Task[None] | None = None

    @property
    def is_stopped(self) -> bool:
        return self._stop is not None

    def stop(self, signal: StopSignal, by: HeardBy = HeardBy.HERE) -> bool:
        """Note a stop, show nothing beyond it, and cancel whatever is awaited. False when it is not meant for this job.

        The first stop counts. A stop that comes while the ending is being saved still counts if the rows say so.
        """
        if signal.topic != self.job.topic:
            return False
        if self._stop is None:
            position = self._clamp(signal.position)
            self._stop = replace(signal, position=position)
            self._stopped_at = time.monotonic()
            self.reply.freeze(position)
            self._cancel()
            seconds = signal.seconds_since_record(self._database_time())
            self._life.tell(Stopped(signal.inference_id, signal.source, by, seconds))
        return True

    def interrupt(self) -> None:
        """End now with what there is: this worker shuts down, or the rows have ended without it."""
        self._is_interrupted = True
        self._cancel()

    def fail(self, detail: str) -> None:
        """End as failed with the text alone: the rows refuse what the engine has told beside it."""
        self._error, self._usage = EngineError(ErrorCode.INTERNAL, detail), None

    async def generate(self) -> None:
        """Fill the buffer until the engine ends or is cut short. Raises only CancelledError, when itself cancelled."""
        if self._is_cut_short:
            return
        self._generation = asyncio.create_task(self._read(), name=f"generate {self.job.inference_id}")
        try:
            # Not awaited directly: a generation that is cancelled before its first step must not end this task too.
            _, overdue = await asyncio.wait({self._generation}, timeout=self._limits.seconds)
            if overdue:
                self._error = EngineError(ErrorCode.TIMEOUT, f"not done after {self._limits.seconds:g} s")
                self._cancel()
                await asyncio.wait(overdue)
        finally:
            self._cancel()
        self._closed_at = time.monotonic()
        self._note_failure(self._generation)

    def end(self, ending: Ending | None) -> None:
        """The rows have ended; None when they are gone."""
        if ending is not None:
            self.reply.end(ending)
        self.ended.set_result(ending)
        self._life.tell(self._ended(ending))

    def progress(self) -> Progress:
        """What a checkpoint saves: all that was generated, since the rows may know of an earlier or later stop."""
        end = self.reply.generated_position
        return Progress(
            inference_id=self.job.inference_id,
            runs=self.reply.runs(0, end),
            position=end,
            chunk_count=self._chunk_count,
            first_chunk_seconds=self._first_chunk_seconds,
        )

    def result(self) -> Result:
        """How this inference ends, as far as its owner knows now."""
        error = self._error
        return Result(
            progress=self.progress(),
            status=self._status,
            finish_reason=self._finish_reason if self._status is Status.COMPLETED else None,
            error_code=error.code if error and self._status is Status.FAILED else None,
            usage=self._usage,
            stop=self._stop,
            floor=len(self.job.kept),
        )

    @property
    def _is_cut_short(self) -> bool:
        return self._stop is not None or self._is_interrupted or self._error is not None

    @property
    def _status(self) -> Status:
        if self._stop is not None:
            return Status.STOPPED
        if self._error is not None:
            return Status.FAILED
        if self._finish_reason is None:
            return Status.INTERRUPTED
        return Status.COMPLETED

    async def _read(self) -> None:
        async with aclosing(self._engine.stream(self.job.completion)) as chunks:
            async for chunk in chunks:
                # A swallowed cancel ends here: the note and the signal are looked up after every await.
                if self._is_cut_short or self._has_signal():
                    return
                self._take(chunk)
                if self._is_full:
                    return
        for part, cleaner in self._cleaners.items():
            self.reply.append(part, cleaner.flush())
        if self._finish_reason is None:
            raise EngineError(ErrorCode.CUT_OFF, "the engine ended without a finish reason")

    def _has_signal(self) -> bool:
        signal = self._signals.get(self.job.inference_id)
        return signal is not None and self.stop(signal, HeardBy.EVENT)

    def _take(self, chunk: Chunk) -> None:
        if chunk.text:
            self._chunk_count += 1
            if self._first_chunk_seconds is None:
                self._note_first_chunk()
            self._append(chunk.part, self._cleaners[chunk.part].feed(chunk.text))
        self._finish_reason = LENGTH if self._is_full else chunk.finish_reason or self._finish_reason
        self._usage = chunk.usage or self._usage

    def _note_first_chunk(self) -> None:
        self._first_chunk_seconds = time.monotonic() - self._started_at
        self._life.tell(FirstChunk(self.job.inference_id, self._first_chunk_seconds))

    def _append(self, part: Part, text: str) -> None:
        """Add what the limit leaves room for; only text that is beyond it makes the reply full."""
        if self._limits.characters is not None:
            room = len(self.job.kept) + self._limits.characters - self.reply.generated_position
            self._is_full = len(text) > room
            text = text[:room]
        self.reply.append(part, text)

    def _note_failure(self, generation: asyncio.Task[None]) -> None:
        if self._error is not None or generation.cancelled() or generation.exception() is None:
            return
        error = generation.exception()
        if isinstance(error, EngineError):
            logger.warning("failed: %s: %s", error.code, self._unless_quoted(str(error)))
            self._error = error
        else:
            logger.error("failed", exc_info=error)
            self._error = EngineError(ErrorCode.INTERNAL, repr(error))

    def _unless_quoted(self, detail: str) -> str:
        # Some servers repeat the prompt in what they say of it.
        is_quoted = quotes(detail, [turn.content for turn in self.job.completion.turns])
        return "what the model server says repeats the prompt" if is_quoted else detail

    def _ended(self, ending: Ending | None) -> Ended:
        end = self.reply.generated_position
        is_stopped = ending is not None and ending.status is Status.STOPPED
        return Ended(
            inference_id=self.job.inference_id,
            ending=ending,
            seconds=time.monotonic() - self._started_at,
            chunk_count=self._chunk_count,
            generated=end - len(self.job.kept),
            overrun=max(0, end - ending.position) if ending and is_stopped else 0,
            stop=self._stop_times() if is_stopped else None,
        )

    def _stop_times(self) -> StopTimes | None:
        if self._stopped_at is None:
            return None
        close_seconds = max(0.0, self._closed_at - self._stopped_at)
        return StopTimes(close_seconds, time.monotonic() - max(self._closed_at, self._stopped_at))

    def _cancel(self) -> None:
        if self._generation is None or self._generation.done():
            return
        self._generation.cancel()
        asyncio.get_running_loop().call_later(CANCEL_AGAIN_SECONDS, self._cancel)

    def _clamp(self, position: int | None) -> int:
        end = self.reply.generated_position
        return end if position is None else max(len(self.job.kept), min(position, end))
