"""One room: its page as it stands (the socket goes on from there), earlier messages, exports."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.text import slugify
from django.views.generic import DetailView

from chat.export import as_data, as_markdown
from chat.history import left_out
from chat.models import Membership, Room
from chat.pages.sidebar import ROOMS_IN_SIDEBAR, grouped, rooms_of
from chat.shown import shown_messages
from chat.tree import Tree

MESSAGES_PER_PAGE = 50


class MessagesView(LoginRequiredMixin, DetailView[Room]):
    """The newest messages of a path, as many as go on a page, to those who may see the room."""

    context_object_name = "room"
    pk_url_kwarg = "room_id"

    def get_queryset(self) -> QuerySet[Room]:
        return Room.objects.visible_to(self.request.user).with_role()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        tree = Tree(self.object)
        path = self.path(tree)
        role = self.object.role
        return {
            **super().get_context_data(**kwargs),
            **self.beside(tree, path),
            "messages": shown_messages(tree, path[-MESSAGES_PER_PAGE:]),
            "has_earlier": len(path) > MESSAGES_PER_PAGE,
            "role": role,
            "is_writer": role in Membership.WRITING_ROLES,
        }

    def path(self, tree: Tree) -> list[UUID]:
        """The messages to show the end of."""
        raise NotImplementedError

    def beside(self, tree: Tree, path: list[UUID]) -> dict[str, Any]:
        """What the template needs beside the messages."""
        return {}


class RoomPage(MessagesView):
    """The path that `?at=<message id>` lies on; without it, the newest path."""

    template_name = "rooms/room.html"

    def path(self, tree: Tree) -> list[UUID]:
        return _path(self.request, tree)

    def beside(self, tree: Tree, path: list[UUID]) -> dict[str, Any]:
        return {
            "room_groups": grouped(rooms_of(self.request)[:ROOMS_IN_SIDEBAR], self.request),
            "left_out": left_out(self.object, path),
            "last_message_id": tree.newest_leaf() or "",
            "is_newest_path": path == tree.path_to(tree.newest_leaf()),
            "is_owner": self.object.role == Membership.Role.OWNER,
            "member_count": Membership.objects.filter(room=self.object).count(),
        }


class EarlierMessages(MessagesView):
    """What comes before `?before=<message id>` on its path, as it stands in the page."""

    template_name = "rooms/_messages.html"

    def path(self, tree: Tree) -> list[UUID]:
        return tree.path_to(_message_id(self.request, "before"))[:-1]


@login_required
def export_markdown(request: HttpRequest, room_id: UUID) -> HttpResponse:
    """The path as a Markdown file."""
    room = get_object_or_404(Room.objects.visible_to(request.user), pk=room_id)
    response = HttpResponse(as_markdown(room, _path(request, Tree(room))), content_type="text/markdown; charset=utf-8")
    return _as_file(response, room, "md")


@login_required
def export_json(request: HttpRequest, room_id: UUID) -> HttpResponse:
    """The whole tree as JSON."""
    room = get_object_or_404(Room.objects.visible_to(request.user), pk=room_id)
    return _as_file(JsonResponse(as_data(room), json_dumps_params={"ensure_ascii": False, "indent": 2}), room, "json")


def _path(request: HttpRequest, tree: Tree) -> list[UUID]:
    at = _message_id(request, "at")
    return tree.path_to(tree.newest_leaf(at)) or tree.path_to(tree.newest_leaf())


def _message_id(request: HttpRequest, name: str) -> UUID | None:
    try:
        return UUID(request.GET.get(name, ""))
    except ValueError:
        return None


def _as_file(response: HttpResponse, room: Room, ending: str) -> HttpResponse:
    name = slugify(room.title) or f"room-{room.pk}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    return response
