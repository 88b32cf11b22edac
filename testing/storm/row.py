"""What the rows say of an inference, read past the site. The storm's verdict and the tests of races use it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

ROWS = """
    SELECT i.id, i.status, i.parts, i.position, i.generated_position, i.stop_position,
           extract(epoch FROM i.stop_requested_at) AS stopped_at, extract(epoch FROM i.finished_at) AS finished_at,
           i.error_code,
           m.text, m.status AS message_status
    FROM chat_inference i JOIN chat_message m ON m.id = i.message_id"""


@dataclass
class Row:
    """What the database says in the end."""

    status: str
    text: str
    content: str
    position: int
    generated_position: int
    stop_position: int | None
    stopped_at: float | None
    """When the stop was written down, on the clock of `time.monotonic()` as the next."""
    finished_at: float | None
    error_code: str
    message_text: str
    message_status: str

    @classmethod
    def read(cls, database_url: str, inference_id: str) -> Row | None:
        """The row of one inference; None when there is none."""
        with psycopg.connect(database_url, row_factory=dict_row) as connection:
            fields = connection.execute(ROWS + " WHERE i.id = %s", [inference_id]).fetchone()
        return None if fields is None else cls.of(fields)

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Row:
        parts = fields["parts"]
        return cls(
            status=fields["status"],
            text="".join(text for _, text in parts),
            content="".join(text for part, text in parts if part == "content"),
            position=fields["position"],
            generated_position=fields["generated_position"],
            stop_position=fields["stop_position"],
            stopped_at=_monotonic(fields["stopped_at"]),
            finished_at=_monotonic(fields["finished_at"]),
            error_code=fields["error_code"],
            message_text=fields["text"],
            message_status=fields["message_status"],
        )


def _monotonic(epoch_seconds: Any) -> float | None:
    return None if epoch_seconds is None else float(epoch_seconds) - time.time() + time.monotonic()
