"""Who belongs to a room: its owners add, change and remove people, and everybody may leave. For the pages and the API.

`add`, `change_role` and `remove` run in a database thread; whoever has called one tells the room by `tell`.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chat import runtime
from chat.database import rows
from chat.frames import members_frame
from chat.models import Membership, Room
from chat.models.room import RoomQuerySet
from inference.text import clean

OWNER = Membership.Role.OWNER


class MemberError(Exception):
    """A change that is refused: a code of `chat.api.errors.STATUS_OF`, and a sentence for people."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def members_of(room: Room) -> QuerySet[Membership]:
    """The room's members with their accounts, the owners first."""
    return Membership.objects.filter(room=room).select_related("user").order_by("role", "user__username")


def add(owner: User, room_id: UUID, *, username: str, role: str) -> Membership:
    """Let the person of this name in. Raises MemberError."""
    with transaction.atomic():
        room = _held(Room.objects.owned_by(owner), room_id)
        user = User.objects.filter(username=User.normalize_username(clean(username)), is_active=True).first()
        if user is None:
            raise MemberError("no_such_person", _("There is nobody of this name here."))
        if Membership.objects.filter(room=room, user=user).exists():
            raise MemberError("conflict", _("This person is in the chat already."))
        if settings.LIMITS and Membership.objects.filter(room=room).count() >= settings.MAX_MEMBERS_PER_ROOM:
            raise MemberError("conflict", _("No more people can be let into this chat."))
        return Membership.objects.create(room=room, user=user, role=role)


def change_role(owner: User, room_id: UUID, membership_id: int, *, role: str) -> Membership:
    """Give a member another role. Raises MemberError."""
    with transaction.atomic():
        membership = _member(_held(Room.objects.owned_by(owner), room_id), membership_id)
        if role != OWNER:
            _refuse_last_owner(membership)
        Membership.objects.filter(pk=membership.pk).update(role=role)
        membership.role = role
        return membership


def remove(user: User, room_id: UUID, membership_id: int) -> None:
    """End a membership: an owner anybody's, everybody their own. Raises MemberError."""
    with transaction.atomic():
        is_own = Membership.objects.filter(pk=membership_id, user=user).exists()
        rooms = Room.objects.visible_to(user) if is_own else Room.objects.owned_by(user)
        membership = _member(_held(rooms, room_id), membership_id)
        _refuse_last_owner(membership)
        membership.delete()


async def tell(room_id: UUID) -> None:
    """Let the room's sockets hear of it: everybody how many are in the room, each what they themselves may do now."""
    room, count = await rows.run(_counted, room_id)
    if room is not None:
        await runtime.current().news.publish(room.topic, [members_frame(room, count)])


def _counted(room_id: UUID) -> tuple[Room | None, int]:
    return Room.objects.filter(pk=room_id).first(), Membership.objects.filter(room=room_id).count()


def _held(rooms: RoomQuerySet, room_id: UUID) -> Room:
    """The room if it is one of `rooms`, locked against other changes of its members."""
    if rooms.filter(pk=room_id).exists():
        # Prompts, which refer to the room, need not wait for a lock that leaves its key alone.
        Room.objects.select_for_update(no_key=True).filter(pk=room_id).first()
    # Only now: another owner may have changed this one's role before the lock was ours.
    room = rooms.filter(pk=room_id).first()
    if room is None:
        raise _no_such("room")
    return room


def _member(room: Room, membership_id: int) -> Membership:
    membership = members_of(room).filter(pk=membership_id).first()
    if membership is None:
        raise _no_such("member")
    return membership


def _refuse_last_owner(membership: Membership) -> None:
    owners = Membership.objects.filter(room=membership.room_id, role=OWNER, user__is_active=True)
    if membership.role == OWNER and not owners.exclude(pk=membership.pk).exists():
        raise MemberError("conflict", _("A chat needs an owner. Make somebody else one first, or delete the chat."))


def _no_such(what: str) -> MemberError:
    return MemberError("not_found", f"There is no such {what}, or it is not yours.")
