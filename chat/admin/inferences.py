"""Inferences: what was generated and kept, who stopped it and how fast that was; live ones can be stopped here."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from chat.admin.cells import length_cell, model_cell, place_cell, speed_cell, stop_cell, time_cell
from chat.admin.dashboard import dashboard_context
from chat.admin.evidence import (
    EvidenceAdmin,
    asker_of,
    conversation_up_to,
    seconds_to_first_chunk,
    seconds_until_saved,
    seconds_until_stop,
    stopper_of,
)
from chat.admin.stopping import sentence, stop_all
from chat.models import Inference
from inference.journal import LIVE

MAX_STOPPED_AT_ONCE = 200


@admin.register(Inference)
class InferenceAdmin(EvidenceAdmin[Inference]):
    actions = (*EvidenceAdmin.actions, "stop_selected")
    list_display = ("began", "place", "model_and_status", "stop", "speed", "length")
    list_filter = ("status", "stop_source", "model", "started_at")
    search_fields = ("room__title", "stopped_by__username", "message__parent__author__username")
    search_help_text = "A room's title, a person's name, or the id of an inference, message or room."
    ordering = ("-started_at",)
    fields = (
        *("id", "room", "person", "model", "status", "finish_reason", "error_code"),
        *("stopped_by", "stop_source", "stop_requested_at", "stop_position", "until_stop", "until_saved"),
        *("started_at", "until_first_chunk", "first_chunk_at", "finished_at"),
        *("position", "generated_position", "kept", "chunk_count", "usage", "worker", "heartbeat_at"),
    )
    readonly_fields = ("id", "person", "until_first_chunk", "until_stop", "until_saved", "usage")
    time_field = "started_at"
    id_fields = ("pk", "room", "message")
    export_columns: ClassVar[dict[str, Any]] = {
        "inference_id": lambda row: row.pk,
        "message_id": lambda row: row.message_id,
        "room_id": lambda row: row.room_id,
        "room": lambda row: str(row.room),
        "person": lambda row: asker_of(row.message),
        "model": lambda row: row.model,
        "status": lambda row: row.status,
        "finish_reason": lambda row: row.finish_reason,
        "error_code": lambda row: row.error_code,
        "stopped_by": stopper_of,
        "source": lambda row: row.stop_source,
        "started_at": lambda row: row.started_at,
        "first_token_at": lambda row: row.first_chunk_at,
        "stopped_at": lambda row: row.stop_requested_at,
        "saved_at": lambda row: row.finished_at,
        "seconds_to_first_token": seconds_to_first_chunk,
        "seconds_from_first_token_to_stop": seconds_until_stop,
        "seconds_from_stop_to_saved": seconds_until_saved,
        "kept": lambda row: row.position,
        "generated": lambda row: row.generated_position,
        "chunks": lambda row: row.chunk_count,
        "usage": lambda row: row.usage,
    }

    def get_queryset(self, request: HttpRequest) -> QuerySet[Inference]:
        rows = super().get_queryset(request)
        rows = rows.select_related("room", "stopped_by", "message__author", "message__parent__author")
        return rows.defer("parts", "message__text", "message__parent__text", "room__system_prompt")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("dashboard/", view(self.dashboard_view), name="chat_inference_dashboard"),
            path("<uuid:inference_id>/stop/", view(require_POST(self.stop_view)), name="chat_inference_stop"),
            *super().get_urls(),
        ]

    def has_stop_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("chat.stop_inference")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        inference = self.get_object(request, object_id)
        context = {
            "conversation": conversation_up_to(inference.message) if inference else (),
            "inference": inference,
            "may_stop": inference and inference.status in LIVE and self.has_stop_permission(request),
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})

    def stop_view(self, request: HttpRequest, inference_id: UUID) -> HttpResponse:
        """Stop one live inference, and go back to it."""
        if not self.has_stop_permission(request):
            raise PermissionDenied
        self._stop(request, [get_object_or_404(self.get_queryset(request), pk=inference_id)])
        return redirect("admin:chat_inference_change", inference_id)

    def dashboard_view(self, request: HttpRequest) -> HttpResponseBase:
        """Charts of replies and stops, and what runs now."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media}
        return TemplateResponse(request, "admin/chat/dashboard.html", {**context, **dashboard_context()})

    @admin.action(description="Stop the selected live inferences", permissions=["stop"])
    def stop_selected(self, request: HttpRequest, queryset: QuerySet[Inference]) -> None:
        live = list(queryset.filter(status__in=LIVE)[:MAX_STOPPED_AT_ONCE])
        if not live:
            self.message_user(request, "None of these is live.", messages.WARNING)
        self._stop(request, live)

    def _stop(self, request: HttpRequest, inferences: list[Inference]) -> None:
        results = stop_all(request.user, [inference.pk for inference in inferences])
        for inference, result in zip(inferences, results, strict=True):
            told = sentence(result)
            self.log_change(request, inference, told)
            self.message_user(request, f"{inference.room}: {told}")

    @admin.display(description="began", ordering="started_at")
    def began(self, row: Inference) -> SafeString:
        return time_cell(row.started_at)

    @admin.display(description="room, person", ordering="room__title")
    def place(self, row: Inference) -> SafeString:
        return place_cell(row.room, row.message)

    @admin.display(description="model, status", ordering="model")
    def model_and_status(self, row: Inference) -> SafeString:
        return model_cell(row)

    @admin.display(description="stopped by, at", ordering="stop_requested_at")
    def stop(self, row: Inference) -> SafeString:
        return stop_cell(row)

    @admin.display(description="stopped after, saved in")
    def speed(self, row: Inference) -> SafeString:
        return speed_cell(row)

    @admin.display(description="kept, generated", ordering="position")
    def length(self, row: Inference) -> SafeString:
        return length_cell(row)

    @admin.display(description="person")
    def person(self, row: Inference) -> str:
        return asker_of(row.message)

    @admin.display(description="first token after (s)")
    def until_first_chunk(self, row: Inference) -> float | None:
        return seconds_to_first_chunk(row)

    @admin.display(description="after first token (s)")
    def until_stop(self, row: Inference) -> float | None:
        return seconds_until_stop(row)

    @admin.display(description="stop to saved (s)")
    def until_saved(self, row: Inference) -> float | None:
        return seconds_until_saved(row)
