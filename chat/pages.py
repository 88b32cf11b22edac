"""The pages: rooms, one room with its messages as they stand, accounts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.mixins import LoginRequiredMixin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django.views.generic import DeleteView, DetailView, ListView
from django.views.generic.edit import FormView

from chat.forms import RoomForm, SignUpForm
from chat.history import newest_path
from chat.models import Room
from chat.shown import shown_messages

ROOMS_IN_SIDEBAR = 200
THEMES = ("", "light", "dark")


def home(request: HttpRequest) -> HttpResponse:
    """The address of the site is that of the rooms."""
    return redirect("room_list")


class SignUp(FormView[SignUpForm]):
    """Make an account and sign in."""

    template_name = "accounts/signup.html"
    form_class = SignUpForm
    success_url = reverse_lazy("room_list")

    def form_valid(self, form: SignUpForm) -> HttpResponse:
        login(self.request, form.save())
        return super().form_valid(form)


class RoomList(LoginRequiredMixin, ListView[Room]):
    """The rooms of a person; POST makes one and goes there."""

    template_name = "rooms/list.html"
    context_object_name = "rooms"

    def get_queryset(self) -> QuerySet[Room]:
        return rooms_of(self.request)

    def post(self, request: HttpRequest) -> HttpResponse:
        form = RoomForm(request.POST)
        if not form.is_valid():
            return HttpResponse(form.errors.as_text(), status=400, content_type="text/plain; charset=utf-8")
        room = Room.objects.create_for(request.user, title=form.cleaned_data["title"])  # type: ignore[arg-type]
        return redirect("room", room_id=room.pk)


class RoomPage(LoginRequiredMixin, DetailView[Room]):
    """One room, rendered as it stands; the socket goes on from there."""

    template_name = "rooms/room.html"
    context_object_name = "room"
    pk_url_kwarg = "room_id"

    def get_queryset(self) -> QuerySet[Room]:
        return Room.objects.visible_to(self.request.user)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        messages = shown_messages(newest_path(self.object))
        return {
            **super().get_context_data(**kwargs),
            "rooms": rooms_of(self.request),
            "messages": messages,
            "last_message_id": messages[-1].id if messages else "",
            "is_writer": Room.objects.writable_by(self.request.user).filter(pk=self.object.pk).exists(),
        }


class RoomDelete(LoginRequiredMixin, DeleteView[Room, ModelForm[Room]]):
    """Delete a room; only its owner may, and only by POST."""

    http_method_names = ["post"]
    pk_url_kwarg = "room_id"
    success_url = reverse_lazy("room_list")

    def get_queryset(self) -> QuerySet[Room]:
        return Room.objects.owned_by(self.request.user)


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or the system's own theme in a cookie, and go back."""
    wanted = request.POST.get("theme", "")
    back = request.META.get("HTTP_REFERER", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}):
        back = str(reverse_lazy("room_list"))
    response = HttpResponseRedirect(back)
    response.set_cookie("theme", wanted if wanted in THEMES else "", max_age=31_536_000, samesite="Lax")
    return response


def rooms_of(request: HttpRequest) -> QuerySet[Room]:
    """The rooms for the sidebar, the last used first."""
    return Room.objects.visible_to(request.user).only("id", "title", "updated_at")[:ROOMS_IN_SIDEBAR]


def theme_and_models(request: HttpRequest) -> dict[str, str]:
    """For every page: the theme, and which model answers if it is the demo model. Named by settings.TEMPLATES."""
    chosen = request.COOKIES.get("theme", "")
    is_demo = not settings.OPENAI_BASE_URL
    return {
        "theme": chosen if chosen in THEMES else "",
        "models_note": _("Demo model, connect a real one with OPENAI_BASE_URL") if is_demo else "",
    }
