"""The page of a room's members: shown to all of them, changed by the owners, left by anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django.views.generic import DetailView

from chat import members
from chat.database import rows
from chat.forms import ROLES, NewMemberForm, RoleForm
from chat.members import MemberError
from chat.models import Room


class MembersPage(LoginRequiredMixin, DetailView[Room]):
    """Everybody in the room may see who else is."""

    template_name = "rooms/members.html"
    context_object_name = "room"
    pk_url_kwarg = "room_id"

    def get_queryset(self) -> QuerySet[Room]:
        return Room.objects.visible_to(self.request.user).with_role()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {
            **super().get_context_data(**kwargs),
            "memberships": members.members_of(self.object),
            "form": NewMemberForm(),
            "roles": ROLES,
        }


@login_required
@require_POST
async def add_member(request: HttpRequest, room_id: UUID) -> HttpResponse:
    """Let somebody in by name."""
    form = NewMemberForm(request.POST)
    if not form.is_valid():
        return _refused(request, room_id, form.errors)
    done = _("%(name)s is in the chat now.") % {"name": form.cleaned_data["username"]}
    return await _change(request, room_id, done, members.add, **form.cleaned_data)


@login_required
@require_POST
async def change_member(request: HttpRequest, room_id: UUID, member_id: int) -> HttpResponse:
    """Give a member another role."""
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _refused(request, room_id, form.errors)
    return await _change(request, room_id, _("Saved."), members.change_role, member_id, **form.cleaned_data)


@login_required
@require_POST
async def remove_member(request: HttpRequest, room_id: UUID, member_id: int) -> HttpResponse:
    """End a membership; whoever ends their own goes to the list of their rooms."""
    response = await _change(request, room_id, _("Removed."), members.remove, member_id)
    is_still_here = Room.objects.visible_to(await request.auser()).filter(pk=room_id).exists
    return response if await rows.run(is_still_here) else redirect("room_list")


async def _change(
    request: HttpRequest, room_id: UUID, done: str, function: Callable[..., Any], *args: int, **fields: str
) -> HttpResponse:
    try:
        await rows.run(function, await request.auser(), room_id, *args, **fields)
    except MemberError as error:
        if error.code == "not_found":
            raise Http404 from None
        messages.error(request, error.detail)
    else:
        await members.tell(room_id)
        messages.success(request, done)
    return redirect("room_members", room_id=room_id)


def _refused(request: HttpRequest, room_id: UUID, errors: Any) -> HttpResponse:
    for error in [error for field in errors.values() for error in field]:
        messages.error(request, error)
    return redirect("room_members", room_id=room_id)
