"""People who use the site from outside: over HTTP (`Account`) and over a room's WebSocket (`RoomClient`).

They speak the site's protocol strictly and know nothing of its code. What the protocol forbids raises
`ProtocolViolation` in the test that is waiting.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Callable
from typing import Any, Self, TypeVar

import httpx
import websockets
from websockets.asyncio.client import ClientConnection

from testing.transcript import Frame, ProtocolViolation, Transcript

__all__ = ["Account", "Frame", "ProtocolViolation", "RoomClient"]

T = TypeVar("T")

HTTP_TIMEOUT_SECONDS = 15.0
WAIT_SECONDS = 10.0
ROOM_PATH = re.compile(r"/rooms/([0-9a-f-]{36})/")


class Account:
    """A signed-in person: `Account(site_url, "alice").sign_up()`. Closing it ends nothing on the site."""

    password = "correct horse battery staple"

    def __init__(self, site_url: str, username: str) -> None:
        self.site_url = site_url.rstrip("/")
        self.username = username
        self.http = httpx.Client(base_url=self.site_url, timeout=HTTP_TIMEOUT_SECONDS, trust_env=False)

    @property
    def cookies(self) -> dict[str, str]:
        return dict(self.http.cookies)

    def sign_up(self) -> Self:
        fields = {"username": self.username, "password1": self.password, "password2": self.password}
        return self._enter("/accounts/signup/", fields)

    def log_in(self) -> Self:
        return self._enter("/accounts/login/", {"username": self.username, "password": self.password})

    def log_out(self) -> None:
        self.post_form("/accounts/logout/", {})

    def create_room(self, title: str = "A room") -> str:
        """Gives the room's id, which the redirect to its page names."""
        location = self.post_form("/rooms/", {"title": title}).headers.get("location", "")
        found = ROOM_PATH.search(location)
        assert found, f"POST /rooms/ led to {location!r}, which is no room"
        return found[1]

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path)

    def post_form(self, path: str, fields: dict[str, str]) -> httpx.Response:
        """Posts a form as the page does, and wants the redirect that says it was taken."""
        response = self.http.post(path, data={**fields, "csrfmiddlewaretoken": self._csrf_token()})
        assert response.is_redirect, f"POST {path}: {response.status_code}\n{response.text[:2000]}"
        return response

    def stop(self, inference_id: str, position: int | None = None) -> httpx.Response:
        """`POST /api/v1/inference/stop`, with the position only where one is given."""
        return self.http.post("/api/v1/inference/stop", json=_stop(inference_id, position), headers=self._csrf_header())

    async def astop(self, inference_id: str, position: int | None = None) -> httpx.Response:
        """`stop` for a test whose sockets have to go on meanwhile."""
        return await asyncio.to_thread(self.stop, inference_id, position)

    def open_room(self, room_id: str, **options: Any) -> RoomClient:
        """Not connected yet: `async with alice.open_room(room_id) as socket: …`."""
        return RoomClient(self.site_url, room_id, cookies=self.cookies, **options)

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _enter(self, path: str, fields: dict[str, str]) -> Self:
        self.post_form(path, fields)
        assert "sessionid" in self.cookies, f"{path} gave no session"
        return self

    def _csrf_token(self) -> str:
        if "csrftoken" not in self.http.cookies:
            self.http.get("/accounts/login/")
        return self.http.cookies["csrftoken"]

    def _csrf_header(self) -> dict[str, str]:
        return {"X-CSRFToken": self._csrf_token()}


class RoomClient:
    """One socket in one room, as an async context manager. Every frame it has received is in `transcript`.

    `answers_pings=False` makes it a client that the site's flow control holds back. A refused handshake raises
    `websockets.InvalidStatus`.
    """

    def __init__(
        self,
        site_url: str,
        room_id: str,
        *,
        cookies: dict[str, str],
        origin: str | None = None,
        query: str = "",
        answers_pings: bool = True,
    ) -> None:
        self.url = f"{site_url.replace('http', 'ws', 1)}/ws/rooms/{room_id}/{query}"
        self.origin = origin or site_url
        self.cookies = cookies
        self.answers_pings = answers_pings
        self.transcript = Transcript()
        self._taken: set[int] = set()
        self._arrived = asyncio.Condition()
        self._reading = asyncio.Event()
        self._reading.set()
        self._failure: Exception | None = None
        self._has_ended = False
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def frames(self) -> list[Frame]:
        return self.transcript.frames

    @property
    def close_code(self) -> int | None:
        """The code the server closed with; None while the socket is open."""
        return self._connected.close_code

    async def connect(self) -> Self:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        self._socket = await websockets.connect(
            self.url,
            additional_headers={"Cookie": cookie, "Origin": self.origin},
            compression=None,
            max_size=None,
            ping_interval=None,
            proxy=None,
            open_timeout=WAIT_SECONDS,
            close_timeout=2,
        )
        self._reader = asyncio.create_task(self._read(self._socket))
        return self

    async def close(self) -> None:
        if self._socket is not None:
            self._reading.set()
            await self._socket.close()
        if self._reader is not None:
            await self._reader

    async def abort(self) -> None:
        """Cuts the connection without a word, as a lost network does."""
        self._connected.transport.abort()
        await self.wait_closed()

    async def wait_closed(self, *, timeout_seconds: float = WAIT_SECONDS) -> int | None:
        """Waits until the server has closed; gives the close code."""
        async with asyncio.timeout(timeout_seconds):
            await self._connected.wait_closed()
        return self.close_code

    def pause_reading(self) -> None:
        """From now on the kernel's buffers fill up, as with a slow network."""
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def send_bytes_past_the_protocol(self, data: bytes) -> int:
        """Hand bytes to the kernel as they are; returns how many it has not taken yet."""
        self._connected.transport.write(data)
        return self._connected.transport.get_write_buffer_size()

    async def send(self, frame_type: str, **fields: object) -> None:
        frame = {"type": frame_type, **fields}
        self.transcript.note_sent(frame)
        await self.send_raw(json.dumps(frame))

    async def send_raw(self, text: str) -> None:
        """For what no decent client sends."""
        await self._connected.send(text)

    async def ask(self, text: str, **fields: object) -> Frame:
        """Sends a prompt under a new `client_id` and gives the `start` of its reply."""
        client_id = str(uuid.uuid4())
        await self.send("send", client_id=client_id, text=text, **fields)
        return await self.wait_for("start", client_id=client_id)

    async def stop(self, inference_id: str, position: int | None = None) -> Frame:
        """Gives the `stop_result`."""
        await self.send("stop", **_stop(inference_id, position))
        return await self.wait_for("stop_result", inference_id=inference_id)

    async def follow(self, inference_id: str, position: int = 0) -> None:
        await self.send("follow", inference_id=inference_id, position=position)

    async def wait_for(self, frame_type: str, *, timeout_seconds: float = WAIT_SECONDS, **match: object) -> Frame:
        """The first frame of this type with these fields that no earlier call has given, come or to come.

        Raises `TimeoutError` with the frames that did come, and `ProtocolViolation`.
        """
        wanted = {"type": frame_type, **match}
        return await self._until(lambda: self._take(wanted), timeout_seconds, lambda: f"no {wanted}; {self._latest()}")

    async def wait_for_position(
        self, inference_id: str, position: int, *, timeout_seconds: float = WAIT_SECONDS
    ) -> int:
        """Waits until this socket has been sent the reply up to `position`; gives where it stands."""

        def reached() -> int | None:
            stands_at = self.transcript.position(inference_id)
            return stands_at if stands_at >= position else None

        return await self._until(reached, timeout_seconds, lambda: f"at {self.transcript.position(inference_id)}")

    def text(self, inference_id: str, part: str | None = None) -> str:
        """What a screen fed by this socket shows of the reply: all of it, or one part."""
        return self.transcript.text(inference_id, part)

    def position(self, inference_id: str) -> int:
        return self.transcript.position(inference_id)

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def _connected(self) -> ClientConnection:
        assert self._socket is not None, "not connected"
        return self._socket

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for text in socket:
                await self._reading.wait()
                await self._receive(json.loads(text))
        except websockets.ConnectionClosed:
            pass  # the close code says what it was
        except Exception as failure:
            self._failure = failure
        finally:
            self._has_ended = True
            async with self._arrived:
                self._arrived.notify_all()

    async def _receive(self, frame: Frame) -> None:
        self.transcript.receive(frame)
        if frame["type"] == "ping" and self.answers_pings:
            await self.send("pong", n=frame["n"])
        async with self._arrived:
            self._arrived.notify_all()

    def _take(self, wanted: Frame) -> Frame | None:
        for index, frame in enumerate(self.frames):
            if index not in self._taken and wanted.items() <= frame.items():
                self._taken.add(index)
                return frame
        return None

    async def _until(self, found: Callable[[], T | None], timeout_seconds: float, describe: Callable[[], str]) -> T:
        try:
            async with asyncio.timeout(timeout_seconds), self._arrived:
                while (value := found()) is None:
                    self._raise_if_over()
                    await self._arrived.wait()
                return value
        except TimeoutError:
            raise TimeoutError(f"after {timeout_seconds:g} s: {describe()}") from None

    def _raise_if_over(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._has_ended:
            raise ConnectionError(f"the socket is closed with {self.close_code}; {self._latest()}")

    def _latest(self) -> str:
        return "latest frames:\n" + "\n".join(json.dumps(frame)[:300] for frame in self.frames[-20:])


def _stop(inference_id: str, position: int | None) -> dict[str, object]:
    return {"inference_id": inference_id} | ({} if position is None else {"position": position})
