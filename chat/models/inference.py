"""The row of an inference: the truth of a live reply. Its ends are written by `chat.endings`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models.functions import Now

from chat.models.message import Message
from chat.models.room import Room
from inference.engine import Part
from inference.journal import LIVE, Progress, Run, Status
from inference.stop import StopSignal

DEAD_AFTER = timedelta(seconds=10)
"""An owner whose heartbeat is older than this is dead."""

CUT_AFTER_FINISH = timedelta(seconds=30)
"""How long after its end a completed reply can still be cut back to what a screen had shown."""

_CHECKPOINT = {
    "postgresql": """
        UPDATE chat_inference AS i
        SET parts = v.parts, position = v.position, generated_position = v.position, chunk_count = v.chunk_count,
            status = 'streaming',
            first_chunk_at = COALESCE(i.first_chunk_at, i.started_at + v.first_chunk_seconds * INTERVAL '1 second')
        FROM jsonb_to_recordset(%s::jsonb)
            AS v(id uuid, parts jsonb, position int, chunk_count int, first_chunk_seconds float)
        WHERE i.id = v.id AND i.status IN ('pending', 'streaming') AND i.position <= v.position""",
    "sqlite": """
        UPDATE chat_inference AS i
        SET parts = v.value ->> 'parts', position = v.value ->> 'position',
            generated_position = v.value ->> 'position', chunk_count = v.value ->> 'chunk_count',
            status = 'streaming',
            first_chunk_at = COALESCE(i.first_chunk_at, strftime(
                '%%Y-%%m-%%d %%H:%%M:%%f', i.started_at, (v.value ->> 'first_chunk_seconds') || ' seconds'))
        FROM json_each(%s) AS v
        WHERE i.id = v.value ->> 'id' AND i.status IN ('pending', 'streaming')
            AND i.position <= v.value ->> 'position'""",
}


class InferenceQuerySet(models.QuerySet["Inference"]):
    """Inferences, and the transitions of DESIGN section 4."""

    def live(self) -> InferenceQuerySet:
        """Those that are not over."""
        return self.filter(status__in=LIVE)

    def owned_by(self, worker_id: UUID) -> InferenceQuerySet:
        """The live ones of one worker."""
        return self.live().filter(worker=worker_id)

    def of_dead_owners(self, as_of: datetime | None = None) -> InferenceQuerySet:
        """The live ones whose owner had not been heard of for too long at that time of the database's clock, or now."""
        return self.live().filter(heartbeat_at__lt=(as_of or Now()) - DEAD_AFTER)

    def just_completed(self) -> InferenceQuerySet:
        """Those that a late stop can still cut back, by the database's clock."""
        return self.filter(status=Status.COMPLETED, finished_at__gt=Now() - CUT_AFTER_FINISH)

    def checkpoint(self, batch: Iterable[Progress]) -> None:
        """Save texts of live inferences in one statement, none of them over a longer one."""
        # Always in the same order: a statement that was given up may still run beside the next one.
        in_order = sorted(batch, key=lambda progress: progress.inference_id)
        rows = [_checkpoint_row(progress, is_hex=connection.vendor == "sqlite") for progress in in_order]
        with connection.cursor() as cursor:
            cursor.execute(_CHECKPOINT[connection.vendor], [json.dumps(rows)])

    def record_stop(self, signal: StopSignal) -> bool:
        """Write a stop down on a live row that has none; False when somebody was first or it is over."""
        return bool(
            self.live()
            .filter(pk=signal.inference_id, stop_requested_at=None)
            .update(
                stop_requested_at=Now(),
                stopped_by=signal.user_id,
                stop_source=signal.source,
                stop_position=signal.position,
            )
        )

    def beat(self) -> None:
        """The owner of these is alive.

        A row that is locked is being saved, and has its next beat in a second. To wait for it, while whoever saves it
        waits for another of these, would be a deadlock.
        """
        with transaction.atomic():
            free = list(self.live().select_for_update(skip_locked=True).values_list("pk", flat=True))
            self.model.objects.filter(pk__in=free).update(heartbeat_at=Now())


class Inference(models.Model):
    """One reply being produced, or produced. Its id is the `inference_id` of the protocol."""

    class StopSource(models.TextChoices):
        PAGE = "page"
        API = "api", "API"
        ADMIN = "admin"
        SHUTDOWN = "shutdown"
        """Nobody pressed Stop: the owner had to end, and the reply is `interrupted`."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    room = models.ForeignKey(Room, on_delete=models.CASCADE, related_name="inferences")
    message = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="inference")
    model = models.CharField(max_length=200)
    status = models.CharField(max_length=12, choices=[(status.value, status.value) for status in Status])
    finish_reason = models.CharField(max_length=40, blank=True, default="")
    parts = models.JSONField(default=list)
    """Runs in order of arrival: [["reasoning", text], ["content", text], ...]."""
    position = models.PositiveIntegerField(default=0)
    kept = models.PositiveIntegerField(default=0)
    """Length of the text that a continue began with."""
    worker = models.UUIDField()
    started_at = models.DateTimeField(db_default=Now())
    first_chunk_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="stopped_inferences"
    )
    stop_source = models.CharField(max_length=10, choices=StopSource.choices, blank=True, default="")
    stop_position = models.PositiveIntegerField(null=True, blank=True)
    generated_position = models.PositiveIntegerField(default=0)
    chunk_count = models.PositiveIntegerField(default=0)
    usage = models.JSONField(null=True, blank=True)
    """Tokens: {"prompt_tokens", "completion_tokens", "is_estimated"}; estimated when the model did not say."""
    error_code = models.CharField(max_length=30, blank=True, default="")

    objects = InferenceQuerySet.as_manager()

    class Meta:
        ordering = ("-started_at",)
        permissions = (
            ("stop_inference", "Can stop any live inference"),
            ("export_inference", "Can export inferences"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=["room"], condition=models.Q(status__in=["pending", "streaming"]), name="one_live_per_room"
            ),
            models.CheckConstraint(
                condition=~models.Q(status="stopped") | models.Q(stop_requested_at__isnull=False),
                name="stopped_by_a_recorded_stop",
            ),
        )
        indexes = (
            models.Index(
                fields=["worker"], condition=models.Q(status__in=["pending", "streaming"]), name="live_by_worker"
            ),
            models.Index(fields=["status", "-started_at"], name="inference_by_status"),
            models.Index(fields=["-started_at"], name="inference_by_start"),
            models.Index(fields=["model", "-started_at"], name="inference_by_model"),
            models.Index(
                fields=["stop_source", "-started_at"], condition=~models.Q(stop_source=""), name="inference_by_stop"
            ),
        )

    def __str__(self) -> str:
        return f"Inference {self.pk}"

    @property
    def runs(self) -> list[Run]:
        """The saved text as the inference package knows it."""
        return [(Part(part), text) for part, text in self.parts]

    @property
    def topic(self) -> str:
        """The channel-layer group that is told of this inference."""
        return f"room.{self.room_id}"


def parts_of(runs: Sequence[Run]) -> list[list[str]]:
    """Runs as the `parts` column holds them."""
    return [[str(part), text] for part, text in runs]


def _checkpoint_row(progress: Progress, *, is_hex: bool) -> dict[str, Any]:
    return {
        "id": progress.inference_id.hex if is_hex else str(progress.inference_id),
        "parts": parts_of(progress.runs),
        "position": progress.position,
        "chunk_count": progress.chunk_count,
        "first_chunk_seconds": progress.first_chunk_seconds,
    }
