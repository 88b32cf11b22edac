"""What has happened in rooms of late, by the rows: for sockets whose news were lost. In a database thread."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from chat.endings import ending_of
from chat.frames import message_frame, start_frame
from chat.models import Inference, Message
from inference.bus import Event
from inference.events import end_event
from inference.journal import LIVE


def events_since(since: Mapping[UUID, datetime]) -> list[Event]:
    """The events that a room's sockets should have heard since the time given for the room, in order."""
    if not since:
        return []
    oldest = min(since.values())
    events = [*_messages(since, oldest), *_inferences(since, oldest)]
    return [event for at, event in sorted(events, key=lambda pair: pair[0])]


def _messages(since: Mapping[UUID, datetime], oldest: datetime) -> list[tuple[datetime, Event]]:
    prompts = Message.objects.filter(room__in=since, role=Message.Role.USER, created_at__gte=oldest)
    return [
        (prompt.created_at, _news(prompt.room.topic, message_frame(prompt)))
        for prompt in prompts.select_related("author", "room")
        if prompt.created_at >= since[prompt.room_id]
    ]


def _inferences(since: Mapping[UUID, datetime], oldest: datetime) -> list[tuple[datetime, Event]]:
    rows = Inference.objects.filter(Q(status__in=LIVE) | Q(finished_at__gte=oldest), room__in=since)
    events: list[tuple[datetime, Event]] = []
    for row in rows.select_related("message").defer("parts", "message__text"):
        if row.status in LIVE and row.started_at >= since[row.room_id]:
            frame = start_frame(row, row.message, row.message.client_id)
            events.append((row.started_at, _news(row.topic, frame)))
        if row.finished_at and row.finished_at >= since[row.room_id]:
            events.append((row.finished_at, end_event(ending_of(row))))
    return events


def _news(topic: str, frame: Event) -> Event:
    return {"type": "news", "topic": topic, "frames": [frame]}
