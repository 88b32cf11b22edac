"""One browser tab as a storm needs it: it reconnects whenever its socket goes, and follows on from what it shows."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable

import websockets

from testing.client import Account, Frame, RoomClient
from testing.transcript import Transcript

LOST = (OSError, EOFError, TimeoutError, websockets.WebSocketException)
"""What says that a socket is gone, or never came to be."""
PATIENCE_SECONDS = 60.0
ANSWER_SECONDS = 8.0
PAUSE_SECONDS = 0.3
PASSING_ERRORS = {"restarting", "unavailable"}


class Impatient(AssertionError):
    """The site did not do within PATIENCE_SECONDS what this tab was waiting for."""


class CrossedTranscript(Transcript):
    """Knows that an `end` and the `follow` of its reply may cross on the wire: it is only news of the room then."""

    def _end(self, frame: Frame) -> None:
        reply = self._replies.get(frame["inference_id"])
        if reply is None or reply.pieces or frame["position"] <= reply.position:
            super()._end(frame)


class Socket(RoomClient):
    """A room's socket that can wait for more than one kind of frame."""

    def __init__(self, site_url: str, room_id: str, *, cookies: dict[str, str]) -> None:
        super().__init__(site_url, room_id, cookies=cookies)
        self.transcript = CrossedTranscript()

    async def wait_for_any(self, *wanted: Frame, timeout_seconds: float = ANSWER_SECONDS) -> Frame:
        """The first frame, come or to come, that has all fields of one of `wanted`. Raises one of LOST."""
        return await self._until(lambda: self.first(*wanted), timeout_seconds, lambda: f"none of {wanted}")

    async def wait_for_answer(self, client_id: str, *, has_message: bool) -> Frame:
        """The `start` or `error` of a prompt; when it has been sent before, a lone `message` is an answer too."""
        wanted = ({"type": "start", "client_id": client_id}, {"type": "error", "client_id": client_id})
        if not has_message:
            return await self.wait_for_any(*wanted)
        message = await self._until(lambda: self.message(client_id) or self.first(*wanted), ANSWER_SECONDS, str)
        try:
            return await self.wait_for_any(*wanted, timeout_seconds=1)
        except TimeoutError:
            return message

    async def wait_for_shown_end(self, inference_id: str, *, timeout_seconds: float) -> Frame:
        """An `end` whose text is shown: one that came before the reply was followed is only news of the room."""

        def shown() -> Frame | None:
            if self.last(type="error", code="unavailable", inference_id=inference_id):
                raise ConnectionError("the reply could not be followed")
            end = self.last(type="end", inference_id=inference_id)
            return end if end and self.transcript.position(inference_id) == end["position"] else None

        return await self._until(shown, timeout_seconds, lambda: f"no end of {inference_id}; {self._latest()}")

    def message(self, client_id: str) -> Frame | None:
        messages = self.transcript.of_type("message")
        return next((frame for frame in messages if frame["message"]["client_id"] == client_id), None)

    def first(self, *wanted: Frame) -> Frame | None:
        return next((frame for frame in self.frames if any(fields.items() <= frame.items() for fields in wanted)), None)

    def last(self, **fields: object) -> Frame | None:
        return next((frame for frame in reversed(self.frames) if fields.items() <= frame.items()), None)


class Tab:
    """Shows one room. `address` is asked for a URL at each connect. Close it when done."""

    def __init__(self, person: Account, room_id: str, address: Callable[[], str]) -> None:
        self.person = person
        self.room_id = room_id
        self.attempts = 0
        """How often a prompt had to be sent until it was taken."""
        self.was_busy = False
        """Whether a prompt was refused because the reply before it was still running."""
        self.ends: list[Frame] = []
        """All the ends that came over earlier sockets."""
        self._address = address
        self._kept: dict[str, str] = {}
        self._socket: Socket | None = None

    @property
    def socket(self) -> Socket:
        if self._socket is None:
            raise ConnectionError("this tab is not open")
        return self._socket

    async def open(self) -> None:
        """Connect, and follow on with all that was shown before and all that is live. Tries until it works."""
        deadline = _Deadline("connect")
        while True:
            try:
                return await self._connect()
            except LOST as error:
                await self.drop()
                await deadline.pause(error)

    async def close(self) -> None:
        if self._socket is not None:
            self.ends += self._socket.transcript.of_type("end")
            await self._socket.close()

    async def drop(self) -> None:
        """The network goes away; what was shown stays on the screen."""
        if self._socket is None:
            return
        for inference_id in self._known():
            self._kept[inference_id] = self.shown(inference_id)
        socket, self._socket = self._socket, None
        self.ends += socket.transcript.of_type("end")
        if socket._socket is not None:
            await socket.abort()

    async def reload(self) -> None:
        """Forget everything and show it anew."""
        known = self._known()
        await self.drop()
        self._kept = dict.fromkeys(known, "")
        await self.open()

    async def ask(self, text: str, *, model: str) -> str | None:
        """Send a prompt until it is taken, always under the same id. Gives the inference's id if the tab is told it:
        a prompt that is resent after its reply has ended gets only its `message`.
        """
        client_id = str(uuid.uuid4())
        deadline = _Deadline(f"start of a reply by {model}")
        while True:
            self.attempts += 1
            try:
                await self.socket.send("send", client_id=client_id, text=text, model=model)
                answer = await self.socket.wait_for_answer(client_id, has_message=self.attempts > 1)
            except LOST as error:
                await self._again(deadline, error)
                continue
            if answer["type"] != "error":
                return answer.get("inference_id")
            self.was_busy = self.was_busy or answer["code"] == "busy"
            if answer["code"] not in PASSING_ERRORS | {"busy"}:
                raise AssertionError(f"the prompt was refused: {answer}")
            await self._again(deadline, answer)

    async def stop(self, inference_id: str, position: int | None) -> Frame:
        """Press Stop; as the page does, go on until the site has understood. Gives the last `stop_result`."""
        fields: dict[str, object] = {} if position is None else {"position": position}
        deadline = _Deadline("stop_result")
        while True:
            try:
                await self.socket.send("stop", inference_id=inference_id, **fields)
                result = await self.socket.wait_for(
                    "stop_result", inference_id=inference_id, timeout_seconds=ANSWER_SECONDS
                )
            except LOST as error:
                await self._again(deadline, error)
                continue
            if result["outcome"] != "unavailable":
                return result
            await deadline.pause(result)

    async def show(self, inference_id: str) -> None:
        """Begin to follow a reply that this tab was not told of; nothing if it was."""
        if self._socket is None:
            await self.open()
        if inference_id in self._known():
            return
        self._kept[inference_id] = ""
        try:
            await self._follow(inference_id)
        except LOST:
            await self.drop()
            await self.open()

    async def wait_for_start(self, inference_id: str, timeout_seconds: float) -> bool:
        """Whether this tab is told of the reply in time."""
        try:
            wanted = {"type": "start", "inference_id": inference_id}
            await self.socket.wait_for_any(wanted, timeout_seconds=timeout_seconds)
        except LOST:
            return inference_id in self._known()
        return True

    async def wait_for_position(self, inference_id: str, position: int, *, timeout_seconds: float) -> int:
        """Wait until so much is shown, the reply has ended, or the time is over; gives where the screen stands."""
        give_up_at = time.monotonic() + timeout_seconds
        while self.position(inference_id) < position and self.end_of(inference_id) is None:
            left = give_up_at - time.monotonic()
            if left <= 0:
                break
            try:
                await self.socket._until(
                    lambda: self.position(inference_id) >= position or self.end_of(inference_id),
                    left,
                    lambda: "position",
                )
            except TimeoutError:
                break
            except LOST:
                await self.drop()
                await self.open()
        return self.position(inference_id)

    async def wait_for_end(self, inference_id: str, *, timeout_seconds: float = PATIENCE_SECONDS) -> Frame:
        """The `end`, over any number of connections. Raises Impatient."""
        deadline = _Deadline(f"end of {inference_id}", timeout_seconds)
        while True:
            await self.show(inference_id)
            try:
                return await self.socket.wait_for_shown_end(inference_id, timeout_seconds=deadline.left)
            except LOST as error:
                await self._again(deadline, error)

    def end_of(self, inference_id: str) -> Frame | None:
        """The last `end` that this socket was sent."""
        return self._socket.last(type="end", inference_id=inference_id) if self._socket else None

    def shown(self, inference_id: str) -> str:
        """The text on the screen."""
        kept = self._kept.get(inference_id, "")
        if self._socket is None or inference_id not in self._socket.transcript._replies:
            return kept
        new = self._socket.text(inference_id)
        return kept[: self._socket.position(inference_id) - len(new)] + new

    def position(self, inference_id: str) -> int:
        return len(self.shown(inference_id))

    async def _again(self, deadline: _Deadline, reason: object) -> None:
        await deadline.pause(reason)
        await self.drop()
        await self.open()

    async def _connect(self) -> None:
        socket = Socket(self._address(), self.room_id, cookies=self.person.cookies)
        await socket.connect()
        self._socket = socket
        hello = await socket.wait_for("hello", timeout_seconds=ANSWER_SECONDS)
        for live in hello["live"]:
            self._kept.setdefault(live["inference_id"], "")
        for inference_id in list(self._kept):
            await self._follow(inference_id)

    async def _follow(self, inference_id: str) -> None:
        await self.socket.follow(inference_id, len(self._kept[inference_id]))

    def _known(self) -> list[str]:
        live = list(self._socket.transcript._replies) if self._socket else []
        return list(dict.fromkeys([*self._kept, *live]))


class _Deadline:
    """How long a tab goes on trying."""

    def __init__(self, what: str, seconds: float = PATIENCE_SECONDS) -> None:
        self._what = what
        self._ends_at = time.monotonic() + seconds
        self._seconds = seconds

    @property
    def left(self) -> float:
        return max(0.01, self._ends_at - time.monotonic())

    async def pause(self, reason: object) -> None:
        """Before the next try. Raises Impatient when there is none."""
        if time.monotonic() > self._ends_at:
            raise Impatient(f"no {self._what} within {self._seconds:g} s; last: {str(reason)[:400]}")
        await asyncio.sleep(PAUSE_SECONDS)
