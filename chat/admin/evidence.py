"""What is common to the lists of messages and inferences: rows that the site wrote, to be read and not edited."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.views.main import ERROR_FLAG
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase

from chat.admin.exports import csv_response, json_lines_response
from chat.admin.paging import CappedPaginator
from chat.models import Inference, Message
from chat.shown import ShownMessage, shown_messages
from chat.tree import Tree

M = TypeVar("M", bound=Model)


class EvidenceAdmin(admin.ModelAdmin[M]):
    """Neither added, changed nor deleted here. Viewing, stopping and exporting are permissions of their own."""

    actions: Any = ("export_as_csv", "export_as_json_lines")
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200
    paginator = CappedPaginator
    time_field: ClassVar[str]
    """By which exports are ordered."""
    export_columns: ClassVar[dict[str, Any]]
    """What an export has of each row: by name, how to get it."""
    id_fields: ClassVar[tuple[str, ...]]
    """What a search for an id looks at."""

    class Media:
        css = {"all": ("css/admin.css",)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_export_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"chat.export_{self.opts.model_name}")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list; a filter that no database can look up, such as a NUL, leads to the list with a word about it."""
        wrong_filter = any("\0" in value for name, value in request.GET.items() if name != "q")
        try:
            if not wrong_filter:
                return super().changelist_view(request, extra_context)
        except ValidationError:
            pass
        return HttpResponseRedirect(f"{request.path}?{ERROR_FLAG}=1")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[M], search_term: str
    ) -> tuple[QuerySet[M], bool]:
        """An id is looked up by index; anything else is looked for in titles and names."""
        try:
            wanted = UUID(search_term.strip())
        except ValueError:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(Q.create([(name, wanted) for name in self.id_fields], connector=Q.OR)), False

    @admin.action(description="Export the selected %(verbose_name_plural)s as CSV", permissions=["export"])
    def export_as_csv(self, request: HttpRequest, queryset: QuerySet[M]) -> HttpResponseBase:
        return csv_response(queryset, self.time_field, self.export_columns)

    @admin.action(description="Export the selected %(verbose_name_plural)s as JSON Lines", permissions=["export"])
    def export_as_json_lines(self, request: HttpRequest, queryset: QuerySet[M]) -> HttpResponseBase:
        return json_lines_response(queryset, self.time_field, self.export_columns)


def conversation_up_to(message: Message) -> list[ShownMessage]:
    """The messages from the first prompt to this one, rendered as the page shows them."""
    tree = Tree(message.room)
    return shown_messages(tree, tree.path_to(message.pk))


def asker_of(message: Message) -> str:
    """Who asked for a reply: by regenerate or continue, or by the prompt before it; of a prompt, its author."""
    prompt = message.parent if message.role == Message.Role.ASSISTANT else None
    person = message.author or (prompt.author if prompt else None)
    return person.get_username() if person else ""


def short_time(at: datetime | None) -> str:
    """For a column of a list; the detail page has it in the admin's own words."""
    return format(at, "%d %b %H:%M:%S") if at else ""


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """To the millisecond; None where one of them is not known."""
    return round((end - start).total_seconds(), 3) if start and end else None


def seconds_to_first_chunk(row: Inference) -> float | None:
    return seconds_between(row.started_at, row.first_chunk_at)


def seconds_until_stop(row: Inference) -> float | None:
    """From the first token to the stop; negative for a stop that was faster than the token."""
    return seconds_between(row.first_chunk_at, row.stop_requested_at)


def seconds_until_saved(row: Inference) -> float | None:
    """From the stop to its end in the rows."""
    return seconds_between(row.stop_requested_at, row.finished_at)


def stopper_of(row: Inference) -> str:
    return row.stopped_by.get_username() if row.stopped_by else ""
