"""A text by lines: nothing is lost between them, each fits a budget, and words are found where they are."""

from __future__ import annotations

import json
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.metatools.texts import estimate_tokens
from supervisor.service.results import cutting
from supervisor.service.results.cutting import MAX_BYTES, WRAP, LongText, is_light, long_text, tokens_of, unquote

TEXTS = st.lists(st.text(st.sampled_from("ab \n{ä€𝄞"), max_size=60) | st.just("é" * 700), max_size=6).map("\n".join)


def all_of(kept: LongText) -> bytes:
    return b"".join(kept.between(number, number) for number in range(1, kept.lines + 1))


@given(TEXTS)
def test_lines_are_the_text_and_nothing_else(text: str) -> None:
    kept = long_text(text.encode())
    assert all_of(kept) == kept.text == text.encode()
    assert kept.between(1, kept.lines) == kept.text
    for number in range(1, kept.lines + 1):
        line = kept.between(number, number)
        assert 0 < len(line) <= WRAP + 1
        assert b"\n" not in line[:-1]
        line.decode()


@given(TEXTS, st.integers(1, 2000))
def test_pages_within_a_budget_follow_each_other_to_the_end(text: str, tokens: int) -> None:
    kept = long_text(text.encode())
    first, read = 1, b""
    while first <= kept.lines:
        last = kept.last_within(first, kept.lines, tokens)
        page = kept.between(first, last)
        assert (
            first == last
            or sum(estimate_tokens(kept.between(number, number).decode()) for number in range(first, last + 1))
            <= tokens
        )
        read, first = read + page, last + 1
    assert read == kept.text


@given(TEXTS, st.sampled_from(["a", "B", "é", "b a", "{"]))
def test_words_are_found_in_the_lines_that_have_them(text: str, words: str) -> None:
    kept = long_text(text.encode())
    lines = [kept.between(number, number).decode() for number in range(1, kept.lines + 1)]
    having = [number for number, line in enumerate(lines, start=1) if words.lower() in line.lower()]
    assert [*kept.lines_with(words, 1, kept.lines)] == having
    assert [*kept.lines_with(words, 2, 3)] == [number for number in having if number in (2, 3)]


def test_words_are_found_in_long_texts_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_PIECE", 100)
    kept = long_text("\n".join(f"row {number}" for number in range(1000)).encode())
    assert [*kept.lines_with("ROW 99", 1, kept.lines)] == [100, *range(991, 1001)]


def test_json_is_indented_and_keeps_its_numbers() -> None:
    kept = long_text(b'{"a":[1.0,123456789012345678901234567890],"b":"x"}')
    assert kept.is_json
    assert kept.lines == 7
    assert kept.value() == {"a": [1.0, 123456789012345678901234567890], "b": "x"}
    assert b"123456789012345678901234567890" in kept.text


@pytest.mark.parametrize(
    "text",
    [
        b"plain",
        b"{broken",
        b"[1, 2",
        b'{"a":1e999}',
        b"[" + b"7" * 5000 + b"]",
        b"[" + b"{}," * 200_000 + b"{}]",
        b"[" * 3000 + b"]" * 3000,
        b'{"a":"' + b"x" * MAX_BYTES + b'"}',
        b"[" + b"[0]," * 150_000 + b"0]",
    ],
)
def test_what_is_no_json_or_too_much_of_it_is_a_text(text: bytes) -> None:
    kept = long_text(text)
    assert not kept.is_json
    assert kept.text == text[: len(kept.text)]
    assert kept.size == len(text)


def test_of_a_text_that_is_too_long_the_beginning_is_kept_whole_characters() -> None:
    kept = long_text(b"x" + "ä".encode() * MAX_BYTES)
    assert MAX_BYTES - 4 < len(kept.text) <= MAX_BYTES
    assert kept.size == 2 * MAX_BYTES + 1
    assert len(kept.between(kept.lines, kept.lines).decode()) <= WRAP
    assert kept.memory <= 2 * MAX_BYTES


def test_there_are_no_lines_of_nothing_and_none_beyond_the_end() -> None:
    empty = long_text(b"")
    assert (empty.lines, empty.between(1, 1), empty.last_within(1, 9, 5)) == (0, b"", 0)
    kept = long_text(b"a\nb")
    assert (kept.between(2, 9), kept.between(3, 9), kept.between(2, 1), kept.between(0, 1)) == (b"b", b"", b"", b"")


@given(st.text(max_size=300))
def test_tokens_of_a_short_text_are_those_of_the_estimate(text: str) -> None:
    assert tokens_of(text.encode()) == estimate_tokens(text)


def test_tokens_of_a_long_text_are_known_from_pieces() -> None:
    text = "".join(json.dumps({"id": number, "name": "some words here"}) for number in range(8000)).encode()
    whole = sum(estimate_tokens(text[at : at + 8192].decode()) for at in range(0, len(text), 8192))
    assert abs(tokens_of(text) - whole) < whole / 20


def test_the_lightest_text_is_one_string_and_the_heaviest_is_not_read() -> None:
    assert is_light(b'"' + b"x" * 1_000_000 + b'"')
    assert not is_light(b"[" + b"0," * 1_000_000 + b"0]")


@given(
    st.lists(st.sampled_from(["\\", '"', "\n", "é", "文", "😀", "u", "x", "\x01", "ud83d", "\\u"]), max_size=60),
    st.booleans(),
)
def test_a_text_between_quotes_is_read_in_pieces(parts: list[str], ascii_only: bool) -> None:
    text = "".join(parts)
    quoted = json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode()
    for piece in range(16, 24):
        with mock.patch.object(cutting, "_PIECE", piece):
            assert unquote(quoted) == (text.encode(), len(text.encode()))


def test_of_a_long_text_between_quotes_only_the_beginning_is_read() -> None:
    said, size = unquote(b"\\n" * MAX_BYTES)
    assert said == b"\n" * MAX_BYTES
    assert size == MAX_BYTES
    said, size = unquote(b"x" * (3 * MAX_BYTES))
    assert said == b"x" * MAX_BYTES
    assert size == 3 * MAX_BYTES
    assert long_text(said, size - len(said)).size == size
