"""The list of rooms: made, found, renamed, set up, deleted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.forms import ModelForm, model_to_dict
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django.views.generic import DeleteView, ListView

from chat import runtime
from chat.access import person
from chat.database import rows
from chat.forms import RoomForm, RoomSettingsForm
from chat.frames import room_frame
from chat.models import Message, Room
from chat.pages.sidebar import ROOMS_IN_SIDEBAR, grouped, rooms_of
from chat.rooms import TooManyRooms, make_room
from inference.engine import EngineError
from inference.text import clean

ROOMS_FOUND = 50
MAX_WORDS = 10


def home(request: HttpRequest) -> HttpResponse:
    """The address of the site is that of the rooms."""
    return redirect("room_list")


class RoomList(LoginRequiredMixin, ListView[Room]):
    """The rooms of a person; POST makes one and goes there."""

    template_name = "rooms/list.html"
    context_object_name = "rooms"

    def get_queryset(self) -> QuerySet[Room]:
        return rooms_of(self.request)[:ROOMS_IN_SIDEBAR]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "room_groups": grouped(self.object_list, self.request)}

    def post(self, request: HttpRequest) -> HttpResponse:
        form = RoomForm(request.POST)
        if not form.is_valid():
            return HttpResponse(form.errors.as_text(), status=400, content_type="text/plain; charset=utf-8")
        try:
            room = make_room(person(request), form.cleaned_data["title"])
        except TooManyRooms:
            return self._refuse()
        return redirect("room", room_id=room.pk)

    def _refuse(self) -> HttpResponse:
        # The same page, on which the browser puts back what was typed.
        self.object_list = self.get_queryset()
        sentence = _("You have %(count)d chats, as many as one may. Delete one first.")
        notice = sentence % {"count": settings.MAX_ROOMS_PER_PERSON}
        return self.render_to_response(self.get_context_data(notice=notice), status=409)


class RoomDelete(LoginRequiredMixin, DeleteView[Room, ModelForm[Room]]):
    """Delete a room; only its owner may, and only by POST."""

    http_method_names = ["post"]
    pk_url_kwarg = "room_id"
    success_url = reverse_lazy("room_list")

    def get_queryset(self) -> QuerySet[Room]:
        return Room.objects.owned_by(self.request.user)


@login_required
def found(request: HttpRequest) -> HttpResponse:
    """The rooms whose title or messages hold all words of `q`, as the list that the sidebar shows."""
    rooms = rooms_of(request)
    words = clean(request.GET.get("q", "")).split()[:MAX_WORDS]
    for word in words:
        said = Message.objects.filter(room=OuterRef("pk"), text__icontains=word)
        rooms = rooms.filter(Q(title__icontains=word) | Exists(said))
    listed = rooms[: ROOMS_FOUND if words else ROOMS_IN_SIDEBAR]
    return render(request, "rooms/_rooms.html", {"room_groups": grouped(listed, request), "is_search": bool(words)})


@require_POST
async def change_room(request: HttpRequest, room_id: UUID) -> HttpResponse:
    """Change the fields that are sent of title, model and system prompt. 204, or 400 in words.

    Only the owner may; the model alone is chosen by everybody who may write.
    """
    room, form = await rows.run(_change, await request.auser(), room_id, request.POST)
    if form.errors:
        return HttpResponse(form.errors.as_text(), status=400, content_type="text/plain; charset=utf-8")
    await runtime.current().news.publish(room.topic, [room_frame(room, changed=form.changed_data)])
    return HttpResponse(status=204)


async def models(request: HttpRequest) -> HttpResponse:
    """The models a person may choose from, the default first."""
    if not (await request.auser()).is_authenticated:
        raise Http404
    try:
        names = list(await runtime.current().engine.models())
    except EngineError:
        names = []
    return JsonResponse({"models": names, "default": await runtime.current().default_model()})


def _change(user: AbstractBaseUser | AnonymousUser, room_id: UUID, fields: QueryDict) -> tuple[Room, ModelForm[Room]]:
    is_model_alone = set(fields) == {"model"}
    theirs = Room.objects.writable_by(user) if is_model_alone else Room.objects.owned_by(user)
    room = get_object_or_404(theirs, pk=room_id)
    form = RoomSettingsForm({**model_to_dict(room, RoomSettingsForm.Meta.fields), **fields.dict()}, instance=room)
    if form.is_valid():
        _update(theirs, room, {name: clean(form.cleaned_data[name]) for name in form.changed_data})
    return room, form


def _update(theirs: QuerySet[Room], room: Room, changes: dict[str, str]) -> None:
    # One statement, which finds nothing when the room, or the person's place in it, has gone meanwhile.
    if changes and not Room.objects.filter(pk__in=theirs.values("pk"), id=room.pk).update(**changes):
        raise Http404
    for name, value in changes.items():
        setattr(room, name, value)
