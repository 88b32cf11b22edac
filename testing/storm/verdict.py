"""Judges a case by the invariants I1-I4 and I7, once the storm is over and the rows have come to rest.

What may be excused, and by what, is said at each check: an excuse is a fault in the diary, never a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from testing.storm.case import Case, Press
from testing.storm.row import Row
from testing.storm.weather import Fault, Weather

FREED_SECONDS = 1.0
AGREE_SECONDS = 2.0
"""For a fresh tab to open, and for the others to be cut back."""
REREAD_SECONDS = 2.0
"""What a stop may take longer when Redis loses it: the owner reads it from the row at its next beat."""
OWNER_GONE_SECONDS = 15.0
OPENING_CHUNKS = 1
LOST_SECONDS = 1.5
"""kill -9 loses the last second; half a second for what was on its way to the database."""
IN_FLIGHT_CHUNKS = 3
"""So many chunks may be between the model server's socket and the owner when the connection ends."""
CUT_SECONDS = 30.0
FINAL = {"completed", "stopped", "failed", "interrupted"}
SETTLED = {"stopped", "already_stopped", "cut_after_finish"}


class Verdict:
    """One case against its row; `violations()` is empty when everything holds."""

    def __init__(self, case: Case, row: Row | None, weather: Weather) -> None:
        self._case = case
        self._row = row
        self._weather = weather

    def violations(self) -> list[str]:
        """One sentence each, beginning with the invariant."""
        return [*self._case.violations, *self._check()]

    def _check(self) -> Iterator[str]:
        row = self._row
        if row is None or row.status not in FINAL:
            yield f"I3 the row is {row.status if row else 'missing'}"
            return
        yield from self._check_texts(row)
        for press in self._case.presses:
            yield from self._check_press(press, row)
        yield from self._check_stopped(row) if row.status == "stopped" else self._check_other_end(row)
        yield from self._check_freed(row)
        yield from self._check_told()

    def _check_texts(self, row: Row) -> Iterator[str]:
        if not self._case.reply.text.startswith(row.text):
            yield f"I1 the row has what the model did not say: {row.text[-80:]!r}"
        if (row.message_text, row.message_status) != (row.content, row.status):
            yield f"I1 the message says {row.message_status} with {len(row.message_text)} characters"
        if row.position != len(row.text):
            yield f"I1 position {row.position} for {len(row.text)} characters"
        for name, shown in self._case.screens.items():
            if shown != row.text:
                yield f"I1 {name} shows {len(shown)} characters, the row has {len(row.text)}"

    def _check_press(self, press: Press, row: Row) -> Iterator[str]:
        if press.outcome == "not_found":
            yield "I1 a stop was answered not_found"
        if press.outcome in SETTLED and (row.status, row.position) != ("stopped", press.answered):
            yield f"I1 answered {press.outcome} at {press.answered}; the row is {row.status} at {row.position}"
        # A stop at the very end of a reply that was being saved had nothing to cut.
        is_kept = row.status == "stopped" or (row.status == "completed" and press.position == row.position)
        if press.outcome == "recorded" and not is_kept and not self._deaths("worker killed"):
            yield f"I1 a recorded stop ended as {row.status}"
        if press.outcome == "already_finished" and row.status != "stopped" and self._had_to_cut(press, row):
            yield f"I1 the screen stood at {press.position}, and the reply of {row.position} was not cut"

    def _had_to_cut(self, press: Press, row: Row) -> bool:
        if row.status != "completed" or press.position is None or row.finished_at is None:
            return False
        case = self._case
        in_time = press.answered_at - row.finished_at < CUT_SECONDS and press.answered_at < case.has_next_prompt_at
        return in_time and press.position < row.position

    def _check_stopped(self, row: Row) -> Iterator[str]:
        presses = self._case.presses
        asked = {press.position for press in presses}
        if row.stop_position is not None and not asked & {row.stop_position, None}:
            yield f"I1 stopped at {row.stop_position}, which nobody asked for"
        deaths = self._deaths("worker killed", "worker paused")
        if row.stop_position is not None and row.position != row.stop_position and not deaths:
            yield f"I1 stopped at {row.position} instead of {row.stop_position}"
        for press in presses:
            is_what_counts = press.position is not None and press.position == row.stop_position
            if is_what_counts and press.shown[: row.position] != row.text:
                yield "I1 the row has another text than the screen that stopped it"
        yield from self._check_lost(row, row.stop_position)

    def _check_other_end(self, row: Row) -> Iterator[str]:
        case, reply = self._case, self._case.reply
        if row.status == "interrupted":
            if not self._deaths("worker killed", "worker terminated", "worker paused"):
                yield "I3 interrupted although its owner lived"
            yield from self._check_lost(row, None)
        elif row.error_code == "timeout" and self._deaths("worker paused"):
            # To a process that was stopped for so long the model has been silent for so long.
            return
        elif row.status != reply.status:
            yield f"I7 ended as {row.status} ({row.error_code}), not as {reply.status or 'stopped'}"
        elif row.text != reply.text:
            yield f"I7 {row.status} with {len(row.text)} of {len(reply.text)} characters"
        elif row.error_code != reply.error_code:
            yield f"I7 failed as {row.error_code}"
        if row.status != "interrupted" and not reply.status and not case.presses:
            yield f"I3 a reply that never ends is {row.status}"

    def _check_lost(self, row: Row, stop_position: int | None) -> Iterator[str]:
        """At a kill the last second may be lost (more if the database was away just then), else nothing."""
        case = self._case
        gone = self._deaths("worker killed", "worker paused")
        if not case.requests or not case.reply.chunks:
            return
        if any(self._weather.between(fault.began_at - 3, fault.began_at, "postgres") for fault in gone):
            return
        chunk_count = case.requests[-1].chunks_sent - OPENING_CHUNKS
        for fault in gone:
            chunk_count = min(chunk_count, self._chunks_sent_until(fault.began_at - LOST_SECONDS))
        kept = len(case.reply.text_of(chunk_count - IN_FLIGHT_CHUNKS))
        least = kept if stop_position is None else min(stop_position, kept)
        if row.position < least:
            yield f"I7 {row.status} at {row.position} although the model had sent {kept} characters"

    def _chunks_sent_until(self, moment: float) -> int:
        """By the script's own pace; the journal only knows how many there were in the end."""
        case = self._case
        first_at = case.requests[-1].first_byte_at
        if first_at is None or not case.reply.pace_seconds:
            return 0
        return max(0, int((moment - first_at - case.reply.lead_seconds) / case.reply.pace_seconds))

    def _check_freed(self, row: Row) -> Iterator[str]:
        case = self._case
        for request in case.requests:
            if request.ended_at is None:
                yield "I2 the request to the model is still open"
        if not case.requests or row.status != "stopped" or case.requests[-1].ended_at is None:
            return
        heard_at = row.stopped_at or min(press.sent_at for press in case.presses)
        seconds = case.requests[-1].ended_at - heard_at
        allowed = self._allowed_seconds(heard_at)
        if seconds > allowed:
            yield f"I2 the model was freed {seconds:.2f} s after the stop, not within {allowed:g} s"

    def _allowed_seconds(self, heard_at: float) -> float:
        if self._touched() or self._weather.between(heard_at, heard_at + REREAD_SECONDS, "postgres"):
            return math.inf
        is_redis_away = self._weather.between(heard_at, heard_at + FREED_SECONDS, "redis")
        return FREED_SECONDS + (REREAD_SECONDS if is_redis_away else 0.0)

    def _check_told(self) -> Iterator[str]:
        case = self._case
        is_busy = any(tab.was_busy for tab in case.tabs)
        if is_busy and not self._weather.between(case.asked_at, math.inf, "postgres", "worker", "redis"):
            yield "I4 the next prompt was refused as busy"
        seconds = case.agreed_at - case.ended_at
        if seconds > self._agree_seconds():
            yield f"I1 the screens agreed only {seconds:.1f} s after the end"
        names = {"stop_from_another_tab", "read_to_the_end"}
        calm = not self._weather.between(case.asked_at - 1, case.started_at + 1, "redis", "postgres", "worker")
        if case.scenario in names and calm and case.told_at is None:
            yield "I1 the second tab was not told of the reply within a second"

    def _agree_seconds(self) -> float:
        """A lost end is read from the rows, once Redis is known to be away or at the next look."""
        case = self._case
        if self._weather.between(case.ended_at - 1, case.agreed_at, "redis", "postgres", "worker"):
            return math.inf
        return AGREE_SECONDS

    def _touched(self) -> list[Fault]:
        return self._deaths("worker killed", "worker terminated", "worker paused")

    def _deaths(self, *kinds: str) -> list[Fault]:
        case = self._case
        end = case.ended_at or math.inf
        return self._weather.touched(case.owner, case.asked_at, end, *kinds)
