"""What one person, and the whole site, may have at once: counted in the rows, so on all workers together."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from chat import prompts
from chat.limits import LIVE_RETRY_SECONDS
from chat.models import Inference, Message, Room
from chat.prompts import PromptError
from chat.rooms import TooManyRooms, make_room
from chat.tests.people import ask_of, begin, complete, live, signal_for

pytestmark = pytest.mark.django_db


def refusal_of(user: User, room: Room) -> PromptError:
    with pytest.raises(PromptError) as caught:
        begin(user, room)
    return caught.value


def another_room(user: User) -> Room:
    return Room.objects.create_for(user)


def make_older(seconds: float) -> None:
    for message in Message.objects.all():
        Message.objects.filter(pk=message.pk).update(created_at=message.created_at - timedelta(seconds=seconds))


# prompts in a minute


def test_the_next_prompt_is_taken_when_the_first_is_a_minute_old(alice: User, room: Room, settings: Settings) -> None:
    settings.PROMPTS_PER_MINUTE = 2
    complete(begin(alice, room), "Hi")
    make_older(40)
    complete(begin(alice, room), "Hi")
    refusal = refusal_of(alice, room)
    assert refusal.code == "rate_limited"
    assert refusal.retry_after is not None and 15 <= refusal.retry_after <= 20
    make_older(refusal.retry_after)
    begin(alice, room)


def test_regenerate_and_continue_count_as_prompts(alice: User, room: Room, settings: Settings) -> None:
    settings.PROMPTS_PER_MINUTE = 3
    reply = complete(begin(alice, room), "Hi")
    complete(live(prompts.regenerate(ask_of(alice, room), reply.message_id)), "Hi")
    complete(live(prompts.proceed(ask_of(alice, room), reply.message_id)), "Hi, you")
    with pytest.raises(PromptError, match="short time"):
        prompts.regenerate(ask_of(alice, room), reply.message_id)


def test_one_person_does_not_use_up_anothers(alice: User, bob: User, room: Room, settings: Settings) -> None:
    settings.PROMPTS_PER_MINUTE = 1
    complete(begin(alice, room), "Hi")
    assert refusal_of(alice, room).code == "rate_limited"
    begin(bob, room)


def test_what_is_refused_writes_nothing_and_what_was_taken_is_answered_again(
    alice: User, room: Room, settings: Settings
) -> None:
    settings.PROMPTS_PER_MINUTE = 1
    ask = ask_of(alice, room)
    complete(live(prompts.send(ask, "Hello", None, has_parent=False)), "Hi")
    refusal_of(alice, room)
    assert Message.objects.count() == 2
    assert prompts.send(ask, "Hello", None, has_parent=False).prompt is not None


# replies at the same time


def test_a_person_may_have_so_many_replies_at_once(alice: User, bob: User, room: Room, settings: Settings) -> None:
    """Bob's prompt in a room of Alice's is his."""
    settings.MAX_LIVE_PER_PERSON = 2
    begin(bob, room)
    first = begin(alice, another_room(alice))
    begin(alice, another_room(alice))
    refusal = refusal_of(alice, another_room(alice))
    assert (refusal.code, refusal.retry_after) == ("rate_limited", LIVE_RETRY_SECONDS)
    complete(first, "Hi")
    begin(alice, another_room(alice))


def test_another_reply_to_ones_own_prompt_counts_for_who_has_asked_for_it(
    alice: User, bob: User, room: Room, settings: Settings
) -> None:
    settings.MAX_LIVE_PER_PERSON = 1
    reply = complete(begin(alice, room), "Hi")
    prompts.regenerate(ask_of(bob, room), reply.message_id)
    begin(alice, another_room(alice))
    assert refusal_of(bob, another_room(bob)).code == "rate_limited"


def test_a_prompt_behind_a_stop_is_told_that_a_place_is_about_to_be_free(
    alice: User, room: Room, settings: Settings
) -> None:
    settings.MAX_LIVE_PER_PERSON = 1
    stopping = begin(alice, another_room(alice))
    assert not refusal_of(alice, room).is_stopping
    Inference.objects.record_stop(signal_for(stopping, alice, 0))
    assert refusal_of(alice, room).is_stopping


def test_the_site_has_so_many_replies_at_once(alice: User, bob: User, room: Room, settings: Settings) -> None:
    settings.MAX_LIVE = 1
    inference = begin(alice, room)
    refusal = refusal_of(bob, another_room(bob))
    assert (refusal.code, refusal.retry_after) == ("rate_limited", LIVE_RETRY_SECONDS)
    complete(inference, "Hi")
    begin(bob, another_room(bob))


def test_a_busy_room_says_busy_whatever_the_limits_say(alice: User, room: Room, settings: Settings) -> None:
    settings.MAX_LIVE_PER_PERSON = settings.PROMPTS_PER_MINUTE = 1
    begin(alice, room)
    assert refusal_of(alice, room).code == "busy"


# rooms


def test_a_person_may_own_so_many_rooms_and_be_a_member_of_more(
    alice: User, bob: User, room: Room, settings: Settings
) -> None:
    settings.MAX_ROOMS_PER_PERSON = 1
    mine = make_room(bob, "Mine")
    with pytest.raises(TooManyRooms):
        make_room(bob, "One more")
    mine.delete()
    make_room(bob, "Another")


def test_the_page_says_that_there_are_too_many_rooms(
    alice: User, room: Room, client: Client, settings: Settings
) -> None:
    settings.MAX_ROOMS_PER_PERSON = 1
    client.force_login(alice)
    response = client.post("/rooms/", {"title": "One more"})
    assert (response.status_code, Room.objects.count()) == (409, 1)
    assert "You have 1 chats, as many as one may. Delete one first." in response.content.decode()


# off


def test_limits_that_are_off_refuse_nothing(alice: User, room: Room, settings: Settings) -> None:
    settings.LIMITS = False
    settings.PROMPTS_PER_MINUTE = settings.MAX_LIVE = settings.MAX_LIVE_PER_PERSON = 1
    settings.MAX_ROOMS_PER_PERSON = 1
    for _ in range(3):
        begin(alice, make_room(alice, "A room"))
