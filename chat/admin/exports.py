"""Any number of rows as CSV or JSON Lines, read by the thousand while they are sent."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone

from chat.database import rows

M = TypeVar("M", bound=Model)
Columns = Mapping[str, Callable[[M], object]]

ROWS_AT_ONCE = 1000
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")


def csv_response(found: QuerySet[M], time_field: str, columns: Columns[M]) -> StreamingHttpResponse:
    """With a head line; a text that a spreadsheet would compute gets an apostrophe before it."""

    async def lines() -> AsyncIterator[str]:
        yield _csv([list(columns)])
        async for page in _pages(found, time_field):
            yield _csv([[_cell(read(row)) for read in columns.values()] for row in page])

    return _download(lines(), found, "csv", "text/csv")


def json_lines_response(found: QuerySet[M], time_field: str, columns: Columns[M]) -> StreamingHttpResponse:
    """One JSON object for each row."""

    async def lines() -> AsyncIterator[str]:
        async for page in _pages(found, time_field):
            yield "".join(_json({name: read(row) for name, read in columns.items()}) for row in page)

    return _download(lines(), found, "jsonl", "application/jsonl")


async def _pages(found: QuerySet[M], time_field: str) -> AsyncIterator[list[M]]:
    """The rows in order of time. By key and not by a cursor: nothing is held between two pages."""
    found = found.order_by(time_field, "pk")
    page = await rows.run(list, found[:ROWS_AT_ONCE])
    while page:
        yield page
        at, key = getattr(page[-1], time_field), page[-1].pk
        after = Q((f"{time_field}__gt", at)) | Q((time_field, at), ("pk__gt", key))
        page = await rows.run(list, found.filter(after)[:ROWS_AT_ONCE])


def _download(lines: AsyncIterator[str], found: QuerySet[Any], ending: str, kind: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    name = f"{found.model._meta.model_name}s-{timezone.now():%Y-%m-%d}.{ending}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "no-store"
    return response


def _csv(lines: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(FORMULA_BEGINNINGS):
        return f"'{value}"
    return _iso(value) if isinstance(value, datetime) else value


def _json(row: dict[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: object) -> str:
    return _iso(value) if isinstance(value, datetime) else str(value)


def _iso(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")
