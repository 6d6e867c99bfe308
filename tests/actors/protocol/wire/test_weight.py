"""What a message weighs: what it takes to read it, in bytes of plain text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ProtocolViolation
from actors.protocol.wire import outline
from actors.protocol.wire.outline import PIECE_BYTES, weight
from actors.protocol.wire.weight import MAX_WEIGHT, TooHeavy, examine, limit

values = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a,:[]{}"\\ \né'), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def read_one_by_one(text: bytes) -> int:
    """The same, as one would write it without numpy."""
    total, inside, escaped = 0, False, False
    for byte in text:
        if byte == ord('"') and not escaped:
            inside = not inside
        total += (outline._ESCAPE if byte == ord("\\") else 1) if inside else int(outline._OUTSIDE[byte])
        escaped = byte == ord("\\") and not escaped and inside
    return total


@given(values, st.booleans())
def test_syntax_counts_outside_of_strings_and_escapes_in_them(value: object, ascii_: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=1).encode()
    exact = read_one_by_one(text)
    assert weight(text, exact) == exact
    assert weight(text, exact - 1) == exact


@given(st.text(st.sampled_from('"\\a,'), min_size=1, max_size=40), st.integers(0, 50))
def test_a_run_of_escapes_may_lie_across_two_pieces(said: str, shift: int) -> None:
    text = b" " * (PIECE_BYTES - shift) + json.dumps([said, 1]).encode()
    assert weight(text, 10**9) == read_one_by_one(text)


def test_a_long_text_weighs_what_it_has_in_bytes_whatever_stands_in_it() -> None:
    for text in (b"x" * 3_000_000, b"1,2:[3]{} " * 300_000, "é".encode() * 1_500_000):
        assert weight(b'{"text":"' + text + b'"}', 3_500_000) < len(text) + 1000


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * 1_000_000 + b"1]",
        b"[" + b"1," * 2_000_000 + b"1]",
        b"{" + b'"k":0,' * 500_000 + b'"k":0}',
        b'{"jsonrpc":"2.0",' + b'"id":1,' * 600_000 + b'"method":"x"}',
        b'"' + b"\\n" * 4_000_000 + b'"',
        (b"[" * 900 + b"]" * 900) * 2000,
        b" " * 4_000_000,
    ],
    ids=["lists", "numbers", "members", "ids", "escapes", "nested", "blanks"],
)
def test_a_message_that_takes_too_long_for_its_size_is_not_read(text: bytes) -> None:
    with pytest.raises(TooHeavy) as caught:
        examine(text)
    assert str(MAX_WEIGHT) in caught.value.message


def test_what_real_servers_answer_is_read() -> None:
    rows = [{"id": number, "name": f"row {number}", "note": 'a "quoted" text\n'} for number in range(20_000)]
    examine(json.dumps({"result": {"structuredContent": {"rows": rows}}}).encode())
    examine(json.dumps({"result": {"content": [{"type": "text", "text": json.dumps(rows)}]}}).encode())
    examine(json.dumps({"result": {"content": [{"type": "image", "data": "A" * (15 << 20)}]}}).encode())


def test_who_allows_larger_messages_allows_their_time() -> None:
    assert limit(1000) == limit(1 << 20) == MAX_WEIGHT
    assert limit(64 << 20) > 64 << 20


@pytest.mark.parametrize("letter", ["é", "€", "😀"])
def test_a_letter_of_several_bytes_may_lie_across_two_pieces(letter: str) -> None:
    for shift in range(4):
        text = b'"' + b"x" * (PIECE_BYTES - 4 + shift) + letter.encode() * 2 + b'"'
        examine(text)
        with pytest.raises(ProtocolViolation, match="not UTF-8"):
            examine(text[:-2])


def test_what_is_not_utf_8_is_told_wherever_it_is() -> None:
    for place in (0, PIECE_BYTES - 1, PIECE_BYTES, 3 * PIECE_BYTES - 1):
        text = bytearray(b"x" * (3 * PIECE_BYTES))
        text[place] = 0xFF
        with pytest.raises(ProtocolViolation, match="not UTF-8"):
            examine(bytes(text))
