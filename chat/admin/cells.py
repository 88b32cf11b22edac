"""Cells of the lists of messages and inferences: two short lines each, so that a list fits beside its filters."""

from __future__ import annotations

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString

from chat.admin.evidence import asker_of, seconds_until_saved, seconds_until_stop, stopper_of
from chat.models import Inference, Message, Room


def time_cell(at: datetime) -> SafeString:
    return _two_lines(f"{at:%d %b %Y}", f"{at:%H:%M:%S}")


def place_cell(room: Room, message: Message) -> SafeString:
    """The room, and who asked there."""
    return _two_lines(str(room), asker_of(message))


def model_cell(row: Inference) -> SafeString:
    """The model, and how the reply stands; of a failed one, why."""
    return _two_lines(row.model, f"{row.status}: {row.error_code}" if row.error_code else row.status)


def stop_cell(row: Inference) -> SafeString:
    """Who stopped it; from where, and when: at the time of a day that is that of the reply, or the next."""
    at = f" {row.stop_requested_at:%H:%M:%S}" if row.stop_requested_at else ""
    return _two_lines(stopper_of(row), f"{row.get_stop_source_display()}{at}")


def speed_cell(row: Inference) -> SafeString:
    """How long after the first token the stop came, and how long it took to be saved."""
    return _two_lines(_seconds(seconds_until_stop(row)), _seconds(seconds_until_saved(row)))


def length_cell(row: Inference) -> SafeString:
    """Characters kept, and generated."""
    return _two_lines(str(row.position), str(row.generated_position))


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3f} s"


def _two_lines(first: str, second: str) -> SafeString:
    # With a title, because a long one is cut.
    return format_html('<span title="{0}">{0}</span><span title="{1}">{1}</span>', first, second)
