"""Two connections at the same row of a real PostgreSQL: the second one comes while the first has not committed yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from queue import Queue
from threading import Barrier
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now
from django.http import Http404, QueryDict
from pytest_django.fixtures import Settings

from chat import endings, prompts, stops
from chat.models import Inference, Message, Room
from chat.pages.rooms import _change
from chat.prompts import PromptError, Taken
from chat.stops import Stop
from chat.tests.people import ask_of, begin, complete, live, progress_of, result_of, saved, signal_for
from inference.engine import Turn
from inference.journal import Status

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")
U = TypeVar("U")

WAIT_SECONDS = 10.0
DEAD = timedelta(seconds=11)


def overlapping(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Do `first`, and commit it only when `second` waits for its lock in another connection."""
    begun: Queue[None] = Queue()
    process_ids: Queue[int] = Queue()

    def do_first() -> T:
        with transaction.atomic():
            result = first()
            begun.put(None)
            _await_lock(process_ids.get(timeout=WAIT_SECONDS))
        return result

    def do_second() -> U:
        begun.get(timeout=WAIT_SECONDS)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            process_ids.put(cursor.fetchone()[0])
        return second()

    with ThreadPoolExecutor(2) as threads:
        results = [threads.submit(_with_own_connection, work) for work in (do_first, do_second)]
        return results[0].result(), results[1].result()


def _with_own_connection(work: Callable[[], Any]) -> Any:
    try:
        return work()
    finally:
        connection.close()


def _await_lock(process_id: int) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS
    with connection.cursor() as cursor:
        while time.monotonic() < give_up_at:
            cursor.execute("SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted", [process_id])
            if cursor.fetchone():
                return
    raise AssertionError("the second connection never had to wait")


def test_two_prompts_of_one_person_at_once_can_not_both_be_the_last_that_is_allowed(
    alice: User, bob: User, room: Room, settings: Settings
) -> None:
    settings.MAX_LIVE_PER_PERSON = 1
    elsewhere = Room.objects.create_for(alice)

    def second() -> str:
        with pytest.raises(PromptError) as caught:
            begin(alice, elsewhere)
        return caught.value.code

    _, code = overlapping(lambda: begin(alice, room), second)
    assert code == "rate_limited"


@pytest.fixture
def inference(alice: User, room: Room) -> Inference:
    return begin(alice, room)


def checkpoint(inference: Inference, text: str) -> Callable[[], None]:
    return lambda: Inference.objects.checkpoint([progress_of(inference, text)])


def record_stop(inference: Inference, user: User, position: int) -> Callable[[], bool]:
    return lambda: Inference.objects.record_stop(signal_for(inference, user, position))


def finish(inference: Inference, text: str) -> Callable[[], Any]:
    return lambda: endings.finish(result_of(inference, text))


def test_a_checkpoint_that_waited_for_the_finish_does_not_bring_the_cut_text_back(
    inference: Inference, alice: User
) -> None:
    record_stop(inference, alice, 2)()
    overlapping(finish(inference, "Hello"), checkpoint(inference, "Hello world"))
    assert saved(inference) == ("stopped", "He", 2)


def test_a_finish_that_waited_for_a_checkpoint_has_the_last_word(inference: Inference) -> None:
    overlapping(checkpoint(inference, "Hello"), finish(inference, "Hello world"))
    assert saved(inference) == ("completed", "Hello world", 11)


def test_a_completion_that_waited_for_a_stop_ends_as_stopped(inference: Inference, alice: User) -> None:
    overlapping(record_stop(inference, alice, 3), finish(inference, "Hello"))
    assert saved(inference) == ("stopped", "Hel", 3)


def test_a_stop_that_waited_for_a_completion_is_not_recorded(inference: Inference, alice: User) -> None:
    _, is_recorded = overlapping(finish(inference, "Hello"), record_stop(inference, alice, 3))
    assert not is_recorded
    assert saved(inference) == ("completed", "Hello", 5)
    assert inference.stop_requested_at is None


def test_of_two_stops_at_once_one_is_recorded(inference: Inference, alice: User, bob: User) -> None:
    answers = overlapping(record_stop(inference, alice, 3), record_stop(inference, bob, 1))
    assert answers == (True, False)
    finish(inference, "Hello")()
    assert saved(inference) == ("stopped", "Hel", 3)
    assert inference.stopped_by == alice


def test_a_stop_that_waited_for_the_rooms_end_finds_nothing(inference: Inference, alice: User, room: Room) -> None:
    press = Stop(alice, inference.pk, 2, "page", room_id=room.pk)
    assert overlapping(room.delete, lambda: stops._record(press, lambda: None))[1] is None


def test_a_stop_recorded_during_a_checkpoint_survives_it(inference: Inference, alice: User) -> None:
    overlapping(checkpoint(inference, "Hello"), record_stop(inference, alice, 3))
    inference.refresh_from_db()
    assert (inference.position, inference.stop_position) == (5, 3)


def test_a_checkpoint_that_waited_for_a_stop_leaves_it_recorded(inference: Inference, alice: User) -> None:
    overlapping(record_stop(inference, alice, 3), checkpoint(inference, "Hello"))
    inference.refresh_from_db()
    assert (inference.position, inference.stop_position) == (5, 3)


# The reaper against a slow owner


def silence_owner(inference: Inference) -> None:
    checkpoint(inference, "Hel")()
    Inference.objects.filter(pk=inference.pk).update(heartbeat_at=Now() - DEAD)


def test_a_reaper_that_waited_for_a_heartbeat_lets_the_owner_live(inference: Inference) -> None:
    silence_owner(inference)
    _, reaped = overlapping(Inference.objects.filter(pk=inference.pk).beat, endings.reap)
    assert reaped == []
    assert saved(inference) == ("streaming", "Hel", 3)


def test_a_reaper_that_waited_for_the_owners_end_changes_nothing(inference: Inference) -> None:
    silence_owner(inference)
    _, reaped = overlapping(finish(inference, "Hello"), endings.reap)
    assert reaped == []
    assert saved(inference) == ("completed", "Hello", 5)


def test_an_owner_that_waited_for_the_reaper_saves_its_longer_text(inference: Inference) -> None:
    silence_owner(inference)
    reaped, _ = overlapping(endings.reap, finish(inference, "Hello"))
    assert [ending.status for ending in reaped] == [Status.INTERRUPTED]
    assert saved(inference) == ("completed", "Hello", 5)


def test_of_two_reapers_one_ends_it(inference: Inference) -> None:
    silence_owner(inference)
    first, second = overlapping(endings.reap, endings.reap)
    assert (len(first), len(second)) == (1, 0)


# A late stop against the next prompt


def send(user: User, room: Room, text: str = "And then?") -> Callable[[], Taken]:
    ask = ask_of(user, room)
    return lambda: prompts.send(ask, text, None, has_parent=False)


def test_a_late_stop_that_waited_for_the_next_prompt_lets_the_reply_be(
    inference: Inference, alice: User, room: Room
) -> None:
    complete(inference, "Hello")
    stop = signal_for(inference, alice, 2)
    _, cut = overlapping(send(alice, room), lambda: endings.cut_after_finish(stop))
    assert cut is None
    assert saved(inference) == ("completed", "Hello", 5)


def test_the_next_prompt_that_waited_for_a_late_stop_sends_the_cut_text(
    inference: Inference, alice: User, room: Room
) -> None:
    complete(inference, "Hello")
    stop = signal_for(inference, alice, 2)
    _, taken = overlapping(lambda: endings.cut_after_finish(stop), send(alice, room))
    assert saved(inference) == ("stopped", "He", 2)
    assert taken.job is not None
    assert Turn("assistant", "He") in taken.job.completion.turns


def test_a_reaped_owners_longer_text_and_the_next_prompt_agree(inference: Inference, alice: User, room: Room) -> None:
    silence_owner(inference)
    endings.reap()
    _, taken = overlapping(finish(inference, "Hello"), send(alice, room))
    assert taken.job is not None
    assert Turn("assistant", saved(inference)[1]) in taken.job.completion.turns


# Two prompts at once


def send_or_refuse(user: User, room: Room) -> Callable[[], Taken | str]:
    work = send(user, room)

    def take() -> Taken | str:
        try:
            return work()
        except PromptError as error:
            return error.code

    return take


def test_of_two_prompts_at_once_the_second_is_busy_and_leaves_no_rows(alice: User, bob: User, room: Room) -> None:
    first, second = overlapping(send_or_refuse(alice, room), send_or_refuse(bob, room))
    assert isinstance(first, Taken)
    assert second == "busy"
    assert Message.objects.filter(room=room).count() == 2


def test_a_resent_client_id_is_not_busy_with_its_own_reply(alice: User, room: Room) -> None:
    """The second one looked for the id before the first had committed, and for a live reply after."""
    ask = ask_of(alice, room)

    def send() -> Taken:
        return prompts.send(ask, "Hello", None, has_parent=False)

    def send_while_rooms_are_locked() -> Taken:
        with connection.cursor() as cursor:
            # Holds the second one up between its two looks.
            cursor.execute("LOCK TABLE chat_room IN ACCESS EXCLUSIVE MODE")
        return send()

    first, second = overlapping(send_while_rooms_are_locked, send)
    assert first.inference is not None
    assert (second.job, second.inference) == (None, first.inference)


def test_one_client_id_sent_twice_at_once_is_one_prompt(alice: User, room: Room) -> None:
    ask = ask_of(alice, room)
    first, second = overlapping(*[lambda: prompts.send(ask, "Hello", None, has_parent=False)] * 2)
    assert (first.job is not None, second.job is None) == (True, True)
    assert live(first) == live(second)
    assert Message.objects.filter(room=room, client_id=ask.client_id).count() == 1


def test_one_regenerate_sent_twice_at_once_is_one_reply(alice: User, room: Room) -> None:
    earlier = complete(begin(alice, room), "Hi")
    ask = ask_of(alice, room)
    first, second = overlapping(*[lambda: prompts.regenerate(ask, earlier.message_id)] * 2)
    assert live(first) == live(second)
    assert Message.objects.filter(room=room, client_id=ask.client_id).count() == 1


@pytest.mark.parametrize("has_messages", [False, True])
def test_a_prompt_for_a_room_that_is_being_deleted_finds_no_room(alice: User, room: Room, has_messages: bool) -> None:
    if has_messages:
        complete(begin(alice, room), "Hello")
    _, answer = overlapping(lambda: Room.objects.filter(pk=room.pk).delete(), send_or_refuse(alice, room))
    assert answer == "not_found"
    assert not Message.objects.filter(room=room.pk).exists()


def test_a_rename_that_waited_for_the_rooms_end_finds_no_room(alice: User, room: Room) -> None:
    def rename() -> None:
        with pytest.raises(Http404):
            _change(alice, room.pk, QueryDict("title=Too+late"))

    overlapping(lambda: Room.objects.filter(pk=room.pk).delete(), rename)


def test_many_who_finish_stop_and_save_at_once_agree_in_the_end(alice: User) -> None:
    """No order is forced here: whatever it was, the rows say one thing and the text fits it."""
    together = Barrier(3)
    with ThreadPoolExecutor(3) as threads:
        for _ in range(20):
            inference = begin(alice, Room.objects.create_for(alice))
            works: list[Callable[[], Any]] = [
                finish(inference, "Hello world"),
                record_stop(inference, alice, 5),
                checkpoint(inference, "Hello"),
            ]
            list(threads.map(lambda work: _together(together, work), works))
            inference.refresh_from_db()
            text = "Hello" if inference.stop_requested_at else "Hello world"
            assert saved(inference) == ("stopped" if inference.stop_requested_at else "completed", text, len(text))
        list(threads.map(lambda _: _together(together, lambda: None), range(3)))


def _together(barrier: Barrier, work: Callable[[], Any]) -> None:
    barrier.wait(WAIT_SECONDS)
    _with_own_connection(work)


def test_an_unknown_inference_is_nobodys(alice: User, inference: Inference) -> None:
    inference.pk = uuid4()
    assert finish(inference, "Hello")() is None
    assert endings.cut_after_finish(signal_for(inference, alice, 1)) is None
