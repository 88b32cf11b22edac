"""The events that workers send each other, as the channel layer carries them: plain dicts of text and numbers."""

from __future__ import annotations

from uuid import UUID

from inference.bus import Event
from inference.journal import Ending, Status
from inference.stop import StopSignal


def stop_event(signal: StopSignal, *, reply_to: str) -> Event:
    """A stop on its way to the owner, who acknowledges to the address `reply_to`."""
    return {
        "type": "stop",
        "inference_id": str(signal.inference_id),
        "topic": signal.topic,
        "position": signal.position,
        "user_id": signal.user_id,
        "source": signal.source,
        "recorded_at": signal.recorded_at,
        "reply_to": reply_to,
    }


def signal_of(event: Event) -> StopSignal:
    """The stop that an event carries."""
    return StopSignal(
        inference_id=UUID(event["inference_id"]),
        topic=event["topic"],
        position=event["position"],
        user_id=event["user_id"],
        source=event["source"],
        # A worker of an older version does not say it.
        recorded_at=event.get("recorded_at"),
    )


def end_event(ending: Ending) -> Event:
    """An inference has ended, or was cut back after its end."""
    return {
        "type": "end",
        "inference_id": str(ending.inference_id),
        "message_id": str(ending.message_id),
        "topic": ending.topic,
        "status": str(ending.status),
        "position": ending.position,
        "finish_reason": ending.finish_reason,
        "error_code": ending.error_code,
    }


def ending_of(event: Event) -> Ending:
    """The ending that an event carries."""
    return Ending(
        inference_id=UUID(event["inference_id"]),
        message_id=UUID(event["message_id"]),
        topic=event["topic"],
        status=Status(event["status"]),
        position=event["position"],
        finish_reason=event["finish_reason"],
        error_code=event["error_code"],
    )
