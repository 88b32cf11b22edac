"""The WebSocket of one person in one room: frames in, and what `chat.screen` sends out.

Handlers only parse and hand over: Channels gives a consumer one message at a time, so a handler that waited for the
database or for a reply could not see Stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.http import parse_cookie

from chat import frames, runtime
from chat.access import NO_SUCH_ROOM, Door, Refused, Visit, enter
from chat.asking import Asking
from chat.database import rows
from chat.frames import ClientFrame, FrameError
from chat.hello import belongs_to, greeting
from chat.screen import ClientIsGone, Screen
from chat.stops import Outcome, Stop, StopResult, stop
from inference.journal import Ending, JournalError

logger = logging.getLogger(__name__)

NO_ANSWER = 4408
TOO_MANY_SOCKETS = 4429
INTERNAL_ERROR = 1011
TRY_AGAIN_LATER = 1013
MAX_WAITING_FRAMES = 100
MAX_WAITING_STOPS = 100
FOLLOW_SECONDS = 1.0
"""How long a new socket has to follow replies it knows before it hears of their ends without their text."""
STOP_FIRST_SECONDS = 2.0
"""How long a prompt waits for the stops that this socket has sent before it."""


class RoomConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """One socket. Its tasks are its own and end with it; what must outlive it is handed to the worker."""

    # Control and news come through the worker's one subscription, not through one of each socket.
    channel_layer_alias = ""

    visit: Visit
    asking: Asking
    screen: Screen

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._stops: dict[asyncio.Task[None], UUID] = {}
        self._inbox: asyncio.Queue[ClientFrame] = asyncio.Queue(MAX_WAITING_FRAMES)
        self._follows: dict[UUID, Ending | None] = {}
        """What the client has asked to follow and was not shown yet, with the ending that came meanwhile."""
        self._early: dict[UUID, Ending] = {}
        """Endings of what it may be about to ask for."""
        self._patience: asyncio.TimerHandle | None = None
        self._is_settled = False
        """Whether it has had its time to follow."""
        self._opened = asyncio.Event()
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._end()

    async def dispatch(self, message: Any) -> None:
        # Not Channels' own, which first asks Django's one thread-sensitive thread to tidy its connections: that thread
        # may be waiting for a database that is away, and nothing here uses it.
        await getattr(self, message["type"].replace(".", "_"))(message)

    async def connect(self) -> None:
        await self.accept()
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        self.runtime = runtime.current()
        self.screen = Screen(self._send_text, is_html=query.get("format") == ["html"])
        self._spawn(self._work())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        self.screen.hear()
        try:
            self._hand_over(frames.parse(text_data))
        except FrameError as error:
            await self.screen.send(error.frame)

    def end(self, ending: Ending) -> None:
        """Called by the news: a reply of this room has ended, or was cut back after its end."""
        self.asking.ended.set()
        is_fed = self.runtime.worker.find(ending.inference_id) is not None
        position = None if is_fed else self.screen.behind(ending)
        if position is not None:
            # It was ended for an owner that was only cut off and has saved more, or that could not save its end at all.
            self._spawn(self._show(ending.inference_id, position))
            return
        if self.screen.end(ending):
            return
        if ending.inference_id in self._follows:
            # Not before its text: both come in answer to the `follow`.
            self._follows[ending.inference_id] = ending
        elif not self._is_settled:
            self._early[ending.inference_id] = ending
        elif self.screen.is_html:
            # Only the row knows the text that the page has to show now.
            self._spawn(self._show(ending.inference_id, ending.position))
        else:
            self.screen.tell(frames.end_frame(ending))

    async def leave(self, close_code: int) -> None:
        """Close the socket."""
        await self.close(code=close_code)

    def _hand_over(self, frame: ClientFrame) -> None:
        match frame:
            case frames.Pong():
                self.screen.pong(frame.n)
            case frames.Ping() if self._opened.is_set():
                self._answer_ping(frame)
            case frames.Stop():
                self._hand_over_stop(frame)
            case _:
                try:
                    self._inbox.put_nowait(frame)
                except asyncio.QueueFull:
                    raise _too_many(frame) from None
                if isinstance(frame, frames.Follow):
                    self._follows.setdefault(frame.inference_id, self._early.pop(frame.inference_id, None))

    def _answer_ping(self, frame: frames.Ping) -> None:
        self.screen.tell({"type": "pong"} if frame.n is None else {"type": "pong", "n": frame.n})

    def _hand_over_stop(self, frame: frames.Stop) -> None:
        if len(self._stops) >= MAX_WAITING_STOPS and not self._is_first_stop(frame.inference_id):
            raise _too_many(frame)
        task = self._spawn(self._stop(frame))
        self._stops[task] = frame.inference_id
        task.add_done_callback(self._stops.pop)

    def _is_first_stop(self, inference_id: UUID) -> bool:
        """Of a reply that is shown here: it is taken behind any flood."""
        return self.runtime.worker.find(inference_id) is not None and inference_id not in self._stops.values()

    async def _work(self) -> None:
        try:
            await self._open()
            while True:
                await self._handle(await self._inbox.get())
        except Refused as refusal:
            await self.close(code=refusal.close_code)
        except JournalError:
            await self.close(code=TRY_AGAIN_LATER)

    async def _open(self) -> None:
        self.visit = await rows.run(enter, self._door())
        if settings.LIMITS and self.runtime.news.count_of(self.visit.user.pk) >= settings.MAX_SOCKETS_PER_PERSON:
            raise Refused(TOO_MANY_SOCKETS)
        self.asking = Asking(self.runtime, self.visit)
        # Joined before the rows are read, so that nothing falls between.
        await self.runtime.news.join(self)
        hello, room = await greeting(self.runtime.worker, self.visit.room)
        self.runtime.news.learn(self.visit.room.topic, room)
        await self.screen.send(hello)
        if self.screen.is_html:
            await self.screen.send({**room, "role": self.visit.role})
        self._patience = asyncio.get_running_loop().call_later(FOLLOW_SECONDS, self._expect_follows_no_more)
        self._opened.set()
        self._spawn(self._run_screen())

    def _expect_follows_no_more(self) -> None:
        self._is_settled = True
        for ending in self._early.values():
            self.end(ending)
        self._early.clear()

    def _door(self) -> Door:
        headers = dict(self.scope["headers"])
        cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
        try:
            room_id = UUID(self.scope["url_route"]["kwargs"]["room_id"])
        except ValueError:
            raise Refused(NO_SUCH_ROOM) from None
        return Door(cookies.get(settings.SESSION_COOKIE_NAME, ""), room_id)

    async def _handle(self, frame: ClientFrame) -> None:
        try:
            match frame:
                case frames.Ping():
                    self._answer_ping(frame)
                case frames.Follow():
                    await self._follow(frame)
                case frames.Send() | frames.Regenerate() | frames.Continue():
                    await self._ask(frame)
        except FrameError as error:
            await self.screen.send(error.frame)
        except Exception:
            logger.exception("frame %s", frame.type)
            await self.screen.send(FrameError("internal", "Something went wrong.", **_id_of(frame)).frame)

    async def _ask(self, frame: frames.Send | frames.Regenerate | frames.Continue) -> None:
        if self._stops:
            await asyncio.wait(self._stops, timeout=STOP_FIRST_SECONDS)
        for answer in await self.asking.ask(frame):
            self.screen.tell(answer)
            if answer["type"] == "start":
                await self._show(UUID(answer["inference_id"]), 0)

    async def _follow(self, frame: frames.Follow) -> None:
        try:
            is_known = await rows.run(belongs_to, self.visit.room.pk, frame.inference_id)
            if is_known and await self._show(frame.inference_id, frame.position):
                return
        except JournalError:
            raise FrameError("unavailable", "The database can't be reached; try again.", **_id_of(frame)) from None
        finally:
            ending = self._follows.pop(frame.inference_id, None)
            if ending is not None:
                # The row may have been read just before it: the mirror would wait for an `end` that has gone by.
                self.runtime.worker.hear_end(ending)
        raise FrameError("not_found", "There is no such inference in this room.", **_id_of(frame))

    async def _show(self, inference_id: UUID, position: int) -> bool:
        reply = await self.runtime.worker.watch(inference_id)
        if reply is not None:
            self.screen.show(reply, position)
        return reply is not None

    async def _stop(self, frame: frames.Stop) -> None:
        await self._opened.wait()
        press = Stop(
            user=self.visit.user,
            inference_id=frame.inference_id,
            position=frame.position,
            source="page",
            room_id=self.visit.room.pk,
            may_go_unrecorded=self.visit.can_write,
        )
        # The worker's task: a press counts even when the socket closes behind it.
        worker = self.runtime.worker
        result = await asyncio.shield(worker.spawn(stop(worker, press)))
        if result.ending is not None:
            worker.hear_end(result.ending)
        await self._answer_stop(frame, result)

    async def _answer_stop(self, frame: frames.Stop, result: StopResult) -> None:
        if result.position is not None and result.outcome is not Outcome.RECORDED:
            self.screen.freeze(frame.inference_id, result.position)
        answer = {"type": "stop_result", "outcome": str(result.outcome), "position": result.position}
        await self.screen.send({**answer, "inference_id": str(frame.inference_id)})

    async def _run_screen(self) -> None:
        try:
            await self.screen.run()
        except ClientIsGone:
            await self.close(code=NO_ANSWER)

    async def _send_text(self, text: str) -> None:
        try:
            # Past Channels' own `send`: two coroutines less for each frame.
            await self.base_send({"type": "websocket.send", "text": text})
        except Exception as error:
            # Each server has an exception of its own for a client that has just gone; the disconnect follows.
            logger.debug("not sent: %s", error)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guard(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception:
            logger.exception("socket")
            await self.close(code=INTERNAL_ERROR)

    async def _end(self) -> None:
        if self._patience is not None:
            # It would begin to show a reply, on a screen that nobody closes any more.
            self._patience.cancel()
        for task in (tasks := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # It may have joined without ever having been opened.
        if hasattr(self, "visit"):
            self.screen.close()
            await self.runtime.news.leave(self)


def _id_of(frame: ClientFrame) -> dict[str, object]:
    names = ("client_id", "inference_id")
    return {name: str(getattr(frame, name)) for name in names if hasattr(frame, name)}


def _too_many(frame: ClientFrame) -> FrameError:
    return FrameError("rate_limited", "Too many frames at once.", retry_after=1, **_id_of(frame))
