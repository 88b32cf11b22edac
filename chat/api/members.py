"""The members of a room over HTTP."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from ninja import Router, Status

from chat import members
from chat.api.callers import ApiRequest
from chat.api.reading import visible_room
from chat.api.shapes import ErrorOut, MemberList, MemberOut, NewMember, RoleChange
from chat.database import rows
from chat.models import Membership

router = Router(tags=["members"])

REFUSED = {(400, 401, 404, 503): ErrorOut}
REFUSED_WRITE = {(400, 401, 403, 404, 409, 413, 503): ErrorOut}


@router.get("/rooms/{room_id}/members", response={200: MemberList, **REFUSED}, summary="Who is in a room")
async def list_members(request: ApiRequest, room_id: UUID) -> MemberList:
    return await rows.run(_list, request.auth.user, room_id)


@router.post("/rooms/{room_id}/members", response={201: MemberOut, **REFUSED_WRITE}, summary="Let somebody in")
async def add_member(request: ApiRequest, room_id: UUID, body: NewMember) -> Status[MemberOut]:
    added = await rows.run(members.add, request.auth.user, room_id, username=body.username, role=body.role)
    await members.tell(room_id)
    return Status(201, _out(added))


@router.patch(
    "/rooms/{room_id}/members/{member_id}",
    response={200: MemberOut, **REFUSED_WRITE},
    summary="Give a member another role",
)
async def change_member(request: ApiRequest, room_id: UUID, member_id: int, body: RoleChange) -> MemberOut:
    changed = await rows.run(members.change_role, request.auth.user, room_id, member_id, role=body.role)
    await members.tell(room_id)
    return _out(changed)


@router.delete(
    "/rooms/{room_id}/members/{member_id}",
    response={204: None, **REFUSED_WRITE},
    summary="Remove a member, or leave",
)
async def remove_member(request: ApiRequest, room_id: UUID, member_id: int) -> Status[None]:
    await rows.run(members.remove, request.auth.user, room_id, member_id)
    await members.tell(room_id)
    return Status(204, None)


def _list(user: User, room_id: UUID) -> MemberList:
    found = members.members_of(visible_room(user, room_id))
    return MemberList(members=[_out(membership) for membership in found])


def _out(membership: Membership) -> MemberOut:
    return MemberOut.from_orm(
        {"id": membership.pk, "username": membership.user.get_username(), "role": membership.role}
    )
