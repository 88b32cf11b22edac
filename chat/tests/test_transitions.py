"""Every transition of an inference, won and lost: whoever comes second changes nothing and learns what is true."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from chat import endings, prompts
from chat.models import Inference, Message, Room
from chat.tests.people import ask_of, begin, complete, content, progress_of, result_of, saved, signal_for
from inference.engine import Part, Usage
from inference.journal import Result, Status

pytestmark = pytest.mark.django_db

DEAD = timedelta(seconds=11)
R = Part.REASONING


@pytest.fixture
def inference(alice: User, room: Room) -> Inference:
    return begin(alice, room)


def checkpoint(inference: Inference, text: str) -> None:
    Inference.objects.checkpoint([progress_of(inference, text)])


def silence_owner(inference: Inference, for_: timedelta = DEAD) -> None:
    Inference.objects.filter(pk=inference.pk).update(heartbeat_at=Now() - for_)


def record_stop(inference: Inference, user: User, position: int | None) -> bool:
    return Inference.objects.record_stop(signal_for(inference, user, position))


# pending, and streaming


def test_a_new_inference_is_pending(inference: Inference) -> None:
    assert saved(inference) == ("pending", "", 0)
    assert inference.message.status == Message.Status.PENDING


def test_a_room_has_one_live_inference(inference: Inference, room: Room) -> None:
    reply = Message.objects.create(room=room, role=Message.Role.ASSISTANT, status=Message.Status.PENDING)
    with pytest.raises(IntegrityError, match="one_live_per_room"), transaction.atomic():
        Inference.objects.create(room=room, message=reply, model="m", status=Status.STREAMING, worker=uuid4())


def test_a_room_has_any_number_of_ended_inferences(alice: User, room: Room) -> None:
    for _ in range(3):
        complete(begin(alice, room), "Hi")
    assert room.inferences.filter(status=Status.COMPLETED).count() == 3


def test_the_first_checkpoint_makes_it_streaming(inference: Inference) -> None:
    checkpoint(inference, "Hel")
    assert saved(inference) == ("streaming", "Hel", 3)
    assert (inference.generated_position, inference.chunk_count) == (3, 3)
    assert inference.first_chunk_at is not None
    assert inference.first_chunk_at - inference.started_at == timedelta(seconds=0.25)


def test_a_checkpoint_never_puts_less_over_more(inference: Inference) -> None:
    checkpoint(inference, "Hello")
    checkpoint(inference, "Hel")
    assert saved(inference) == ("streaming", "Hello", 5)


def test_a_checkpoint_after_the_end_changes_nothing(inference: Inference) -> None:
    complete(inference, "Hello")
    checkpoint(inference, "Hello world")
    assert saved(inference) == ("completed", "Hello", 5)


def test_a_checkpoint_leaves_a_recorded_stop_alone(inference: Inference, alice: User) -> None:
    record_stop(inference, alice, 2)
    checkpoint(inference, "Hello")
    inference.refresh_from_db()
    assert (inference.stop_position, inference.stopped_by, inference.status) == (2, alice, "streaming")


def test_one_checkpoint_saves_many_and_skips_those_that_are_over(alice: User, room: Room) -> None:
    over = complete(begin(alice, room), "Over")
    running = [begin(alice, Room.objects.create_for(alice)) for _ in range(3)]
    Inference.objects.checkpoint([progress_of(inference, "강물🌊") for inference in [over, *running]])
    assert [saved(inference)[1:] for inference in running] == [("강물🌊", 3)] * 3
    assert saved(over) == ("completed", "Over", 4)


# completed, failed, interrupted by the owner


def test_the_owner_completes(inference: Inference) -> None:
    ending = endings.finish(result_of(inference, [(R, "hm"), *content("Hello")]))
    assert saved(inference) == ("completed", "Hello", 7)
    assert ending is not None
    assert (ending.status, ending.position, ending.finish_reason, ending.topic) == (
        Status.COMPLETED,
        7,
        "stop",
        inference.topic,
    )
    assert inference.parts == [["reasoning", "hm"], ["content", "Hello"]]
    assert inference.finished_at is not None


def test_the_owner_fails_and_keeps_the_text(inference: Inference) -> None:
    endings.finish(result_of(inference, "Hel", status=Status.FAILED, error_code="cut_off"))
    assert saved(inference) == ("failed", "Hel", 3)
    assert inference.error_code == "cut_off"


def test_the_owner_interrupts_at_shutdown(inference: Inference) -> None:
    endings.finish(result_of(inference, "Hel", status=Status.INTERRUPTED))
    assert saved(inference) == ("interrupted", "Hel", 3)


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.INTERRUPTED])
def test_a_recorded_stop_wins_over_the_owners_end(inference: Inference, alice: User, status: Status) -> None:
    record_stop(inference, alice, 2)
    ending = endings.finish(result_of(inference, "Hello", status=status, error_code="timeout"))
    assert saved(inference) == ("stopped", "He", 2)
    assert ending is not None
    assert (ending.status, ending.position, ending.finish_reason, ending.error_code) == (Status.STOPPED, 2, None, None)
    assert inference.generated_position == 5


def test_finishing_twice_tells_the_same(inference: Inference) -> None:
    first = endings.finish(result_of(inference, "Hello"))
    assert endings.finish(result_of(inference, "Hello")) == first


def test_finishing_what_is_gone_tells_nothing(inference: Inference, room: Room) -> None:
    room.delete()
    assert endings.finish(result_of(inference, "Hello")) is None
    assert not Inference.objects.exists()
    assert not Message.objects.exists()


def test_usage_is_the_models_or_else_an_estimate(alice: User, room: Room) -> None:
    told, untold = begin(alice, room), begin(alice, Room.objects.create_for(alice))
    endings.finish(Result(progress_of(told, "Hello"), Status.COMPLETED, usage=Usage(7, 2)))
    endings.finish(result_of(untold, "Hello", status=Status.FAILED))
    for inference in (told, untold):
        inference.refresh_from_db()
    assert told.usage == {"prompt_tokens": 7, "completion_tokens": 2, "is_estimated": False}
    assert untold.usage == {"completion_tokens": 2, "is_estimated": True}


# stopped


def test_the_first_stop_is_recorded_and_the_second_is_not(inference: Inference, alice: User, bob: User) -> None:
    assert record_stop(inference, alice, 5)
    assert not record_stop(inference, bob, 2)
    inference.refresh_from_db()
    assert (inference.stopped_by, inference.stop_position, inference.stop_source) == (alice, 5, "page")
    assert inference.stop_requested_at is not None


def test_a_stop_of_what_is_over_is_not_recorded(inference: Inference, alice: User) -> None:
    complete(inference, "Hello")
    assert not record_stop(inference, alice, 2)
    assert saved(inference) == ("completed", "Hello", 5)


def test_a_stop_of_nothing_is_not_recorded(inference: Inference, alice: User) -> None:
    inference.pk = uuid4()
    assert not record_stop(inference, alice, 2)


@pytest.mark.parametrize(("asked", "text"), [(0, ""), (3, "Hel"), (5, "Hello"), (99, "Hello"), (2**31 - 1, "Hello")])
def test_a_stop_cuts_at_its_position_but_not_beyond_the_end(
    inference: Inference, alice: User, asked: int, text: str
) -> None:
    record_stop(inference, alice, asked)
    endings.finish(result_of(inference, "Hello"))
    assert saved(inference) == ("stopped", text, len(text))


def test_a_stop_without_a_position_cuts_where_the_owner_heard_it(inference: Inference, alice: User) -> None:
    record_stop(inference, alice, None)
    stop = signal_for(inference, alice, 3)
    endings.finish(result_of(inference, "Hello", status=Status.STOPPED, stop=stop))
    assert saved(inference) == ("stopped", "Hel", 3)


def test_a_stop_that_only_the_owner_heard_is_recorded_with_the_end(inference: Inference, bob: User) -> None:
    """The database was away when it was pressed."""
    stop = signal_for(inference, bob, 3)
    endings.finish(result_of(inference, "Hello", status=Status.STOPPED, stop=stop))
    assert saved(inference) == ("stopped", "Hel", 3)
    assert (inference.stopped_by, inference.stop_source) == (bob, "page")


def test_the_recorded_stop_counts_and_not_the_one_the_owner_heard_first(
    inference: Inference, alice: User, bob: User
) -> None:
    record_stop(inference, alice, 4)
    stop = signal_for(inference, bob, 2)
    ending = endings.finish(result_of(inference, "Hello", status=Status.STOPPED, stop=stop))
    assert saved(inference) == ("stopped", "Hell", 4)
    assert ending is not None
    assert (ending.position, inference.stopped_by) == (4, alice)


def test_a_cut_in_the_reasoning_leaves_no_content(inference: Inference, alice: User) -> None:
    record_stop(inference, alice, 1)
    endings.finish(result_of(inference, [(R, "hm"), *content("Hello")]))
    assert saved(inference) == ("stopped", "", 1)
    assert inference.parts == [["reasoning", "h"]]


def test_a_stop_can_not_cut_into_kept_text(inference: Inference, alice: User) -> None:
    Inference.objects.filter(pk=inference.pk).update(kept=4, position=4, parts=[["content", "Kept"]])
    record_stop(inference, alice, 1)
    endings.finish(result_of(inference, "Kept and more"))
    assert saved(inference) == ("stopped", "Kept", 4)


def test_no_row_is_stopped_without_a_recorded_stop(inference: Inference) -> None:
    with pytest.raises(IntegrityError, match="stopped_by_a_recorded_stop"), transaction.atomic():
        Inference.objects.filter(pk=inference.pk).update(status=Status.STOPPED)


# for a dead owner


def test_the_inference_of_a_dead_owner_is_interrupted_with_its_checkpoint(inference: Inference) -> None:
    checkpoint(inference, "Hel")
    silence_owner(inference)
    (ending,) = endings.reap()
    assert (ending.status, ending.position) == (Status.INTERRUPTED, 3)
    assert saved(inference) == ("interrupted", "Hel", 3)


def test_the_inference_of_a_dead_owner_is_stopped_where_a_stop_is_recorded(inference: Inference, alice: User) -> None:
    checkpoint(inference, "Hello")
    record_stop(inference, alice, 2)
    silence_owner(inference)
    (ending,) = endings.reap()
    assert (ending.status, ending.position) == (Status.STOPPED, 2)
    assert saved(inference) == ("stopped", "He", 2)
    assert (inference.generated_position, inference.chunk_count) == (5, 3)


def test_a_stop_without_a_position_keeps_all_that_the_dead_owner_saved(inference: Inference, alice: User) -> None:
    checkpoint(inference, "Hello")
    record_stop(inference, alice, None)
    silence_owner(inference)
    endings.reap()
    assert saved(inference) == ("stopped", "Hello", 5)


def test_an_owner_that_has_been_heard_of_is_not_reaped(inference: Inference) -> None:
    silence_owner(inference, timedelta(seconds=9))
    assert endings.reap() == []
    assert saved(inference)[0] == "pending"


def test_a_heartbeat_keeps_the_reaper_away(inference: Inference) -> None:
    silence_owner(inference)
    Inference.objects.filter(pk=inference.pk).beat()
    assert endings.reap() == []


def test_what_is_over_is_not_reaped_and_not_reaped_twice(inference: Inference) -> None:
    complete(inference, "Hello")
    silence_owner(inference)
    assert endings.reap() == []
    assert saved(inference) == ("completed", "Hello", 5)


# a late stop


def cut(inference: Inference, user: User, position: int | None) -> UUID | None:
    ending = endings.cut_after_finish(signal_for(inference, user, position))
    return ending.inference_id if ending else None


def test_a_late_stop_cuts_a_completed_reply_back_to_what_was_seen(inference: Inference, alice: User) -> None:
    complete(inference, "Hello")
    ending = endings.cut_after_finish(signal_for(inference, alice, 3))
    assert ending is not None
    assert (ending.status, ending.position, ending.finish_reason) == (Status.STOPPED, 3, None)
    assert saved(inference) == ("stopped", "Hel", 3)
    assert (inference.stopped_by, inference.generated_position) == (alice, 5)


@pytest.mark.parametrize("position", [5, 6, None])
def test_a_late_stop_of_a_reply_that_was_seen_whole_cuts_nothing(
    inference: Inference, alice: User, position: int | None
) -> None:
    complete(inference, "Hello")
    assert cut(inference, alice, position) is None
    assert saved(inference) == ("completed", "Hello", 5)


@pytest.mark.parametrize("status", [Status.FAILED, Status.INTERRUPTED])
def test_a_late_stop_cuts_only_what_was_completed(inference: Inference, alice: User, status: Status) -> None:
    complete(inference, "Hello", status=status)
    assert cut(inference, alice, 2) is None
    assert saved(inference) == (status, "Hello", 5)


def test_a_late_stop_comes_too_late_after_thirty_seconds(inference: Inference, alice: User) -> None:
    complete(inference, "Hello")
    Inference.objects.filter(pk=inference.pk).update(finished_at=Now() - timedelta(seconds=31))
    assert cut(inference, alice, 2) is None
    Inference.objects.filter(pk=inference.pk).update(finished_at=Now() - timedelta(seconds=28))
    assert cut(inference, alice, 2) == inference.pk


def test_a_late_stop_leaves_a_reply_alone_on_which_the_next_prompt_is_built(
    inference: Inference, alice: User, room: Room
) -> None:
    complete(inference, "Hello")
    begin(alice, room, "And then?")
    assert cut(inference, alice, 2) is None
    assert saved(inference) == ("completed", "Hello", 5)


def test_a_second_late_stop_changes_nothing(inference: Inference, alice: User, bob: User) -> None:
    complete(inference, "Hello")
    assert cut(inference, alice, 3) == inference.pk
    assert cut(inference, bob, 1) is None
    assert saved(inference) == ("stopped", "Hel", 3)


def test_a_late_stop_can_not_cut_into_kept_text(inference: Inference, alice: User) -> None:
    Inference.objects.filter(pk=inference.pk).update(kept=4)
    complete(inference, "Kept and more")
    assert cut(inference, alice, 1) == inference.pk
    assert saved(inference) == ("stopped", "Kept", 4)


def test_a_late_stop_of_a_reply_that_is_all_kept_text_cuts_nothing(inference: Inference, alice: User) -> None:
    Inference.objects.filter(pk=inference.pk).update(kept=4)
    complete(inference, "Kept")
    assert cut(inference, alice, 1) is None
    assert saved(inference) == ("completed", "Kept", 4)


# the longer text of an owner that was only cut off from the database


@pytest.fixture
def reaped(inference: Inference) -> Inference:
    checkpoint(inference, "Hel")
    silence_owner(inference)
    endings.reap()
    return inference


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.INTERRUPTED])
def test_a_reaped_owner_saves_its_longer_text(reaped: Inference, status: Status) -> None:
    ending = endings.finish(result_of(reaped, "Hello", status=status))
    assert saved(reaped) == (status, "Hello", 5)
    assert ending is not None
    assert (ending.status, ending.position) == (status, 5)


def test_a_reaped_owner_that_was_stopped_meanwhile_saves_the_stop(reaped: Inference, alice: User) -> None:
    """It heard the stop over the channel layer while the database was out of its reach."""
    stop = signal_for(reaped, alice, 4)
    ending = endings.finish(result_of(reaped, "Hello", status=Status.STOPPED, stop=stop))
    assert saved(reaped) == ("stopped", "Hell", 4)
    assert ending is not None
    assert (ending.position, reaped.stopped_by) == (4, alice)


def test_a_reaped_owner_with_less_text_changes_nothing(reaped: Inference) -> None:
    endings.finish(result_of(reaped, "He"))
    assert saved(reaped) == ("interrupted", "Hel", 3)


def test_a_reaped_owner_changes_nothing_after_a_stop_for_the_dead(inference: Inference, alice: User) -> None:
    checkpoint(inference, "Hel")
    record_stop(inference, alice, 2)
    silence_owner(inference)
    endings.reap()
    ending = endings.finish(result_of(inference, "Hello"))
    assert saved(inference) == ("stopped", "He", 2)
    assert ending is not None
    assert ending.status is Status.STOPPED


def test_a_reaped_owner_changes_nothing_once_something_is_built_on_the_reply(
    reaped: Inference, alice: User, room: Room
) -> None:
    begin(alice, room, "Go on")
    endings.finish(result_of(reaped, "Hello"))
    assert saved(reaped) == ("interrupted", "Hel", 3)


def test_a_reaped_owner_changes_nothing_once_there_is_a_newer_inference(reaped: Inference, alice: User) -> None:

    prompts.regenerate(ask_of(alice, reaped.room), reaped.message_id)
    endings.finish(result_of(reaped, "Hello"))
    assert saved(reaped) == ("interrupted", "Hel", 3)
