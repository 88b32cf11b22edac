"""What the model is sent: the path to the prompt, without what would make a model server refuse the request."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from chat import endings, prompts
from chat.asking import frames_of
from chat.history import left_out, path_to, turns_for
from chat.models import Inference, Message, Room
from chat.tests.people import ask_of, begin, complete, live, result_of, signal_for
from inference.engine import Part, Turn
from inference.journal import Status

pytestmark = pytest.mark.django_db


def next_turns(user: User, room: Room, text: str = "Next") -> list[Turn]:
    """What the model is sent for a next prompt, which is left live."""
    taken = prompts.send(ask_of(user, room), text, None, has_parent=False)
    assert taken.job is not None
    return list(taken.job.completion.turns)


def texts(turns: list[Turn]) -> list[str]:
    return [turn.content for turn in turns]


def test_a_stopped_reply_is_sent_as_it_was_cut(alice: User, room: Room) -> None:
    inference = begin(alice, room, "One")
    Inference.objects.record_stop(signal_for(inference, alice, 3))
    complete(inference, "Hello")
    assert next_turns(alice, room) == [Turn("user", "One"), Turn("assistant", "Hel"), Turn("user", "Next")]


@pytest.mark.parametrize("text", ["", " \n\t"], ids=repr)
def test_an_empty_reply_is_left_out(alice: User, room: Room, text: str) -> None:
    complete(begin(alice, room, "One"), text, status=Status.FAILED)
    assert texts(next_turns(alice, room)) == ["One", "Next"]


def test_a_reply_that_was_only_reasoning_is_left_out(alice: User, room: Room) -> None:
    endings.finish(result_of(begin(alice, room, "One"), [(Part.REASONING, "hm")]))
    assert texts(next_turns(alice, room)) == ["One", "Next"]


def test_reasoning_is_not_sent(alice: User, room: Room) -> None:
    endings.finish(result_of(begin(alice, room, "One"), [(Part.REASONING, "hm"), (Part.CONTENT, "Yes")]))
    assert texts(next_turns(alice, room)) == ["One", "Yes", "Next"]


@pytest.mark.parametrize("status", [Status.FAILED, Status.INTERRUPTED])
def test_the_text_of_a_reply_that_broke_off_is_sent(alice: User, room: Room, status: Status) -> None:
    complete(begin(alice, room, "One"), "Hel", status=status)
    assert texts(next_turns(alice, room)) == ["One", "Hel", "Next"]


def test_only_the_path_to_the_prompt_is_sent(alice: User, room: Room) -> None:
    earlier = complete(begin(alice, room, "One"), "First try")
    again = live(prompts.regenerate(ask_of(alice, room), earlier.message_id))
    complete(again, "Second try")
    assert texts(next_turns(alice, room)) == ["One", "Second try", "Next"]


def test_the_rooms_system_prompt_comes_first(alice: User, room: Room) -> None:
    Room.objects.filter(pk=room.pk).update(system_prompt="Be brief.")
    assert next_turns(alice, room)[0] == Turn("system", "Be brief.")


def test_a_blank_system_prompt_is_left_out(alice: User, room: Room) -> None:
    Room.objects.filter(pk=room.pk).update(system_prompt="  ")
    assert texts(next_turns(alice, room)) == ["Next"]


@pytest.mark.parametrize(
    ("budget", "sent"),
    [
        (100, ["aaaa", "bbbb", "cccc", "dddd", "eeee"]),
        (20, ["aaaa", "bbbb", "cccc", "dddd", "eeee"]),
        (19, ["bbbb", "cccc", "dddd", "eeee"]),
        (8, ["dddd", "eeee"]),
        (7, ["eeee"]),
        (1, ["eeee"]),
    ],
)
def test_the_oldest_turns_are_left_out_when_there_is_too_much_and_the_prompt_never(
    alice: User, room: Room, settings: Settings, budget: int, sent: list[str]
) -> None:
    settings.MAX_HISTORY_CHARACTERS = budget
    complete(begin(alice, room, "aaaa"), "bbbb")
    complete(begin(alice, room, "cccc"), "dddd")
    assert texts(next_turns(alice, room, "eeee")) == sent


def test_the_rooms_instructions_are_part_of_what_is_too_much(alice: User, room: Room, settings: Settings) -> None:
    settings.MAX_HISTORY_CHARACTERS = 12
    Room.objects.filter(pk=room.pk).update(system_prompt="Be")
    complete(begin(alice, room, "aaaa"), "bbbb")
    assert texts(next_turns(alice, room, "eeee")) == ["Be", "bbbb", "eeee"]


def test_who_asks_is_told_how_many_messages_are_left_out(alice: User, room: Room, settings: Settings) -> None:
    settings.MAX_HISTORY_CHARACTERS = 10
    complete(begin(alice, room, "aaaa"), "bbbb")
    first = prompts.send(ask_of(alice, room), "ee", None, has_parent=False)
    assert first.left_out == 0
    complete(live(first), "ff")
    second = prompts.send(ask_of(alice, room), "g", None, has_parent=False)
    assert second.left_out == 1
    assert {"type": "room", "title": room.title, "left_out": 1} in frames_of(second, uuid4())


def test_the_page_says_what_no_prompt_can_be_sent_with(
    alice: User, room: Room, client: Client, settings: Settings
) -> None:
    """Empty replies are not counted: they are never sent."""
    settings.MAX_HISTORY_CHARACTERS = 7
    complete(begin(alice, room, "aaaa"), "", status=Status.FAILED)
    complete(begin(alice, room, "bbbb"), "cccc")
    assert left_out(room, [message.pk for message in room.messages.order_by("created_at")]) == 2
    client.force_login(alice)
    assert "The oldest 2 messages are no longer sent" in client.get(f"/rooms/{room.pk}/").content.decode()


def test_limits_that_are_off_leave_nothing_out(alice: User, room: Room, settings: Settings) -> None:
    settings.LIMITS, settings.MAX_HISTORY_CHARACTERS = False, 1
    complete(begin(alice, room, "aaaa"), "bbbb")
    assert left_out(room, [message.pk for message in room.messages.all()]) == 0
    assert texts(next_turns(alice, room, "eeee")) == ["aaaa", "bbbb", "eeee"]


def test_the_path_of_nothing_is_empty(room: Room) -> None:
    assert path_to(room, None) == []
    assert path_to(room, uuid4()) == []


def test_the_path_costs_as_many_queries_for_a_long_room_as_for_a_short_one(
    alice: User, room: Room, django_assert_num_queries: object
) -> None:
    parent = None
    for number in range(60):
        role = Message.Role.ASSISTANT if number % 2 else Message.Role.USER
        parent = Message.objects.create(room=room, parent=parent, role=role, text=str(number), status="sent")
    assert parent is not None
    with django_assert_num_queries(2):  # type: ignore[operator]
        turns, _ = turns_for(room, parent)
    assert texts(turns) == [str(number) for number in range(60)]
