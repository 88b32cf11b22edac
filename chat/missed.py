"""How rooms stand, and what has happened in them of late, by the rows: for sockets whose news were lost.

In a database thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from chat.endings import ending_of
from chat.frames import ROOM_FIELDS, Frame, members_frame, message_frame, start_frame
from chat.models import Inference, Message, Room
from inference.bus import Event
from inference.events import end_event
from inference.journal import LIVE

Told = Callable[[Hashable], bool]


def message_key(message_id: UUID | str) -> Hashable:
    """By what the news of a prompt are known again."""
    return "message", str(message_id)


def start_key(inference_id: UUID | str) -> Hashable:
    """By what the news of a reply that begins are known again."""
    return "start", str(inference_id)


def room_frames(room_ids: Collection[UUID]) -> dict[UUID, Frame]:
    """For each of these rooms that is still there a `room` frame with all that everybody in it may see."""
    rooms = Room.objects.filter(pk__in=room_ids).with_member_count()
    return {room.pk: members_frame(room, room.member_count, changed=ROOM_FIELDS) for room in rooms}


def events_since(since: Mapping[UUID, datetime], is_told: Told) -> list[Event]:
    """The events that a room's sockets should have heard since the time given for the room, in order.

    Nearly always they have: only what was not told is read whole.
    """
    if not since:
        return []
    oldest = min(since.values())
    events = [*_messages(since, oldest, is_told), *_inferences(since, oldest, is_told)]
    return [event for at, event in sorted(events, key=lambda pair: pair[0])]


def _messages(since: Mapping[UUID, datetime], oldest: datetime, is_told: Told) -> list[tuple[datetime, Event]]:
    prompts = Message.objects.filter(room__in=since, role=Message.Role.USER, created_at__gte=oldest)
    found = prompts.values_list("pk", "room_id", "created_at")
    untold = [pk for pk, room_id, at in found if at >= since[room_id] and not is_told(message_key(pk))]
    read = Message.objects.filter(pk__in=untold).select_related("author", "room") if untold else ()
    return [(prompt.created_at, _news(prompt.room.topic, message_frame(prompt))) for prompt in read]


def _inferences(since: Mapping[UUID, datetime], oldest: datetime, is_told: Told) -> list[tuple[datetime, Event]]:
    recent = Inference.objects.filter(
        Q(status__in=LIVE, started_at__gte=oldest) | Q(finished_at__gte=oldest), room__in=since
    )
    found = recent.values_list("pk", "status")
    untold = [pk for pk, status in found if status not in LIVE or not is_told(start_key(pk))]
    read = Inference.objects.filter(pk__in=untold).select_related("message").defer("parts", "message__text")
    events: list[tuple[datetime, Event]] = []
    for row in read if untold else ():
        if row.status in LIVE and row.started_at >= since[row.room_id]:
            frame = start_frame(row, row.message, row.message.client_id)
            events.append((row.started_at, _news(row.topic, frame)))
        if row.finished_at and row.finished_at >= since[row.room_id]:
            events.append((row.finished_at, end_event(ending_of(row))))
    return events


def _news(topic: str, frame: Event) -> Event:
    return {"type": "news", "topic": topic, "frames": [frame]}
