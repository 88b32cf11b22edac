"""Taking a prompt: what is written, what is refused, and what a resent one gets."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from chat import endings, prompts
from chat.models import Inference, Membership, Message, Room
from chat.prompts import Ask, PromptError, Taken
from chat.tests.people import WORKER_ID, ask_of, begin, complete, content, live, result_of, signal_for
from inference.engine import Part, Turn
from inference.journal import Status

pytestmark = pytest.mark.django_db


def send(ask: Ask, text: str = "Hello") -> Taken:
    return prompts.send(ask, text, None, has_parent=False)


def refusal_of(ask: Ask) -> PromptError:
    with pytest.raises(PromptError) as caught:
        send(ask)
    return caught.value


def turns_of(taken: Taken) -> list[Turn]:
    assert taken.job is not None
    return list(taken.job.completion.turns)


def test_a_prompt_is_written_with_its_reply_and_inference(alice: User, room: Room) -> None:
    taken = send(ask_of(alice, room))
    prompt, reply, inference, job = taken.prompt, taken.reply, taken.inference, taken.job
    assert prompt is not None and reply is not None and inference is not None and job is not None
    assert (prompt.role, prompt.text, prompt.author, prompt.parent, prompt.status) == (
        *("user", "Hello", alice, None),
        "sent",
    )
    assert (reply.role, reply.text, reply.author, reply.parent, reply.status) == (
        *("assistant", "", None, prompt),
        "pending",
    )
    assert (inference.message, inference.worker, inference.status) == (reply, WORKER_ID, "pending")
    assert (job.inference_id, job.message_id, job.topic) == (inference.pk, reply.pk, room.topic)
    assert turns_of(taken) == [Turn("user", "Hello")]


def test_a_writer_may_ask_and_a_reader_or_an_outsider_finds_no_room(
    bob: User, rita: User, charlie: User, room: Room
) -> None:
    assert refusal_of(ask_of(rita, room)).code == "not_found"
    assert refusal_of(ask_of(charlie, room)).code == "not_found"
    assert send(ask_of(bob, room)).job is not None
    assert Message.objects.count() == 2


def test_an_account_that_is_closed_may_not_ask(alice: User, room: Room) -> None:
    alice.is_active = False
    assert refusal_of(ask_of(alice, room)).code == "not_found"


# which model


def test_the_model_is_the_prompts_or_the_rooms_or_the_default(alice: User, room: Room) -> None:
    room.model = ""
    assert complete(begin(alice, room), "Hi").model == "default"
    Room.objects.filter(pk=room.pk).update(model="of the room")
    assert complete(begin(alice, room), "Hi").model == "of the room"
    taken = send(ask_of(alice, room, model="of the prompt"))
    assert live(taken).model == "of the prompt"


# one at a time


def test_a_room_with_a_live_reply_is_busy(alice: User, bob: User, room: Room) -> None:
    begin(alice, room)
    error = refusal_of(ask_of(bob, room))
    assert (error.code, error.is_stopping) == ("busy", False)
    assert Message.objects.count() == 2


def test_busy_says_when_the_reply_in_the_way_is_being_stopped(alice: User, room: Room) -> None:
    inference = begin(alice, room)
    Inference.objects.record_stop(signal_for(inference, alice, 0))
    assert refusal_of(ask_of(alice, room)).is_stopping


def test_another_room_is_not_busy(alice: User, room: Room) -> None:
    begin(alice, room)
    assert begin(alice, Room.objects.create_for(alice)).status == "pending"


# idempotent


def test_a_resent_client_id_gets_its_rows_again_and_starts_nothing(alice: User, room: Room) -> None:
    ask = ask_of(alice, room)
    first, again = send(ask), send(ask, "Another text")
    assert (again.prompt, again.inference, again.job) == (first.prompt, first.inference, None)
    assert Message.objects.count() == 2


def test_a_resent_client_id_is_answered_before_busy_is_looked_at(alice: User, bob: User, room: Room) -> None:
    ask = ask_of(alice, room)
    complete(live(send(ask)), "Hi")
    begin(bob, room, "Mine")
    again = send(ask)
    assert again.prompt is not None
    assert (again.prompt.client_id, again.inference) == (ask.client_id, None)


def test_one_client_id_of_two_people_is_two_prompts(alice: User, bob: User, room: Room) -> None:
    ask = ask_of(alice, room)
    complete(live(send(ask)), "Hi")
    taken = send(ask_of(bob, room, client_id=ask.client_id))
    assert taken.job is not None


def test_one_client_id_in_two_rooms_is_two_prompts(alice: User, room: Room) -> None:
    ask = ask_of(alice, room)
    send(ask)
    assert send(ask_of(alice, Room.objects.create_for(alice), client_id=ask.client_id)).job is not None


def test_who_may_not_write_any_more_gets_nothing_again(bob: User, room: Room) -> None:
    ask = ask_of(bob, room)
    send(ask)
    Membership.objects.filter(user=bob).update(role=Membership.Role.READER)
    assert refusal_of(ask).code == "not_found"


def test_a_resent_regenerate_gets_its_reply_again(alice: User, room: Room) -> None:
    earlier = complete(begin(alice, room), "Hi")
    ask = ask_of(alice, room)
    first = prompts.regenerate(ask, earlier.message_id)
    again = prompts.regenerate(ask, earlier.message_id)
    assert (again.reply, again.inference, again.job) == (first.reply, first.inference, None)
    complete(live(first), "Ho")
    again = prompts.regenerate(ask, earlier.message_id)
    assert (again.reply, again.inference, again.job) == (first.reply, None, None)


# where it goes


def test_without_a_parent_a_prompt_follows_the_newest_message(alice: User, room: Room) -> None:
    first = complete(begin(alice, room, "One"), "Reply one")
    taken = send(ask_of(alice, room), "Two")
    assert taken.prompt is not None
    assert taken.prompt.parent_id == first.message_id
    assert turns_of(taken) == [Turn("user", "One"), Turn("assistant", "Reply one"), Turn("user", "Two")]


def test_a_null_parent_begins_anew(alice: User, room: Room) -> None:
    complete(begin(alice, room, "One"), "Reply one")
    taken = prompts.send(ask_of(alice, room), "Two", None, has_parent=True)
    assert taken.prompt is not None
    assert taken.prompt.parent is None
    assert turns_of(taken) == [Turn("user", "Two")]


def test_a_named_parent_is_followed_though_it_is_old(alice: User, room: Room) -> None:
    first = complete(begin(alice, room, "One"), "Reply one")
    complete(begin(alice, room, "Two"), "Reply two")
    taken = prompts.send(ask_of(alice, room), "Two again", first.message_id, has_parent=True)
    assert [turn.content for turn in turns_of(taken)] == ["One", "Reply one", "Two again"]


def test_a_parent_that_is_unknown_or_of_another_room_is_not_found(alice: User, room: Room) -> None:
    elsewhere = complete(begin(alice, Room.objects.create_for(alice)), "Hi")
    for parent_id in (uuid4(), elsewhere.message_id):
        with pytest.raises(PromptError, match="no such message") as caught:
            prompts.send(ask_of(alice, room), "Hello", parent_id, has_parent=True)
        assert caught.value.code == "not_found"
    assert not room.messages.exists()


# the room's title


def test_the_first_prompt_titles_a_room_that_has_no_title(alice: User) -> None:
    room = Room.objects.create_for(alice)
    taken = send(ask_of(alice, room), "  What is\n a   river? " + "x" * 100)
    room.refresh_from_db()
    assert taken.has_new_title
    assert room.title.startswith("What is a river? xxx")
    assert len(room.title) == 60


def test_a_prompt_leaves_a_title_alone_and_brings_the_room_to_the_top(alice: User, room: Room) -> None:
    before = room.updated_at
    assert not send(ask_of(alice, room)).has_new_title
    room.refresh_from_db()
    assert room.title == "A room"
    assert room.updated_at > before


# regenerate and continue


def test_regenerate_makes_a_sibling_by_the_asker(alice: User, bob: User, room: Room) -> None:
    earlier = complete(begin(alice, room, "One"), "Reply one")
    ask = ask_of(bob, room)
    taken = prompts.regenerate(ask, earlier.message_id)
    reply = taken.reply
    assert reply is not None
    assert (reply.parent, reply.author, reply.client_id) == (earlier.message.parent, bob, ask.client_id)
    assert (taken.prompt, live(taken).kept) == (None, 0)
    assert turns_of(taken) == [Turn("user", "One")]


def test_continue_begins_with_the_text_kept(alice: User, room: Room) -> None:
    earlier = begin(alice, room, "One")
    endings.finish(result_of(earlier, [(Part.REASONING, "hm"), *content("Reply o")]))
    taken = prompts.proceed(ask_of(alice, room), earlier.message_id)
    inference = live(taken)
    assert (inference.kept, inference.position, inference.parts) == (7, 7, [["content", "Reply o"]])
    assert taken.job is not None
    assert taken.job.kept == "Reply o"
    assert turns_of(taken) == [Turn("user", "One"), Turn("assistant", "Reply o")]


def test_continuing_an_empty_reply_is_a_fresh_one(alice: User, room: Room) -> None:
    earlier = complete(begin(alice, room, "One"), "", status=Status.FAILED)
    taken = prompts.proceed(ask_of(alice, room), earlier.message_id)
    assert live(taken).parts == []
    assert turns_of(taken) == [Turn("user", "One")]


def test_only_replies_of_the_room_can_be_asked_again(alice: User, room: Room) -> None:
    elsewhere = complete(begin(alice, Room.objects.create_for(alice)), "Hi")
    own = complete(begin(alice, room), "Hi")
    assert own.message.parent is not None
    for message_id in (uuid4(), elsewhere.message_id, own.message.parent.pk):
        for again in (prompts.regenerate, prompts.proceed):
            with pytest.raises(PromptError, match="no such reply"):
                again(ask_of(alice, room), message_id)


def test_a_live_reply_can_not_be_asked_again(alice: User, room: Room) -> None:
    inference = begin(alice, room)
    for again in (prompts.regenerate, prompts.proceed):
        with pytest.raises(PromptError) as caught:
            again(ask_of(alice, room), inference.message_id)
        assert caught.value.code == "busy"


def test_a_reader_can_not_ask_again(alice: User, rita: User, room: Room) -> None:
    earlier = complete(begin(alice, room), "Hi")
    with pytest.raises(PromptError) as caught:
        prompts.regenerate(ask_of(rita, room), earlier.message_id)
    assert caught.value.code == "not_found"
