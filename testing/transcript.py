"""What one socket has received, checked frame by frame against the wire protocol, version 1. `RoomClient` keeps one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Frame = dict[str, Any]

# What each frame of the server has to have besides its type.
FIELDS = {
    "hello": {"protocol", "room_id", "last_message_id", "live"},
    "message": {"message"},
    "start": {"inference_id", "message_id", "parent_id", "model", "client_id"},
    "delta": {"inference_id", "part", "from", "position"},
    "end": {"inference_id", "message_id", "status", "finish_reason", "position", "error"},
    "stop_result": {"inference_id", "outcome", "position"},
    "room": set(),
    "error": {"code", "detail"},
    "ping": {"n"},
    "pong": set(),
}
FINAL_STATUSES = {"completed", "stopped", "failed", "interrupted"}
# After these the reply may still move on.
OPEN_OUTCOMES = {"recorded", "unavailable", "not_found"}
OUTCOMES = OPEN_OUTCOMES | {"stopped", "already_stopped", "cut_after_finish", "already_finished"}


class ProtocolViolation(AssertionError):
    """The site has sent what the protocol forbids."""


@dataclass
class ReplyText:
    """A reply as this socket has seen it, from position `begins_at` on: 0, or where it followed from."""

    begins_at: int = 0
    pieces: list[tuple[str, str]] = field(default_factory=list)
    position: int = 0
    # Set by a stop_result: nothing beyond it may come.
    limit: int | None = None

    def text(self, part: str | None) -> str:
        return "".join(text for kind, text in self.pieces if part in (None, kind))

    def append(self, frame: Frame) -> None:
        start, position, text = frame["from"], frame["position"], frame.get("text")
        _demand(start == self.position, f"delta does not begin at {self.position}", frame)
        _demand(position >= start, "delta goes backwards", frame)
        _demand(text is None or position - start == len(text), "delta's length is not its text's", frame)
        _demand(self.limit is None or position <= self.limit, f"delta beyond the stop at {self.limit}", frame)
        self.position = position
        if text is not None:
            self.pieces.append((frame["part"], text))

    def end(self, frame: Frame) -> None:
        position = frame["position"]
        _demand(position <= self.position, f"end at a position not shown, which is {self.position}", frame)
        self.begins_at = min(self.begins_at, position)
        self.position = position
        left = position - self.begins_at
        kept = []
        for part, text in self.pieces:
            kept.append((part, text[:left]))
            left -= len(kept[-1][1])
        self.pieces = [piece for piece in kept if piece[1]]


class Transcript:
    """Frames in order of arrival, and the replies they make. `receive` raises `ProtocolViolation`."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._replies: dict[str, ReplyText] = {}

    def of_type(self, frame_type: str) -> list[Frame]:
        return [frame for frame in self.frames if frame["type"] == frame_type]

    def text(self, inference_id: str, part: str | None = None) -> str:
        return self._replies[inference_id].text(part)

    def position(self, inference_id: str) -> int:
        """0 for a reply of which nothing has come yet."""
        reply = self._replies.get(inference_id)
        return reply.position if reply else 0

    def note_sent(self, frame: Frame) -> None:
        if frame["type"] == "follow":
            position = frame["position"]
            # Following a reply that already comes here sends nothing twice, so it moves nothing either.
            self._replies.setdefault(frame["inference_id"], ReplyText(begins_at=position, position=position))

    def receive(self, frame: Frame) -> None:
        self.frames.append(frame)
        kind = frame.get("type")
        _demand(kind in FIELDS, "unknown type", frame)
        missing = FIELDS[str(kind)] - frame.keys()
        _demand(not missing, f"fields are missing: {sorted(missing)}", frame)
        check = {"start": self._start, "delta": self._delta, "end": self._end, "stop_result": self._stop_result}
        if kind in check:
            check[kind](frame)

    def _start(self, frame: Frame) -> None:
        self._replies.setdefault(frame["inference_id"], ReplyText())

    def _delta(self, frame: Frame) -> None:
        _demand(frame["part"] in ("content", "reasoning"), "unknown part", frame)
        reply = self._replies.get(frame["inference_id"])
        _demand(reply is not None, "delta of a reply neither started here nor followed", frame)
        if reply is not None:
            reply.append(frame)

    def _end(self, frame: Frame) -> None:
        _demand(frame["status"] in FINAL_STATUSES, "no final status", frame)
        if reply := self._replies.get(frame["inference_id"]):
            reply.end(frame)

    def _stop_result(self, frame: Frame) -> None:
        _demand(frame["outcome"] in OUTCOMES, "unknown outcome", frame)
        reply = self._replies.get(frame["inference_id"])
        if reply is not None and frame["outcome"] not in OPEN_OUTCOMES:
            reply.limit = frame["position"]


def _demand(holds: bool, what: str, frame: Frame) -> None:
    if not holds:
        raise ProtocolViolation(f"{what}: {frame}")
