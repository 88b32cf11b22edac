"""What the API reads of a reply is of one moment, however the reply goes on between two statements."""

from __future__ import annotations

from django.contrib.auth.models import User

from chat.api.reading import inference_out, message_out, visible_reply
from chat.export import as_data
from chat.models import Inference, Message, Room
from chat.tests.people import begin, complete, progress_of


def listed(inference: Inference) -> Message:
    """A reply as a page of messages reads it: without its text, which is read only where it is needed."""
    return Message.objects.select_related("author", "inference").defer("inference__parts").get(inference=inference)


def test_a_reply_whose_text_begins_while_it_is_read_is_no_longer_pending(alice: User, room: Room) -> None:
    inference = begin(alice, room)
    message = listed(inference)
    Inference.objects.checkpoint([progress_of(inference, "Some te")])
    shown = message_out(message)
    assert (shown.status, shown.text, shown.inference_id) == ("streaming", "Some te", inference.pk)


def test_a_reply_that_ends_while_it_is_read_has_its_whole_text(alice: User, room: Room) -> None:
    inference = begin(alice, room)
    message = listed(inference)
    complete(inference, "Some text")
    shown = message_out(message)
    assert (shown.status, shown.text) == ("completed", "Some text")


def test_an_answer_gives_its_reply_and_its_inference_from_one_row(alice: User, room: Room) -> None:
    inference = begin(alice, room)
    Inference.objects.checkpoint([progress_of(inference, "Some te")])
    row = visible_reply(alice, inference.pk)
    complete(inference, "Some text")
    reply, state = message_out(row.message), inference_out(row)
    assert (reply.status, reply.text) == (state.status, state.content) == ("streaming", "Some te")


def test_an_export_reads_replies_with_their_parts_in_one_statement(
    alice: User, room: Room, django_assert_num_queries: object
) -> None:
    inference = complete(begin(alice, room), "Some text")
    with django_assert_num_queries(1):  # type: ignore[operator]  # a fixture of pytest-django, which has no types
        data = as_data(room)
    assert data["messages"][1]["text"] == "Some text"
    assert data["messages"][1]["inference"]["id"] == str(inference.pk)
