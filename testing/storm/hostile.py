"""Frames that no decent client sends, thousands of them, beside one that is decent and must not notice."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any
from uuid import uuid4

from testing.client import Account, Frame, RoomClient
from testing.transcript import Transcript

FRAMES_PER_SOCKET = 250
FRAMES_BETWEEN_PINGS = 50
TYPES = ("send", "regenerate", "continue", "stop", "follow", "ping", "pong", "hello", "delta", "", "SEND", "__class__")
FIELDS = ("client_id", "text", "parent_id", "model", "message_id", "inference_id", "position", "n", "type", "\x00", "x")


async def check_hostile_frames(attacker: Account, victim: Account, count: int, dice: random.Random) -> list[str]:
    """Send so many; return what went wrong: a socket that died of it, or a reply beside it that was not exact."""
    room_id = await asyncio.to_thread(attacker.create_room)
    violations: list[str] = []
    for start in range(0, count, FRAMES_PER_SOCKET):
        try:
            hostile = attacker.open_room(room_id)
            hostile.transcript = Unjudged()
            await _beside_a_reply(victim, hostile, min(FRAMES_PER_SOCKET, count - start), dice)
        except Exception as error:
            violations.append(f"after {start} hostile frames: {type(error).__name__}: {str(error)[:1500]}")
    return violations


class Unjudged(Transcript):
    """Who follows old replies from anywhere gets them again, and keeps no screen."""

    def receive(self, frame: Frame) -> None:
        self.frames.append(frame)


async def _beside_a_reply(victim: Account, hostile: RoomClient, count: int, dice: random.Random) -> None:
    room_id = await asyncio.to_thread(victim.create_room)
    async with victim.open_room(room_id) as decent, hostile:
        inference_id = (await decent.ask("Stay all the while", model="steady"))["inference_id"]
        await _throw(hostile, count, [inference_id, room_id], dice)
        position = await decent.wait_for_position(inference_id, 1)
        result = await decent.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position), result


async def _throw(socket: RoomClient, count: int, ids: list[str], dice: random.Random) -> None:
    for number in range(1, count + 1):
        await socket.send_raw(hostile_frame(dice, ids))
        if number % FRAMES_BETWEEN_PINGS == 0 or number == count:
            await socket.send("ping", n=number)
            await socket.wait_for("pong", n=number)
            ids += [start["inference_id"] for start in socket.transcript.of_type("start")][-1:]


def hostile_frame(dice: random.Random, ids: list[str]) -> str:
    """A text frame: noise, JSON that is no frame, a frame with the wrong fields, or one that is nearly right."""
    make = dice.choice((_noise, _bare_value, _wrong_fields, _wrong_fields, _nearly_right, _nearly_right, _torn))
    return make(dice, ids)


def _noise(dice: random.Random, ids: list[str]) -> str:
    return "".join(chr(dice.choice((dice.randrange(1, 128), dice.randrange(0xE000, 0x11000)))) for _ in range(40))


def _bare_value(dice: random.Random, ids: list[str]) -> str:
    return json.dumps(_value(dice, ids))


def _wrong_fields(dice: random.Random, ids: list[str]) -> str:
    fields = {dice.choice(FIELDS): _value(dice, ids) for _ in range(dice.randrange(5))}
    return json.dumps({"type": dice.choice(TYPES)} | fields)


def _nearly_right(dice: random.Random, ids: list[str]) -> str:
    """A frame of the protocol with one field of another kind, or one too many."""
    some_id = dice.choice(ids)
    frame: dict[str, Any] = dice.choice(
        (
            {"type": "send", "client_id": str(uuid4()), "text": "x"},
            {"type": "regenerate", "client_id": str(uuid4()), "message_id": some_id},
            {"type": "continue", "client_id": str(uuid4()), "message_id": some_id},
            {"type": "stop", "inference_id": some_id, "position": 1},
            {"type": "follow", "inference_id": some_id, "position": 0},
            {"type": "ping", "n": 1},
        )
    )
    frame[dice.choice((*list(frame)[1:], dice.choice(FIELDS)))] = _value(dice, ids)
    return json.dumps(frame)


def _torn(dice: random.Random, ids: list[str]) -> str:
    whole = _nearly_right(dice, ids)
    start, end = sorted(dice.randrange(len(whole) + 1) for _ in range(2))
    return whole[:start] + whole[end:]


def _value(dice: random.Random, ids: list[str], depth: int = 0) -> Any:
    makers = (
        lambda: dice.choice((None, True, False, 0, -1, 1.5, 1e308, float("nan"), float("-inf"), 2**31, 2**63, 10**400)),
        lambda: dice.choice(("", " ", "\x00", "\ud800", "\udfff\ud800", "\u202e", "0" * 36, "x" * 5000, "{}", "null")),
        lambda: dice.choice(ids).upper(),
        lambda: str(uuid4()),
        lambda: [_value(dice, ids, depth + 1) for _ in range(dice.randrange(4))] if depth < 4 else [],
        lambda: {dice.choice(FIELDS): _value(dice, ids, depth + 1)} if depth < 4 else {},
    )
    return dice.choice(makers)()
