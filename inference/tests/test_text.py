"""Text that neither PostgreSQL nor UTF-8 can hold is replaced, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.text import ChunkCleaner, clean

REPLACED = "\N{REPLACEMENT CHARACTER}"
HIGH, LOW = "\ud83c", "\udf0a"
WAVE = "🌊"
HOSTILE = st.lists(st.sampled_from(["a", "강", WAVE, "\x00", HIGH, LOW, "\ud800", "\udfff", "\n"])).map("".join)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain 강물 🌊\n", "plain 강물 🌊\n"),
        ("a\x00b", f"a{REPLACED}b"),
        (f"a{HIGH}b", f"a{REPLACED}b"),
        (f"a{LOW}b", f"a{REPLACED}b"),
        (f"{LOW}{HIGH}", REPLACED * 2),
        (f"{HIGH}{LOW}", WAVE),
        ("\x01\x7f\u200b\ufeff", "\x01\x7f\u200b\ufeff"),
        ("", ""),
    ],
)
def test_nul_and_lone_surrogates_are_replaced_and_pairs_are_joined(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(HOSTILE)
def test_cleaned_text_can_be_stored_and_cleaning_it_again_changes_nothing(text: str) -> None:
    cleaned = clean(text)
    assert "\x00" not in cleaned.encode().decode()
    assert clean(cleaned) == cleaned


@given(HOSTILE, st.data())
def test_a_text_in_chunks_comes_out_as_if_it_had_come_whole(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    cleaner = ChunkCleaner()
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(cleaner.feed(piece) for piece in pieces) + cleaner.flush() == clean(text)


def test_a_pair_split_over_two_chunks_comes_out_whole() -> None:
    cleaner = ChunkCleaner()
    assert [cleaner.feed(f"a{HIGH}"), cleaner.feed(f"{LOW}b"), cleaner.flush()] == ["a", f"{WAVE}b", ""]


def test_half_a_pair_at_the_end_is_given_out_replaced_and_only_once() -> None:
    cleaner = ChunkCleaner()
    assert [cleaner.feed(HIGH), cleaner.flush(), cleaner.flush()] == ["", REPLACED, ""]


def test_an_empty_chunk_between_the_halves_does_not_part_them() -> None:
    cleaner = ChunkCleaner()
    assert cleaner.feed(HIGH) + cleaner.feed("") + cleaner.feed(LOW) == WAVE
