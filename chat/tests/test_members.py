"""Sharing a room: who may let in, change and remove whom, and how open pages hear of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from chat import members
from chat.members import MemberError
from chat.models import Membership, Room
from chat.tests.inside import InsideSite
from chat.tests.people import begin, complete


def role_of(user: User, room: Room) -> str | None:
    return Membership.objects.filter(user=user, room=room).values_list("role", flat=True).first()


def id_of(user: User, room: Room) -> int:
    return Membership.objects.get(user=user, room=room).pk


def refusal(function: Callable[..., Any], *args: Any, **fields: Any) -> str:
    with pytest.raises(MemberError) as caught:
        function(*args, **fields)
    return caught.value.code


def test_an_owner_lets_somebody_in_by_name(alice: User, charlie: User, room: Room) -> None:
    members.add(alice, room.pk, username="charlie", role="writer")
    assert role_of(charlie, room) == "writer"


@pytest.mark.parametrize("name", ["nobody", "", "Charlie", "charlie\x00x", "x" * 1000])
def test_a_name_that_is_nobodys_is_told_so(alice: User, charlie: User, room: Room, name: str) -> None:
    assert refusal(members.add, alice, room.pk, username=name, role="reader") == "no_such_person"


def test_a_closed_account_is_nobody(alice: User, charlie: User, room: Room) -> None:
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    assert refusal(members.add, alice, room.pk, username="charlie", role="reader") == "no_such_person"


def test_somebody_is_let_in_once(alice: User, bob: User, room: Room) -> None:
    assert refusal(members.add, alice, room.pk, username="bob", role="owner") == "conflict"
    assert role_of(bob, room) == "writer"


def test_a_full_room_takes_nobody(alice: User, charlie: User, room: Room, settings: Any) -> None:
    settings.MAX_MEMBERS_PER_ROOM = 3
    assert refusal(members.add, alice, room.pk, username="charlie", role="reader") == "conflict"
    settings.LIMITS = False
    members.add(alice, room.pk, username="charlie", role="reader")


def test_a_role_is_changed_by_owners_only(alice: User, bob: User, rita: User, charlie: User, room: Room) -> None:
    ritas = id_of(rita, room)
    for user in (bob, rita, charlie):
        assert refusal(members.change_role, user, room.pk, ritas, role="owner") == "not_found"
    members.change_role(alice, room.pk, ritas, role="writer")
    assert role_of(rita, room) == "writer"


def test_anybody_may_leave_and_only_owners_remove(alice: User, bob: User, rita: User, room: Room) -> None:
    assert refusal(members.remove, bob, room.pk, id_of(rita, room)) == "not_found"
    members.remove(bob, room.pk, id_of(bob, room))
    members.remove(alice, room.pk, id_of(rita, room))
    assert [each.user for each in members.members_of(room)] == [alice]


def test_a_room_keeps_an_owner_whose_account_is_open(alice: User, bob: User, room: Room) -> None:
    own = id_of(alice, room)
    assert refusal(members.remove, alice, room.pk, own) == "conflict"
    assert refusal(members.change_role, alice, room.pk, own, role="reader") == "conflict"
    members.change_role(alice, room.pk, id_of(bob, room), role="owner")
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert refusal(members.remove, alice, room.pk, own) == "conflict"
    User.objects.filter(pk=bob.pk).update(is_active=True)
    members.remove(alice, room.pk, own)
    assert role_of(alice, room) is None


def test_a_membership_of_another_room_is_none_of_this_one(alice: User, charlie: User, room: Room) -> None:
    other = Room.objects.create_for(charlie)
    for membership_id in (id_of(charlie, other), 10**9):
        assert refusal(members.change_role, alice, room.pk, membership_id, role="reader") == "not_found"
        assert refusal(members.remove, alice, room.pk, membership_id) == "not_found"
    # Her own, but named in a room that is not hers.
    assert refusal(members.remove, alice, other.pk, id_of(alice, room)) == "not_found"


def test_two_owners_who_remove_each_other_leave_one(transactional_db: None, alice: User, bob: User, room: Room) -> None:
    """Completion against completion: whoever comes second is no owner any more."""
    members.change_role(alice, room.pk, id_of(bob, room), role="owner")
    ids = {alice: id_of(alice, room), bob: id_of(bob, room)}
    start, codes = threading.Barrier(2), []

    def remove(remover: User, removed: User) -> None:
        start.wait(10)
        try:
            members.remove(remover, room.pk, ids[removed])
        except MemberError as error:
            codes.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=remove, args=pair) for pair in ((alice, bob), (bob, alice))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert codes == ["not_found"]
    assert Membership.objects.filter(room=room, role="owner").count() == 1


async def test_a_page_hears_at_once_what_its_person_may_do_now(
    inside: InsideSite, alice: User, rita: User, room: Room
) -> None:
    """The page of the others hears how many are in the room."""
    membership = await Membership.objects.aget(user=rita, room=room)
    async with inside.open(alice, room.pk) as hers, inside.open(rita, room.pk) as ritas:
        await hers.next("hello")
        await ritas.next("hello")
        alices = await inside.client(alice)
        answer = await alices.patch(
            f"/api/v1/rooms/{room.pk}/members/{membership.pk}", {"role": "writer"}, content_type="application/json"
        )
        assert answer.json() == {"id": membership.pk, "username": "rita", "role": "writer"}
        assert await hers.next("room") == {"type": "room", "title": "A room", "member_count": 3}
        assert await ritas.next("room") == {"type": "room", "title": "A room", "member_count": 3}
        assert await ritas.next("room") == {"type": "room", "title": "A room", "role": "writer"}
        await ritas.send({"type": "send", "client_id": str(uuid4()), "text": "May I?"})
        assert (await ritas.next("start", "error"))["type"] == "start"


async def test_a_role_that_shrinks_counts_for_the_very_next_frame(
    inside: InsideSite, alice: User, bob: User, room: Room
) -> None:
    inference = await sync_to_async(lambda: complete(begin(alice, room), "Some text"))()
    async with inside.open(bob, room.pk) as bobs:
        await bobs.next("hello")
        await sync_to_async(lambda: members.change_role(alice, room.pk, id_of(bob, room), role="reader"))()
        await bobs.send({"type": "stop", "inference_id": str(inference.pk), "position": 2})
        assert (await bobs.next("stop_result"))["outcome"] == "not_found"
        await bobs.send({"type": "send", "client_id": str(uuid4()), "text": "Hi"})
        assert (await bobs.next("start", "error"))["code"] == "not_found"


async def test_a_member_who_is_removed_is_put_out_at_once_and_those_who_stay_are_not(
    inside: InsideSite, alice: User, bob: User, room: Room
) -> None:
    membership = await Membership.objects.aget(user=bob, room=room)
    async with inside.open(alice, room.pk) as hers, inside.open(bob, room.pk) as bobs:
        await hers.next("hello")
        await bobs.next("hello")
        alices = await inside.client(alice)
        assert (await alices.post(f"/rooms/{room.pk}/members/{membership.pk}/remove/")).status_code == 302
        assert await bobs.next("close") == {"type": "close", "code": 4404}
        assert (await hers.next("room", "close"))["member_count"] == 2
        await hers.send({"type": "ping"})
        assert (await hers.next("pong", "close"))["type"] == "pong"


def test_the_page_lists_members_and_offers_owners_to_change_them(
    client: Client, alice: User, bob: User, rita: User, room: Room
) -> None:
    for user, count in ((alice, 2), (bob, 0), (rita, 0)):
        client.force_login(user)
        page = client.get(f"/rooms/{room.pk}/members/").content.decode()
        assert page.count("/change/") == count
        assert page.count("Leave this chat") == 1
        assert all(name in page for name in ("alice", "bob", "rita"))


async def test_the_page_says_what_was_wrong_with_what_was_typed(inside: InsideSite, alice: User, room: Room) -> None:
    alices = await inside.client(alice)
    for fields, said in (
        ({"username": "nobody", "role": "reader"}, "There is nobody of this name here."),
        ({"username": "bob", "role": "king"}, "king is not one of the available choices."),
        ({"username": "", "role": "reader"}, "This field is required."),
    ):
        answer = await alices.post(f"/rooms/{room.pk}/members/add/", fields)
        assert said in (await alices.get(answer["Location"])).content.decode()


async def test_whoever_leaves_comes_back_to_the_list_of_their_rooms(inside: InsideSite, bob: User, room: Room) -> None:
    membership = await Membership.objects.aget(user=bob, room=room)
    bobs = await inside.client(bob)
    assert (await bobs.post(f"/rooms/{room.pk}/members/{membership.pk}/remove/"))["Location"] == "/rooms/"
    assert "A room" not in (await bobs.get("/rooms/")).content.decode()


def test_a_shared_room_is_marked_in_every_members_list(client: Client, alice: User, bob: User, room: Room) -> None:
    Room.objects.create_for(alice, title="Her own")
    for user in (alice, bob):
        client.force_login(user)
        assert client.get("/rooms/found/").content.decode().count("row-shared") == 1


def test_a_reader_sees_neither_the_box_nor_a_stop_nor_other_replies(client: Client, rita: User, room: Room) -> None:
    client.force_login(rita)
    page = client.get(f"/rooms/{room.pk}/").content.decode()
    for part in (
        'id="composer"',
        'id="go"',
        'data-action="regenerate"',
        'data-action="continue"',
        'data-action="edit"',
    ):
        assert part not in page
    assert 'data-role="reader"' in page
