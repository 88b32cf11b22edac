"""Rooms and their messages over HTTP."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.contrib.auth.models import User
from ninja import Query, Router, Status

from chat import runtime
from chat.api import reading
from chat.api.callers import ApiRequest
from chat.api.errors import not_found
from chat.api.shapes import ErrorOut, MessagePage, NewRoom, RoomChange, RoomOut, RoomPage
from chat.database import rows
from chat.frames import room_frame
from chat.models import Room
from chat.rooms import make_room as make_room_of

router = Router(tags=["rooms"])

Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
After = Annotated[UUID | None, Query(description="`next` of the page before.")]
REFUSED = {(400, 401, 404, 503): ErrorOut}
REFUSED_WRITE = {(400, 401, 403, 404, 413, 503): ErrorOut}


@router.get("/rooms", response={200: RoomPage, **REFUSED}, summary="Your rooms, the last used first")
async def list_rooms(request: ApiRequest, limit: Limit = 50, after: After = None) -> RoomPage:
    return await rows.run(reading.room_page, request.auth.user, after, limit)


@router.post("/rooms", response={201: RoomOut, **REFUSED_WRITE, 409: ErrorOut}, summary="Make a room")
async def make_room(request: ApiRequest, body: NewRoom) -> Status[RoomOut]:
    return Status(201, await rows.run(_make, request.auth.user, body.title))


@router.get("/rooms/{room_id}", response={200: RoomOut, **REFUSED}, summary="One room")
async def get_room(request: ApiRequest, room_id: UUID) -> RoomOut:
    return reading.room_out(await rows.run(reading.visible_room, request.auth.user, room_id))


@router.patch("/rooms/{room_id}", response={200: RoomOut, **REFUSED_WRITE}, summary="Rename a room of your own")
async def rename_room(request: ApiRequest, room_id: UUID, body: RoomChange) -> RoomOut:
    room = await rows.run(_rename, request.auth.user, room_id, body.title)
    await runtime.current().news.publish(room.topic, [room_frame(room)])
    return reading.room_out(room)


@router.delete("/rooms/{room_id}", response={204: None, **REFUSED_WRITE}, summary="Delete a room of your own")
async def delete_room(request: ApiRequest, room_id: UUID) -> Status[None]:
    await rows.run(_delete, request.auth.user, room_id)
    return Status(204, None)


@router.get(
    "/rooms/{room_id}/messages", response={200: MessagePage, **REFUSED}, summary="Its messages, the oldest first"
)
async def list_messages(request: ApiRequest, room_id: UUID, limit: Limit = 50, after: After = None) -> MessagePage:
    return await rows.run(reading.message_page, request.auth.user, room_id, after, limit)


def _make(user: User, title: str) -> RoomOut:
    return reading.room_out(reading.visible_room(user, make_room_of(user, title).pk))


def _rename(user: User, room_id: UUID, title: str) -> Room:
    if not Room.objects.filter(pk__in=Room.objects.owned_by(user), pk=room_id).update(title=title):
        raise not_found("room")
    return reading.visible_room(user, room_id)


def _delete(user: User, room_id: UUID) -> None:
    room = Room.objects.owned_by(user).filter(pk=room_id).first()
    if room is None:
        raise not_found("room")
    room.delete()
