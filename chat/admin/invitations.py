"""Invitations: made here, shown once, revoked by deleting."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest
from django.urls import reverse

from chat.models import Invitation


@admin.register(Invitation)
class InvitationAdmin(admin.ModelAdmin[Invitation]):
    list_display = ("__str__", "created_by", "created_at", "expires_at", "used_by", "used_at")
    list_select_related = ("created_by", "used_by")
    search_fields = ("note", "used_by__username")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        secret = obj.new_secret()
        obj.created_by = request.user  # type: ignore[assignment]  # an admin is signed in
        super().save_model(request, obj, form, change)
        path = reverse("invited", args=[secret])
        link = f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)
        messages.warning(request, f"The invitation's link, shown only now: {link}")
        if settings.SIGNUP != "invite":
            messages.warning(request, f"SIGNUP is {settings.SIGNUP}; invitations count only when it is invite.")
