"""Attempts to get in, counted in the database so that all workers count together. `chat.attempts` says how many."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.crypto import salted_hmac

WINDOW = timedelta(minutes=15)
LONGEST_WINDOW = timedelta(hours=1)
"""What is older is deleted."""


class AttemptQuerySet(models.QuerySet["Attempt"]):
    """Attempts by what they were made on: an account, an address."""

    def note(self, kind: str, value: str) -> Attempt:
        """One more; those that are too old to count are deleted."""
        self.filter(at__lt=Now() - LONGEST_WINDOW).delete()
        return self.create(subject=subject_of(kind, value), at=Now())

    def recent(self, kind: str, value: str, *, window: timedelta = WINDOW) -> AttemptQuerySet:
        """Those that count, the newest first."""
        return self.filter(subject=subject_of(kind, value), at__gte=Now() - window).order_by("-at")

    def retry_after(self, limit: int, *, window: timedelta = WINDOW) -> int:
        """Whole seconds until fewer than `limit` of these, which are `recent` in that window, are left; 0 for now."""
        oldest_that_counts = self.values_list("at", flat=True)[limit - 1 : limit].first()
        if oldest_that_counts is None:
            return 0
        return max(1, int((oldest_that_counts + window - timezone.now()).total_seconds()) + 1)


class Attempt(models.Model):
    """One attempt. What it was made on is kept as a keyed hash: people type passwords where their name belongs."""

    subject = models.CharField(max_length=64, editable=False)
    at = models.DateTimeField(editable=False)

    objects = AttemptQuerySet.as_manager()

    class Meta:
        indexes = (
            models.Index(fields=["subject", "-at"], name="attempt_by_subject"),
            models.Index(fields=["at"], name="attempt_by_time"),
        )

    def __str__(self) -> str:
        return f"attempt at {self.at}"


def subject_of(kind: str, value: str) -> str:
    """What the attempts of one kind on one thing are counted under."""
    return salted_hmac("chat.attempt", f"{kind}:{value}", algorithm="sha256").hexdigest()
