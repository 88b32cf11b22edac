"""Rooms, messages and inferences in the admin: what was stopped, by whom and when. Evidence is read-only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from chat.models import Inference, Membership, Message, Room


class MembershipInline(admin.TabularInline[Membership, Room]):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Room)
class RoomAdmin(admin.ModelAdmin[Room]):
    list_display = ("__str__", "id", "created_at", "updated_at")
    search_fields = ("title", "id__exact")
    inlines = (MembershipInline,)
    readonly_fields = ("created_at", "updated_at")


class EvidenceAdmin(admin.ModelAdmin[Any]):
    """Rows that the site wrote: to be read, not edited."""

    list_select_related = True
    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Message)
class MessageAdmin(EvidenceAdmin):
    list_display = ("id", "room", "role", "author", "status", "stopped_by", "stopped_at", "created_at")
    list_filter = ("status", "role", "created_at")
    search_fields = ("id__exact", "room__title", "author__username", "text")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).select_related("room", "author", "inference__stopped_by")
        return rows.defer("inference__parts")

    @admin.display(description="stopped by")
    def stopped_by(self, message: Message) -> str:
        return str(message.inference.stopped_by or "") if hasattr(message, "inference") else ""

    @admin.display(description="stopped at")
    def stopped_at(self, message: Message) -> Any:
        return message.inference.stop_requested_at if hasattr(message, "inference") else None


@admin.register(Inference)
class InferenceAdmin(EvidenceAdmin):
    list_display = (
        *("id", "room", "model", "status", "stopped_by", "stop_source", "stop_requested_at"),
        *("position", "generated_position", "started_at", "finished_at", "error_code"),
    )
    list_filter = ("status", "stop_source", "model", "started_at")
    search_fields = ("id__exact", "room__title", "stopped_by__username", "model")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).select_related("room", "stopped_by", "message")
        return rows.defer("parts", "message__text")
