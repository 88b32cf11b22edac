"""Lists that stay fast however many rows there are."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet

MAX_COUNTED = 100_000
"""Where counting ends. A list that is longer shows its first so many rows; filters and search reach the rest."""


class CappedPaginator(Paginator[Any]):
    """Counts no further than it would be of use to anyone."""

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return len(rows)
        return rows.order_by().values("pk")[:MAX_COUNTED].count()
