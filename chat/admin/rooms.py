"""Rooms and their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from chat.admin.paging import CappedPaginator
from chat.models import Inference, Membership, Message, Room


class MembershipInline(admin.TabularInline[Membership, Room]):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Room)
class RoomAdmin(admin.ModelAdmin[Room]):
    list_display = ("__str__", "id", "created_at", "updated_at")
    search_fields = ("title",)
    inlines = (MembershipInline,)
    readonly_fields = ("created_at", "updated_at")
    paginator = CappedPaginator
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Room]:
        return super().get_queryset(request).defer("system_prompt")

    def get_deleted_objects(
        self, objs: Sequence[Room] | QuerySet[Room], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Whoever may delete a room may delete what is in it, though the admin deletes none of that by itself."""
        found, counts, missing, protected = super().get_deleted_objects(objs, request)
        inside = {str(model._meta.verbose_name) for model in (Message, Inference)}
        return found, counts, missing - inside, protected
