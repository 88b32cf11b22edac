"""API tokens: whose they are and when they were last used. The admin can revoke one, by deleting it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from chat.models import ApiToken


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin[ApiToken]):
    list_display = ("name", "user", "beginning", "created_at", "last_used_at")
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    fields = ("name", "user", "beginning", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
