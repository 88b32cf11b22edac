"""How log records are written: as lines of text or of JSON, with the ids of what they belong to. Used by the settings.

No line has what people or models have said: a database tells the contents of rows in its errors, so those are cut.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from inference.ids import ALL

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# PostgreSQL's messages go on with lines that show rows and statements; a further exception begins after them.
TELLS_ROWS = re.compile(
    r"^(?:DETAIL|CONTEXT|HINT|LINE \d+):.*?(?=^(?:The above exception|During handling|Traceback \(most recent)|\Z)",
    flags=re.MULTILINE | re.DOTALL,
)
WITHHELD = "(what the database says of rows is left out)\n"
SECRET_PATH = re.compile(r"(/accounts/invited/|/accounts/password/reset/)[^\s'\"]+")
"""What opens an account to whoever knows it: an invitation's path, or that of a link for a new password."""
SERVICE_UNAVAILABLE = 503


def without_secrets(text: str) -> str:
    """The text with such paths cut short."""
    return SECRET_PATH.sub(r"\1...", text)


def logging_of(*, form: str, level: str) -> dict[str, Any]:
    """The logging configuration: `form` is text or json, on stderr; `level` is for the packages of the site."""
    of_own = {"level": level}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"text": {"()": TextLines}, "json": {"()": JsonLines}},
        "filters": {"faults": {"()": Faults}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": form}},
        # What libraries tell below a warning has statements, requests and cookies in it.
        "root": {"handlers": ["console"], "level": "WARNING"},
        "loggers": {
            "chat": of_own,
            "chatsite": of_own,
            "inference": of_own,
            # Django's own handlers go; and answers that are no fault of ours have a line from chatsite.requests.
            "django": {"handlers": [], "level": "WARNING"},
            "django.request": {"level": "ERROR", "filters": ["faults"]},
            "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
        },
    }


class Faults(logging.Filter):
    """Lets pass what Django says of faults. A 503 is none, and has been told by whoever answers it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return getattr(record, "status_code", None) != SERVICE_UNAVAILABLE


class _Lines(logging.Formatter):
    """What both forms have in common."""

    def ids_of(self, record: logging.LogRecord) -> dict[str, str]:
        """The ids that hold where the record is written, which is where it was made."""
        return {variable.name: variable.get() for variable in ALL if variable.get()}

    def message_of(self, record: logging.LogRecord) -> str:
        return TELLS_ROWS.sub(WITHHELD, without_secrets(record.getMessage())).strip()

    def exception_of(self, record: logging.LogRecord) -> str:
        text = self.formatException(record.exc_info) if record.exc_info else record.exc_text or ""
        return TELLS_ROWS.sub(WITHHELD, text).strip()

    def time_of(self, record: logging.LogRecord) -> str:
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class TextLines(_Lines):
    """For people: one line, and the lines of an exception after it."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{self.time_of(record)} {record.levelname} {record.name} {self.message_of(record)}"
        for name, value in self.ids_of(record).items():
            line += f" {name}={value}"
        # Whoever may choose a path or a name must not be able to write lines.
        line = CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), line)
        exception = self.exception_of(record)
        return f"{line}\n{exception}" if exception else line


class JsonLines(_Lines):
    """For programs: one object on one line. `extra={"fields": {...}}` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self.message_of(record),
            **getattr(record, "fields", {}),
            **self.ids_of(record),
        }
        exception = self.exception_of(record)
        return json.dumps({**fields, "exception": exception} if exception else fields, default=str)
