"""The event splitter gives the same payloads however the network cuts the bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine import EngineError, ErrorCode
from inference.engines.sse import BOM, MAX_EVENT_BYTES, EventSplitter

LINE_ENDS = (b"\n", b"\r\n", b"\r")
TEXT = '{"text":"강물 🌊 👩‍🚀"}'.encode()


def split(*segments: bytes) -> list[bytes]:
    splitter = EventSplitter()
    payloads = [payload for segment in segments for payload in splitter.feed(segment)]
    return payloads + splitter.flush()


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


@pytest.mark.parametrize("line_end", LINE_ENDS)
def test_one_byte_per_segment_gives_the_same_as_one_segment(line_end: bytes) -> None:
    """CASES 41: any line end, multi-byte characters cut in the middle."""
    data = b"data: %b\n\ndata:[DONE]\n\n" % TEXT
    data = data.replace(b"\n", line_end)
    assert split(data) == split(*bytewise(data)) == [TEXT, b"[DONE]"]


def test_several_events_in_one_read_all_come_out() -> None:
    """CASES 41."""
    assert split(b"data: 1\n\ndata: 2\n\ndata: 3\n\nda", b"ta: 4\n\n") == [b"1", b"2", b"3", b"4"]


def test_the_space_after_the_colon_is_optional_and_only_one_is_dropped() -> None:
    assert split(b"data:a\n\ndata: b\n\ndata:  c\n\n") == [b"a", b"b", b" c"]


def test_data_lines_of_one_event_are_joined_by_a_newline() -> None:
    assert split(b"data: {\ndata: }\n\n") == [b"{\n}"]


@pytest.mark.parametrize(
    "noise",
    [
        b": keepalive\n\n",
        b": keepalive\n",
        b"data: : keepalive\n\n",
        b"data::\n\n",
        b"\n\n",
        b"event: x\nid: 1\n\n",
        b"data\n\n",
    ],
)
def test_comments_and_other_fields_give_nothing(noise: bytes) -> None:
    """CASES 36."""
    assert split(noise, b"data: a\n\n", noise, b"data: b\n\n") == [b"a", b"b"]
    assert split(*bytewise(noise + b"data: a\n\n" + noise)) == [b"a"]


def test_a_comment_inside_an_event_does_not_end_it() -> None:
    assert split(b"data: a\n: still here\ndata: b\n\n") == [b"a\nb"]


@pytest.mark.parametrize("cut", range(4))
def test_a_byte_order_mark_is_dropped_at_the_start_only(cut: int) -> None:
    data = BOM + b"data: a\n\n"
    assert split(data[:cut], data[cut:], b"data: " + BOM + b"\n\n") == [b"a", BOM]


def test_a_last_event_without_its_blank_line_still_counts() -> None:
    assert split(b"data: [DONE]") == split(b"data: [DONE]\r") == [b"[DONE]"]


def test_an_event_without_end_is_refused_before_it_fills_memory() -> None:
    splitter = EventSplitter()
    with pytest.raises(EngineError) as caught:
        for _ in range(MAX_EVENT_BYTES // 65_536 + 1):
            splitter.feed(b"x" * 65_536)
    assert caught.value.code is ErrorCode.CUT_OFF


def test_many_data_lines_without_a_blank_line_are_refused_too() -> None:
    splitter = EventSplitter()
    with pytest.raises(EngineError):
        for _ in range(MAX_EVENT_BYTES // 65_536 + 1):
            splitter.feed(b"data: " + b"x" * 65_536 + b"\n")


def test_a_giant_event_below_the_limit_comes_out_whole() -> None:
    """CASES 42."""
    text = b"x" * (MAX_EVENT_BYTES - 1000)
    data = b"data: " + text + b"\n\n"
    assert split(*(data[i : i + 16_384] for i in range(0, len(data), 16_384))) == [text]


@given(
    texts=st.lists(st.text(min_size=1), min_size=1, max_size=5),
    line_end=st.sampled_from(LINE_ENDS),
    space=st.sampled_from([b"", b" "]),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_any_cut_of_any_text_gives_the_same_payloads(
    texts: list[str], line_end: bytes, space: bytes, cuts: list[int]
) -> None:
    payloads = [json.dumps(text, ensure_ascii=False).encode("utf-8", "replace") for text in texts]
    data = b"".join(b"data:" + space + payload + line_end * 2 for payload in payloads)
    points = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    assert split(*(data[a:b] for a, b in zip(points, points[1:], strict=False))) == payloads
