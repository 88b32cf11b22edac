"""Who may come in: a session that lives, an account that is open, a room that is theirs."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.test import Client

from chat.access import NO_SUCH_ROOM, NOT_SIGNED_IN, Door, Refused, enter, person_of
from chat.doors import standings
from chat.models import Membership, Room

pytestmark = pytest.mark.django_db


def door_of(client: Client, room: Room) -> Door:
    cookie = client.cookies.get("sessionid")
    return Door(cookie.value if cookie else "", room.pk)


@pytest.fixture
def bobs_door(client: Client, bob: User, room: Room) -> Door:
    client.force_login(bob)
    return door_of(client, room)


def close_code(door: Door) -> int | None:
    """The same at the door and at every look at those who are inside."""
    standing = standings([door])[door]
    try:
        visit = enter(door)
    except Refused as refusal:
        assert refusal.close_code == standing.close_code
        return refusal.close_code
    assert (standing.close_code, standing.role, standing.title) == (None, visit.role, visit.room.title)
    return None


def test_a_member_comes_in(bobs_door: Door, bob: User, room: Room) -> None:
    visit = enter(bobs_door)
    assert (visit.user, visit.room, visit.can_write, visit.door) == (bob, room, True, bobs_door)


def test_a_reader_comes_in_and_may_not_write(client: Client, rita: User, room: Room) -> None:
    client.force_login(rita)
    assert not enter(door_of(client, room)).can_write


def test_an_outsider_and_an_unknown_room_are_answered_alike(client: Client, charlie: User, room: Room) -> None:
    client.force_login(charlie)
    assert close_code(door_of(client, room)) == NO_SUCH_ROOM
    assert close_code(door_of(client, Room(pk=uuid4()))) == NO_SUCH_ROOM


@pytest.mark.parametrize("session_key", ["", "x", "0" * 32, "\x00", "a" * 10_000, "../..", "강물"])
def test_no_session_of_ours_is_nobody(room: Room, session_key: str) -> None:
    assert person_of(session_key) is None
    assert close_code(Door(session_key, room.pk)) == NOT_SIGNED_IN


def test_a_logout_ends_the_visit(client: Client, bobs_door: Door) -> None:
    client.logout()
    assert close_code(bobs_door) == NOT_SIGNED_IN


def test_a_new_password_ends_the_visits_of_the_old_one(bobs_door: Door, bob: User) -> None:
    bob.set_password("another correct horse")
    bob.save(update_fields=["password"])
    assert close_code(bobs_door) == NOT_SIGNED_IN


def test_a_closed_account_ends_the_visit(bobs_door: Door, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert close_code(bobs_door) == NOT_SIGNED_IN


def test_a_deleted_account_ends_the_visit(bobs_door: Door, bob: User) -> None:
    bob.delete()
    assert close_code(bobs_door) == NOT_SIGNED_IN


def test_a_membership_that_ends_or_a_room_that_goes_ends_the_visit(bobs_door: Door, bob: User, room: Room) -> None:
    Membership.objects.filter(user=bob, room=room).delete()
    assert close_code(bobs_door) == NO_SUCH_ROOM
    room.delete()
    assert close_code(bobs_door) == NO_SUCH_ROOM


def test_a_door_does_not_open_another_room(client: Client, bob: User, charlie: User) -> None:
    client.force_login(bob)
    assert close_code(door_of(client, Room.objects.create_for(charlie))) == NO_SUCH_ROOM


def test_the_one_door_knows_roles(alice: User, bob: User, rita: User, charlie: User, room: Room) -> None:
    def rights(user: User | AnonymousUser) -> list[bool]:
        rooms = Room.objects
        return [room in found for found in (rooms.visible_to(user), rooms.writable_by(user), rooms.owned_by(user))]

    assert rights(alice) == [True, True, True]
    assert rights(bob) == [True, True, False]
    assert rights(rita) == [True, False, False]
    assert rights(charlie) == rights(AnonymousUser()) == [False, False, False]
    alice.is_active = False
    assert rights(alice) == [False, False, False]


def test_a_superuser_has_no_key_to_rooms_of_others(room: Room) -> None:
    assert not Room.objects.visible_to(User.objects.create_superuser("root")).exists()


def test_a_role_is_one_of_three_and_one_for_each_person(bob: User, charlie: User, room: Room) -> None:
    for user, role in ((bob, "reader"), (charlie, "king")):
        with pytest.raises(IntegrityError), transaction.atomic():
            Membership.objects.create(room=room, user=user, role=role)
