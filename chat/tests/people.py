"""Alice has a room, Bob writes in it, Rita reads it, and Charlie is outside: fixtures, and rows to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from chat import endings, prompts
from chat.models import Inference, Membership, Room
from chat.prompts import Ask, Taken
from inference.engine import Part
from inference.journal import Progress, Result, Run, Status
from inference.stop import StopSignal

WORKER_ID = UUID(int=1)


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob")


@pytest.fixture
def rita(db: None) -> User:
    return User.objects.create_user("rita")


@pytest.fixture
def charlie(db: None) -> User:
    return User.objects.create_user("charlie")


@pytest.fixture
def room(alice: User, bob: User, rita: User) -> Room:
    """Alice's room, in which Bob may write and Rita may read."""
    room = Room.objects.create_for(alice, title="A room")
    Membership.objects.create(room=room, user=bob, role=Membership.Role.WRITER)
    Membership.objects.create(room=room, user=rita, role=Membership.Role.READER)
    return room


def ask_of(user: User, room: Room, *, client_id: UUID | None = None, model: str = "") -> Ask:
    return Ask(
        user=user,
        room_id=room.pk,
        client_id=client_id or uuid4(),
        worker_id=WORKER_ID,
        model=model,
        default_model="default",
    )


def begin(user: User, room: Room, text: str = "Hello") -> Inference:
    """A live inference for a new prompt at the end of the room."""
    taken = prompts.send(ask_of(user, room), text, None, has_parent=False)
    return live(taken)


def live(taken: Taken) -> Inference:
    assert taken.inference is not None
    return taken.inference


def complete(inference: Inference, text: str, *, status: Status = Status.COMPLETED) -> Inference:
    """End a live inference as its owner does."""
    endings.finish(result_of(inference, text, status=status))
    inference.refresh_from_db()
    return inference


def content(text: str) -> list[Run]:
    return [(Part.CONTENT, text)] if text else []


def progress_of(inference: Inference, text: str | Sequence[Run]) -> Progress:
    runs = content(text) if isinstance(text, str) else list(text)
    return Progress(
        inference_id=inference.pk,
        runs=runs,
        position=sum(len(run) for _, run in runs),
        chunk_count=3,
        first_chunk_seconds=0.25,
    )


def result_of(
    inference: Inference,
    text: str | Sequence[Run],
    *,
    status: Status = Status.COMPLETED,
    stop: StopSignal | None = None,
    error_code: str | None = None,
) -> Result:
    return Result(
        progress=progress_of(inference, text),
        status=status,
        finish_reason="stop" if status is Status.COMPLETED else None,
        error_code=error_code,
        stop=stop,
        floor=inference.kept,
    )


def signal_for(inference: Inference, user: User, position: int | None) -> StopSignal:
    return StopSignal(inference.pk, inference.topic, position, user.pk, "page")


def saved(inference: Inference) -> tuple[str, str, int]:
    """What stands in the rows: status, text and position. The message and the inference must say the same."""
    inference.refresh_from_db()
    message = inference.message
    message.refresh_from_db()
    parts = "".join(text for part, text in inference.runs if part is Part.CONTENT)
    if inference.finished_at is not None:
        assert (message.status, message.text) == (inference.status, parts)
    return inference.status, parts, inference.position
