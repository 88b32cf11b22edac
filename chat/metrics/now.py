"""What holds in this process at the moment: looked up when the metrics are asked for, and the event loop's lag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

LAG_SECONDS = 0.5
"""How often the event loop is asked to be on time."""

Look = Callable[[], float]


class Now(Collector):
    """Gauges by name: what each means, and how to look it up."""

    def __init__(self, gauges: Mapping[str, tuple[str, Look]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        for name, (meaning, look) in self._gauges.items():
            yield GaugeMetricFamily(f"chatsite_{name}", meaning, value=look())


async def watch_lag(note: Callable[[float], None]) -> None:
    """Note how late the event loop is, again and again until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due_at = loop.time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        note(max(0.0, loop.time() - due_at))
