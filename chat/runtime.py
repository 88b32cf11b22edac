"""What runs in this process beside Django: the worker, its bus and the news, wired from the settings.

`chatsite.asgi` starts and stops it; consumers and views reach it through `current()`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from channels.layers import get_channel_layer
from django.conf import settings

from chat.journal import DjangoJournal
from chat.metrics import Gathering, Metrics, Now, watch_lag
from chat.news import News
from chat.presses import Presses
from inference import chronicle
from inference.bus import Bus
from inference.engine import Engine, EngineError
from inference.ids import context_without_ids
from inference.life import Life
from inference.runner import NO_LIMITS, ReplyLimits
from inference.worker import Worker

logger = logging.getLogger(__name__)


def make_engine() -> Engine:
    """The engine that the settings name."""
    if not settings.OPENAI_BASE_URL:
        from inference.engines.demo import DemoEngine

        return DemoEngine(chunk_seconds=settings.DEMO_CHUNK_SECONDS)
    # Imported here: it takes a second, which a site with the demo model need not wait.
    from inference.engines.openai_api import OpenAIEngine

    return OpenAIEngine(
        base_url=settings.OPENAI_BASE_URL,
        api_key=settings.OPENAI_API_KEY,
        models=settings.CHAT_MODELS,
        connect_timeout_seconds=settings.MODEL_CONNECT_TIMEOUT_SECONDS,
        first_chunk_timeout_seconds=settings.MODEL_FIRST_CHUNK_TIMEOUT_SECONDS,
        idle_timeout_seconds=settings.MODEL_IDLE_TIMEOUT_SECONDS,
        max_connections=settings.MODEL_MAX_CONNECTIONS,
    )


def reply_limits() -> ReplyLimits:
    """How much the settings let a model write for one reply."""
    if not settings.LIMITS:
        return NO_LIMITS
    return ReplyLimits(characters=settings.MAX_REPLY_CHARACTERS, seconds=settings.MAX_REPLY_SECONDS)


class Runtime:
    """One for each process. `start` and `stop` may be called twice."""

    def __init__(self) -> None:
        self.bus = Bus(get_channel_layer())
        self.engine = make_engine()
        self.presses = Presses(settings.REPEATED_STOPS_PER_MINUTE)
        self.metrics = Metrics()
        life = Life(self.metrics.hear, chronicle.write)
        self.worker = Worker(
            engine=self.engine, journal=DjangoJournal(), bus=self.bus, limits=reply_limits(), life=life
        )
        self.news = News(self.bus, self.worker)
        self.metrics.add(Now(self._gauges()))
        self.gathering = Gathering(
            self.metrics.registry, bus=self.bus, worker_id=self.worker.worker_id, spawn=self.worker.spawn
        )
        self.streams: Counter[int] = Counter()
        """How many event streams each person has open here."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to run in the current event loop."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="runtime", context=context_without_ids())

    async def stop(self, drain_seconds: float) -> None:
        """Close the sockets, let replies end for so long, save the rest, and end everything that was started."""
        if self._task is None:
            return
        task, self._task = self._task, None
        self.worker.is_draining = True
        await self.news.close_all()
        await self.worker.drain(drain_seconds)
        task.cancel()
        await asyncio.wait({task})
        await self.engine.aclose()

    async def default_model(self) -> str:
        """The model of a prompt that names none; empty when the model server does not tell its models."""
        configured: str = settings.CHAT_DEFAULT_MODEL
        if configured:
            return configured
        try:
            models = await self.engine.models()
        except EngineError as error:
            logger.warning("no list of models: %s", error)
            return ""
        return models[0] if models else ""

    @property
    def is_running(self) -> bool:
        """False once it was stopped, or has died of an error."""
        return self._task is not None and not self._task.done()

    def _gauges(self) -> dict[str, tuple[str, Callable[[], float]]]:
        worker = self.worker
        return {
            "live_inferences": ("Inferences that this worker owns.", lambda: worker.live_count),
            "followed_inferences": ("Replies of other workers that are read here.", lambda: worker.followed_count),
            "open_sockets": ("Sockets in rooms.", lambda: len(self.news.sockets)),
            "stop_signals_held": ("Stops heard of and not yet forgotten.", lambda: len(worker.signals)),
            "worker_draining": ("1 while this worker ends.", lambda: worker.is_draining),
            "subscribed": ("1 while the channel layer hears this worker.", self.bus.has_subscription.is_set),
        }

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as services:
                services.create_task(self.worker.run())
                services.create_task(self.news.run())
                services.create_task(watch_lag(self.metrics.note_lag))
        except Exception:
            logger.exception("the worker of this process has died; /healthz says so")


_runtimes: dict[asyncio.AbstractEventLoop, Runtime] = {}


def current() -> Runtime:
    """The runtime of this event loop, started when it is first asked for."""
    loop = asyncio.get_running_loop()
    if loop not in _runtimes:
        _runtimes[loop] = Runtime()
        _runtimes[loop].start()
    return _runtimes[loop]


async def shut_down(drain_seconds: float) -> None:
    """Stop the runtime of this event loop, if there is one."""
    runtime = _runtimes.get(asyncio.get_running_loop())
    if runtime is not None:
        await runtime.stop(drain_seconds)
        del _runtimes[asyncio.get_running_loop()]
