"""Invitations to sign up: a link for one person, which works once and not for ever. Only a hash of it is kept."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from chat.models.token import hash_of

DAYS = 7


def _in_a_week() -> datetime:
    return timezone.now() + timedelta(days=DAYS)


class InvitationQuerySet(models.QuerySet["Invitation"]):
    """Invitations by whether they still work."""

    def is_open(self, secret: str) -> bool:
        """Whether somebody can still sign up by it."""
        return self._open(secret).exists()

    def use(self, secret: str, user: User) -> bool:
        """Use it up for this person. False when somebody was first, or it has expired."""
        return self._open(secret).update(used_at=Now(), used_by=user) == 1

    def _open(self, secret: str) -> InvitationQuerySet:
        return self.filter(secret_hash=hash_of(secret), used_at=None, expires_at__gt=Now())


class Invitation(models.Model):
    """Made by an admin. Deleting one revokes it."""

    note = models.CharField(max_length=200, blank=True, help_text="Whom it is for; only admins see it.")
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(default=_in_a_week)
    used_at = models.DateTimeField(null=True, editable=False)
    used_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, editable=False, related_name="+"
    )

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.note or f"Invitation {self.pk}"

    def new_secret(self) -> str:
        """A new secret for this invitation, which is not saved yet; it can't be read again."""
        secret = secrets.token_urlsafe(32)
        self.secret_hash = hash_of(secret)
        return secret
