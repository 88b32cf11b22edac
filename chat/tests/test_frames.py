"""What clients may send, and what is answered to everything else: a clear error that can itself be sent."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat import frames
from chat.frames import FrameError

ID = "0d5f0b9e-6a7e-4c3c-9c9e-1f1f5a3f2b11"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def refusal(text: str | None) -> frames.Frame:
    with pytest.raises(FrameError) as caught:
        frames.parse(text)
    frame = caught.value.frame
    assert (frame["type"], frame["code"]) == ("error", "bad_frame")
    assert 0 < len(frame["detail"]) <= 200
    frames.encode(frame)
    return frame


def test_every_frame_of_the_protocol_is_read() -> None:
    read = [
        frames.parse(json.dumps(value))
        for value in (
            {"type": "send", "client_id": ID, "text": "Hi"},
            {"type": "send", "client_id": ID, "text": "Hi", "parent_id": None, "model": None},
            {"type": "send", "client_id": ID, "text": "Hi", "parent_id": ID, "model": "m"},
            {"type": "regenerate", "client_id": ID, "message_id": ID},
            {"type": "continue", "client_id": ID, "message_id": ID},
            {"type": "stop", "inference_id": ID},
            {"type": "stop", "inference_id": ID, "position": 0},
            {"type": "follow", "inference_id": ID, "position": 3},
            {"type": "ping"},
            {"type": "ping", "n": 7},
            {"type": "pong", "n": 7},
        )
    ]
    assert [frame.type for frame in read] == [
        *["send"] * 3,
        *["regenerate", "continue", "stop", "stop", "follow", "ping", "ping", "pong"],
    ]


def test_a_null_parent_is_a_parent_and_none_at_all_is_not() -> None:
    send: dict[str, object] = {"type": "send", "client_id": ID, "text": "Hi"}
    parents: list[dict[str, object]] = [{}, {"parent_id": None}, {"parent_id": ID}]
    read = [frames.parse(json.dumps(send | parent)) for parent in parents]
    assert [isinstance(frame, frames.Send) and frame.has_parent for frame in read] == [False, True, True]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        " ",
        "not JSON",
        "{",
        '{"type":"ping"} {"type":"ping"}',
        "[]",
        "null",
        '"ping"',
        "1",
        "{}",
        '{"type":null}',
        '{"type":["ping"]}',
        '{"type":{"ping":1}}',
        '{"type":"shout"}',
        '{"type":"PING"}',
        '{"type":"delta"}',
        '{"type":"ping","n":"1"}',
        '{"type":"ping","n":1.5}',
        '{"type":"ping","n":1.0}',
        '{"type":"ping","n":true}',
        '{"type":"ping","n":NaN}',
        '{"type":"pong"}',
        '{"type":"pong","n":null}',
        '{"type":"ping","extra":1}',
        '{"type":"ping","\\ud800":1}',
        '{"type":"\\ud800"}',
        '{"type":"ping","a\\u0000b":1}',
        "[" * 100_000,
        '{"type":' * 50_000,
        '{"type":"ping","n":' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"type":"ping","n":' + "9" * 5000 + "}",
        '{"type":"' + "x" * 1_000_000 + '"}',
        '{"type":"ping","' + "x" * 1_000_000 + '":1}',
    ],
    ids=lambda text: str(text)[:25],
)
def test_what_is_no_frame_is_refused_with_a_short_sentence(text: str | None) -> None:
    assert set(refusal(text)) == {"type", "code", "detail"}


@pytest.mark.parametrize(
    "fields",
    [
        {"text": None},
        {"text": 5},
        {"text": ["Hi"]},
        {"text": {"Hi": 1}},
        {"parent_id": ""},
        {"parent_id": "x"},
        {"parent_id": 5},
        {"parent_id": "\x00"},
        {"parent_id": ID + "0"},
        {"model": 5},
        {"model": "m" * 201},
        {"room_id": ID},
    ],
    ids=str,
)
def test_a_send_with_wrong_fields_is_refused_with_its_client_id(fields: dict[str, object]) -> None:
    frame = {"type": "send", "client_id": ID, "text": "Hi"} | fields
    assert refusal(json.dumps(frame))["client_id"] == ID


def test_a_send_without_a_text_or_an_id_is_refused() -> None:
    assert refusal(json.dumps({"type": "send", "client_id": ID}))["client_id"] == ID
    assert "client_id" not in refusal(json.dumps({"type": "send", "text": "Hi"}))


@pytest.mark.parametrize("position", [-1, -(10**20), 1.5, 1.0, "1", True, False, [], {}, 1e300], ids=str)
@pytest.mark.parametrize("frame_type", ["stop", "follow"])
def test_a_position_is_a_whole_number_from_zero(frame_type: str, position: object) -> None:
    frame = {"type": frame_type, "inference_id": ID, "position": position}
    assert refusal(json.dumps(frame))["inference_id"] == ID


def test_a_follow_needs_a_position_and_a_stop_does_not() -> None:
    assert refusal(json.dumps({"type": "follow", "inference_id": ID}))["inference_id"] == ID
    assert frames.parse(json.dumps({"type": "stop", "inference_id": ID, "position": 10**25}))


@pytest.mark.parametrize("bad", ["", "x", "\x00", "\ud800", "x" * 1000, 5, None, True, [ID], ID[:-1]], ids=repr)
def test_a_bad_inference_id_is_refused_and_only_echoed_when_it_is_harmless(bad: object) -> None:
    frame = refusal(json.dumps({"type": "stop", "inference_id": bad}))
    assert frame.get("inference_id", bad) == bad
    assert ("inference_id" in frame) == (bad in {"", "x", ID[:-1]} if isinstance(bad, str) else False)


@given(JSON)
def test_any_json_is_a_frame_or_a_clear_refusal(value: object) -> None:
    try:
        frames.parse(json.dumps(value))
    except FrameError as error:
        frames.encode(error.frame)


@given(st.fixed_dictionaries({"type": st.sampled_from(["send", "stop", "follow", "ping", "regenerate"])}), JSON, JSON)
def test_any_fields_of_known_frames_are_read_or_refused(
    frame: dict[str, object], first: object, second: object
) -> None:
    names = ("client_id", "inference_id", "text", "n", "position", "message_id")
    for name in names:
        value = frame | {name: first, names[0]: second}
        try:
            frames.parse(json.dumps(value))
        except FrameError as error:
            frames.encode(error.frame)


def test_a_lone_surrogate_in_a_prompt_is_no_reason_to_refuse_it() -> None:
    """It is replaced when the prompt is taken."""
    frame = frames.parse(json.dumps({"type": "send", "client_id": ID, "text": "a\ud800b\x00"}))
    assert isinstance(frame, frames.Send)
    assert frame.text == "a\ud800b\x00"


def test_ids_are_uuids_in_their_usual_form() -> None:
    frame = frames.parse(json.dumps({"type": "stop", "inference_id": ID.upper()}))
    assert isinstance(frame, frames.Stop)
    assert frame.inference_id == UUID(ID)


def test_an_error_carries_the_ids_it_is_given() -> None:
    client_id = str(uuid4())
    error = FrameError("busy", "Wait.", client_id=client_id)
    assert error.frame == {"type": "error", "code": "busy", "detail": "Wait.", "client_id": client_id}
