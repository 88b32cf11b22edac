"""Takes server-sent events apart: bytes in, `data:` payloads out. On the path of every chunk, so it is measured.

The format is the WHATWG HTML standard's, section "Server-sent events"; only `data` fields matter here.
"""

from __future__ import annotations

from inference.engine import EngineError, ErrorCode

MAX_EVENT_BYTES = 16 * 1024 * 1024
BOM = b"\xef\xbb\xbf"


class EventSplitter:
    """Feed it what the network gives, cut anywhere; it gives back each payload when its event is whole."""

    def __init__(self) -> None:
        self._partial = bytearray()  # a line without its end
        self._data: list[bytes] = []  # the data lines of an event without its end
        self._data_bytes = 0
        self._is_at_start = True
        self._ends_in_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that `data` completes. Raises EngineError when one event exceeds MAX_EVENT_BYTES."""
        if self._is_between_events() and _is_one_event(data):
            self._is_at_start = False
            payload = data[6:-2]
            return [] if payload.startswith(b":") else [payload]
        return self._feed_lines(data)

    def flush(self) -> list[bytes]:
        """The payload of a last event that came without its blank line, once the stream has ended."""
        return self._feed_lines(b"\n\n")

    def _is_between_events(self) -> bool:
        return not (self._partial or self._data or self._ends_in_cr)

    def _feed_lines(self, data: bytes) -> list[bytes]:
        if self._ends_in_cr and data:
            data = data.removeprefix(b"\n")  # the rest of a CRLF that the network cut in two
            self._ends_in_cr = False
        self._check_size(len(self._partial) + len(data))
        self._partial += data
        if b"\n" not in data and b"\r" not in data:
            return []
        lines = bytes(self._partial).splitlines(keepends=True)
        self._partial.clear()
        if not lines[-1].endswith((b"\n", b"\r")):
            self._partial += lines.pop()
        self._ends_in_cr = data.endswith(b"\r")
        return [payload for line in lines if (payload := self._take_line(line.rstrip(b"\r\n"))) is not None]

    def _take_line(self, line: bytes) -> bytes | None:
        if self._is_at_start:
            line = line.removeprefix(BOM)
            self._is_at_start = False
        if not line:
            return self._end_event()
        if line.startswith(b"data:"):
            value = line[5:].removeprefix(b" ")
            if not value.startswith(b":"):  # `data: : keepalive`, which some proxies make of a comment
                self._check_size(self._data_bytes + len(value))
                self._data.append(value)
                self._data_bytes += len(value)
        return None

    def _end_event(self) -> bytes | None:
        payload = b"\n".join(self._data)
        self._data.clear()
        self._data_bytes = 0
        return payload or None

    def _check_size(self, byte_count: int) -> None:
        if byte_count > MAX_EVENT_BYTES:
            raise EngineError(ErrorCode.CUT_OFF, f"one event exceeds {MAX_EVENT_BYTES} bytes")


def _is_one_event(data: bytes) -> bool:
    """Whether this is one whole event of one data line, as nearly every read is."""
    return (
        data.startswith(b"data: ")
        and data.endswith(b"\n\n")
        and data.find(b"\n") == len(data) - 2
        and b"\r" not in data
    )
