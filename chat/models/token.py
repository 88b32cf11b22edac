"""Personal tokens for the HTTP API. Only a hash is kept: whoever reads the table cannot call the API."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

SECRET_PREFIX = "chatsite_"  # noqa: S105  # what every secret begins with, so that leak scanners know it
SHOWN_CHARACTERS = 6
USE_NOTED_EVERY = timedelta(minutes=1)


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Tokens by owner and by secret."""

    def of(self, user: User) -> ApiTokenQuerySet:
        """Those of one person, the newest first."""
        return self.filter(user=user)

    def make_for(self, user: User, name: str) -> tuple[ApiToken, str]:
        """A new token and its secret, which can't be read again."""
        secret = SECRET_PREFIX + secrets.token_urlsafe(32)
        beginning = secret[: len(SECRET_PREFIX) + SHOWN_CHARACTERS]
        return self.create(user=user, name=name, beginning=beginning, secret_hash=hash_of(secret)), secret

    def by_secret(self, secret: str) -> ApiToken | None:
        """The token with this secret, if its owner's account is open."""
        return self.filter(secret_hash=hash_of(secret), user__is_active=True).select_related("user").first()

    def note_use(self, token: ApiToken) -> None:
        """Remember that it was used; written once a minute at most."""
        is_noted = models.Q(last_used_at__gt=Now() - USE_NOTED_EVERY)
        self.filter(pk=token.pk).exclude(is_noted).update(last_used_at=Now())


class ApiToken(models.Model):
    """What a program of a person shows in place of a session. Revoking one deletes it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    beginning = models.CharField(max_length=20, editable=False)
    """The first characters of the secret, by which its owner knows it again."""
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} ({self.beginning}…)"


def hash_of(secret: str) -> str:
    """SHA-256 without salt: a secret of 32 random bytes can't be guessed, and is looked up by this."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
