"""Messages: prompts and replies, with how each reply was stopped."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from chat.admin.cells import length_cell, model_cell, place_cell, speed_cell, stop_cell, time_cell
from chat.admin.evidence import (
    EvidenceAdmin,
    asker_of,
    conversation_up_to,
    seconds_until_saved,
    seconds_until_stop,
    short_time,
    stopper_of,
)
from chat.models import Inference, Message


def inference_of(message: Message) -> Inference | None:
    """None for a prompt."""
    found: Inference | None = getattr(message, "inference", None)
    return found


def of_inference(read: Any) -> Any:
    """Read a column of the message's inference; None where there is none."""
    return lambda message: read(inference_of(message)) if inference_of(message) else None


@admin.register(Message)
class MessageAdmin(EvidenceAdmin[Message]):
    list_display = ("created", "place", "model_and_status", "stop", "speed", "length")
    list_filter = ("status", "role", "inference__stop_source", "inference__model", "created_at")
    search_fields = ("room__title", "author__username", "inference__stopped_by__username")
    search_help_text = "A room's title, a person's name, or the id of a message, inference or room."
    ordering = ("-created_at",)
    fields = (
        *("id", "room", "role", "person", "model_name", "status", "created_at"),
        *("stopped_by", "source", "stopped_at", "until_stop", "kept", "generated", "until_saved"),
    )
    readonly_fields = ("id", "created_at", "person", "model_name", *fields[7:])
    time_field = "created_at"
    id_fields = ("pk", "room", "inference")
    export_columns: ClassVar[dict[str, Any]] = {
        "message_id": lambda message: message.pk,
        "room_id": lambda message: message.room_id,
        "room": lambda message: str(message.room),
        "role": lambda message: message.role,
        "person": asker_of,
        "status": lambda message: message.status,
        "created_at": lambda message: message.created_at,
        "model": of_inference(lambda row: row.model),
        "stopped_by": of_inference(stopper_of),
        "source": of_inference(lambda row: row.stop_source),
        "stopped_at": of_inference(lambda row: row.stop_requested_at),
        "seconds_from_first_token_to_stop": of_inference(seconds_until_stop),
        "seconds_from_stop_to_saved": of_inference(seconds_until_saved),
        "kept": of_inference(lambda row: row.position),
        "generated": of_inference(lambda row: row.generated_position),
    }

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        rows = super().get_queryset(request).select_related("room", "author", "parent__author", "inference__stopped_by")
        return rows.defer("text", "parent__text", "inference__parts", "room__system_prompt")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        message = self.get_object(request, object_id)
        context = {
            "conversation": conversation_up_to(message) if message else (),
            "inference": inference_of(message) if message else None,
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})

    @admin.display(description="created", ordering="created_at")
    def created(self, message: Message) -> SafeString:
        return time_cell(message.created_at)

    @admin.display(description="room, person", ordering="room__title")
    def place(self, message: Message) -> SafeString:
        return place_cell(message.room, message)

    @admin.display(description="model, status", ordering="status")
    def model_and_status(self, message: Message) -> Any:
        return of_inference(model_cell)(message) or message.status

    @admin.display(description="stopped by, at", ordering="inference__stop_requested_at")
    def stop(self, message: Message) -> Any:
        return of_inference(stop_cell)(message)

    @admin.display(description="stopped after, saved in")
    def speed(self, message: Message) -> Any:
        return of_inference(speed_cell)(message)

    @admin.display(description="kept, generated", ordering="inference__position")
    def length(self, message: Message) -> Any:
        return of_inference(length_cell)(message)

    @admin.display(description="person")
    def person(self, message: Message) -> str:
        return asker_of(message)

    @admin.display(description="model")
    def model_name(self, message: Message) -> Any:
        return of_inference(lambda row: row.model)(message)

    @admin.display(description="stopped by")
    def stopped_by(self, message: Message) -> Any:
        return of_inference(stopper_of)(message)

    @admin.display(description="from")
    def source(self, message: Message) -> Any:
        return of_inference(lambda row: row.get_stop_source_display())(message)

    @admin.display(description="stopped at", ordering="inference__stop_requested_at")
    def stopped_at(self, message: Message) -> Any:
        return of_inference(lambda row: short_time(row.stop_requested_at))(message)

    @admin.display(description="after first token (s)")
    def until_stop(self, message: Message) -> Any:
        return of_inference(seconds_until_stop)(message)

    @admin.display(description="kept")
    def kept(self, message: Message) -> Any:
        return of_inference(lambda row: row.position)(message)

    @admin.display(description="generated")
    def generated(self, message: Message) -> Any:
        return of_inference(lambda row: row.generated_position)(message)

    @admin.display(description="stop to saved (s)")
    def until_saved(self, message: Message) -> Any:
        return of_inference(seconds_until_saved)(message)
