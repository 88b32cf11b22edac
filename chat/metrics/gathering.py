"""The metrics of all workers in one answer, for a site whose workers are asked behind one address.

Each series gets the label `worker`. Sums are left to Prometheus, which sees by that label when a counter begins anew:
in a sum made here the end of a worker would look like a counter that starts again from all the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from uuid import UUID, uuid4

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inference.bus import WORKERS, Bus, Event

GATHER_SECONDS = 1.0
"""How long the other workers are waited for; nobody knows how many there are."""

Told = dict[str, list[Metric]]


class Gathering:
    """Asks, and answers when another worker asks: one event to all and one back from each, whenever somebody asks."""

    def __init__(self, registry: CollectorRegistry, *, bus: Bus, worker_id: UUID, spawn: Callable[..., object]) -> None:
        self._registry = registry
        self._bus = bus
        self._worker = str(worker_id)
        self._asked: dict[str, Told] = {}
        self._spawn = spawn
        bus.on("tell_metrics", self._hear_question)
        bus.on("metrics", self._hear_answer)

    def of_this_worker(self) -> bytes:
        """Its metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    async def of_all_workers(self) -> bytes:
        """The same of every worker that answers in time."""
        question = uuid4().hex
        told = self._asked[question] = {self._worker: list(self._registry.collect())}
        try:
            event = {"type": "tell_metrics", "question": question, "reply_to": self._bus.address}
            if await self._bus.publish(WORKERS, event):
                await asyncio.sleep(GATHER_SECONDS)
        finally:
            del self._asked[question]
        registry = CollectorRegistry()
        registry.register(_Merged(told))
        return generate_latest(registry)

    def _hear_question(self, event: Event) -> None:
        if event["question"] in self._asked or not event["reply_to"]:
            return
        answer = {"type": "metrics", "question": event["question"], "worker": self._worker}
        families = [_packed(family) for family in self._registry.collect()]
        self._spawn(self._bus.send(event["reply_to"], {**answer, "families": families}))

    def _hear_answer(self, event: Event) -> None:
        told = self._asked.get(event["question"])
        if told is not None:
            told[event["worker"]] = [_unpacked(*packed) for packed in event["families"]]


class _Merged(Collector):
    """One family of each name, with the series of all workers."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("chatsite_workers", "Workers that have answered.", value=len(self._told))
        merged: dict[str, Metric] = {}
        for worker, families in self._told.items():
            for family in families:
                into = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    into.add_sample(sample.name, {"worker": worker, **sample.labels}, sample.value)
        yield from merged.values()


def _packed(family: Metric) -> list[object]:
    samples = [[sample.name, sample.labels, sample.value] for sample in family.samples]
    return [family.name, family.documentation, family.type, samples]


def _unpacked(name: str, documentation: str, kind: str, samples: list[tuple[str, dict[str, str], float]]) -> Metric:
    family = Metric(name, documentation, kind)
    for sample in samples:
        family.add_sample(*sample)
    return family
