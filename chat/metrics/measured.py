"""The metrics of this process: counted as the life of its inferences tells them, or looked up when somebody asks.

Nothing is counted per chunk: a reply's chunks are added when it ends.
"""

from __future__ import annotations

from itertools import product

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.registry import Collector

from chat.models import Inference
from chat.stops import Outcome
from inference.engine import ErrorCode
from inference.journal import LIVE, Status
from inference.life import (
    BeatFailed,
    Checkpointed,
    Ended,
    FirstChunk,
    HeardBy,
    Moment,
    Pressed,
    Reaped,
    Renewed,
    Started,
    Stopped,
    StopTimes,
)

# The library would add to each series another with the time of its beginning.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has left it out

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds, for what should take milliseconds."""
SLOW = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Seconds, for what a model takes."""
ENDS = tuple(status for status in Status if status not in LIVE)
PRESSES = tuple(source for source in Inference.StopSource if source != Inference.StopSource.SHUTDOWN)
CHARACTERS = (0.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0)


class Metrics:
    """Listens to a `Life`. `registry` has everything, for whoever writes it out."""

    def __init__(self) -> None:
        # Not the library's own, which is one for the process, whatever runs in it.
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._make_counters()
        self._make_histograms()
        self._begin_at_zero()

    def add(self, collector: Collector) -> None:
        """Ask this one too whenever somebody wants the metrics."""
        self.registry.register(collector)

    def note_lag(self, seconds: float) -> None:
        """The event loop was so much later than it was asked to be."""
        self._lag.observe(seconds)

    def hear(self, moment: Moment) -> None:
        """Count what the life of inferences tells."""
        match moment:
            case Reaped() | Checkpointed() | BeatFailed() | Renewed():
                self._hear_upkeep(moment)
            case _:
                self._hear_inference(moment)

    def _hear_inference(self, moment: Started | FirstChunk | Stopped | Ended | Pressed) -> None:
        match moment:
            case Started():
                self._started.inc()
            case FirstChunk():
                self._first_token.observe(moment.seconds)
            case Stopped():
                self._hear_stopped(moment)
            case Ended():
                self._hear_ended(moment)
            case Pressed():
                self._hear_pressed(moment)

    def _hear_upkeep(self, moment: Reaped | Checkpointed | BeatFailed | Renewed) -> None:
        match moment:
            case Reaped():
                self._reaped.labels(moment.ending.status).inc()
            case Checkpointed():
                self._checkpoint.observe(moment.seconds)
                self._checkpoint_lag.observe(moment.lag_seconds)
            case BeatFailed():
                self._beats_failed.labels(moment.act).inc()
            case Renewed():
                self._renewals.inc()

    def _hear_stopped(self, moment: Stopped) -> None:
        if moment.seconds is not None:
            self._heard.labels(moment.by).observe(moment.seconds)
        if moment.by is HeardBy.ROW:
            self._repaired.inc()

    def _hear_pressed(self, moment: Pressed) -> None:
        self._stops.labels(moment.source, moment.outcome).inc()
        self._answered.observe(moment.seconds)
        if moment.record_seconds is not None:
            self._recorded.observe(moment.record_seconds)

    def _hear_ended(self, moment: Ended) -> None:
        self._ended.labels(moment.ending.status if moment.ending else "deleted").inc()
        if moment.ending and moment.ending.error_code:
            self._errors.labels(moment.ending.error_code).inc()
        self._duration.observe(moment.seconds)
        self._chunks.inc(moment.chunk_count)
        self._characters.inc(moment.generated)
        if moment.stop is not None:
            self._hear_stop_times(moment.stop, moment.overrun)

    def _hear_stop_times(self, times: StopTimes, overrun: int) -> None:
        self._closed.observe(times.close_seconds)
        self._saved.observe(times.save_seconds)
        self._overrun.observe(overrun)

    def _make_counters(self) -> None:
        self._started = self._counter("inferences_started", "Inferences that this worker has begun.")
        self._ended = self._counter("inferences_ended", "Inferences of this worker that are over.", "status")
        self._errors = self._counter("engine_errors", "Replies that failed, by what went wrong.", "code")
        self._reaped = self._counter("inferences_reaped", "Inferences ended here for dead owners.", "status")
        self._chunks = self._counter("chunks", "Chunks of the replies that are over.")
        self._characters = self._counter("characters", "Characters generated for the replies that are over.")
        self._stops = self._counter("stops", "Presses of Stop answered by this worker.", "source", "outcome")
        self._repaired = self._counter("stop_signals_repaired", "Stops found in the row before any event said them.")
        self._renewals = self._counter("subscription_renewals", "Subscriptions that were lost and renewed.")
        self._beats_failed = self._counter("beats_failed", "Heartbeats, checkpoints and reaps that failed.", "act")

    def _make_histograms(self) -> None:
        self._first_token = self._histogram("first_token_seconds", "From the prompt to the first text.", SLOW)
        self._duration = self._histogram("inference_seconds", "From the start of an inference to its saved end.", SLOW)
        self._recorded = self._histogram("stop_recorded_seconds", "From the press to the record of it.", FAST)
        self._heard = self._histogram("stop_heard_seconds", "From the record to the owner's hearing of it.", FAST, "by")
        self._closed = self._histogram(
            "stop_closed_seconds", "From hearing to the end of the connection to the model.", FAST
        )
        self._saved = self._histogram("stop_saved_seconds", "From the closed connection to the saved reply.", FAST)
        self._answered = self._histogram("stop_answered_seconds", "From the press to its answer.", FAST)
        self._overrun = self._histogram(
            "stop_overrun_characters",
            "Characters generated beyond the position of a stop.",
            CHARACTERS,
        )
        self._checkpoint = self._histogram("checkpoint_seconds", "How long a save of partial texts takes.", FAST)
        self._checkpoint_lag = self._histogram(
            "checkpoint_lag_seconds", "How old unsaved text was when it was saved, at most.", FAST
        )
        self._lag = self._histogram("event_loop_lag_seconds", "How late the event loop is.", FAST)

    def _begin_at_zero(self) -> None:
        # A series that appears with its first event looks to Prometheus as if nothing had happened.
        for status in ENDS:
            self._ended.labels(status)
        for status in (Status.INTERRUPTED, Status.STOPPED):
            self._reaped.labels(status)
        for code in ErrorCode:
            self._errors.labels(code)
        for source, outcome in product(PRESSES, Outcome):
            self._stops.labels(source, outcome)
        for by in HeardBy:
            self._heard.labels(by)
        for act in ("beat", "checkpoint", "reap"):
            self._beats_failed.labels(act)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, namespace="chatsite", registry=self.registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, meaning, labels, namespace="chatsite", registry=self.registry, buckets=buckets)
