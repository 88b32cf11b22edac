"""Messages: prompts of people and replies of the assistant, a tree by `parent`."""

from __future__ import annotations

from uuid import uuid4

from django.conf import settings
from django.db import models
from django.utils import timezone

from chat.models.room import Room
from inference.journal import LIVE, Status


class Message(models.Model):
    """One message. The text and status of a live reply stand in its Inference; they come here when it ends."""

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"

    class Status(models.TextChoices):
        SENT = "sent"
        PENDING = Status.PENDING.value
        COMPLETED = Status.COMPLETED.value
        STOPPED = Status.STOPPED.value
        FAILED = Status.FAILED.value
        INTERRUPTED = Status.INTERRUPTED.value

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    room = models.ForeignKey(Room, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    role = models.CharField(max_length=10, choices=Role.choices)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="messages"
    )
    """Who wrote the prompt, or asked for another reply by regenerate or continue; null for a prompt's own reply."""
    text = models.TextField(blank=True, default="")
    status = models.CharField(max_length=12, choices=Status.choices)
    client_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("created_at",)
        permissions = (("export_message", "Can export messages"),)
        constraints = (
            models.UniqueConstraint(fields=["room", "author", "client_id"], name="one_message_per_client_id"),
        )
        indexes = (
            models.Index(fields=["room", "created_at"], name="message_by_room"),
            models.Index(fields=["-created_at"], name="message_by_time"),
            models.Index(fields=["author", "-created_at"], name="message_by_author"),
            models.Index(fields=["status", "-created_at"], name="message_by_status"),
        )

    def __str__(self) -> str:
        return f"{self.role} message {self.pk}"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE
