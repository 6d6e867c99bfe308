"""JSON of others: one error for whatever is wrong with it, and integers that hardly anybody reads."""

from __future__ import annotations

import re
import time
from json import dumps
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.wire import json
from actors.protocol.wire.json import LARGE_BYTES, MAX_QUOTES, has_endless_integer, holds, may_hold


@pytest.mark.parametrize("text", [b"", b"{", b'"\xff"', b"[" * 100_000, "\ud800"])
def test_whatever_is_wrong_with_a_text_is_one_error(text: bytes | str) -> None:
    with pytest.raises(json.UnreadableJson):
        json.read(json.VALUE, text)
    assert json.read_or(json.VALUE, text, 7) == 7
    assert not json.is_json(text) or text == b'"\xff"'


@pytest.mark.parametrize("text", [b"7", b"null", b'["a"]'])
def test_json_of_another_shape_is_told_apart(text: bytes) -> None:
    with pytest.raises(json.OtherShape):
        json.read(json.MEMBERS, text)
    assert json.members(text) == json.members(None) == {}


@pytest.mark.parametrize(
    ("text", "there", "string"),
    [
        (b'{"a":{"b":"c"}}', b'"c"', "c"),
        (b'{"a":{"b": 7}}', b"7", ""),
        (b'{"a":{"b":null}}', b"", ""),
        (b'{"a":{"b":"\xff"}}', b'"\xff"', ""),
        (b'{"a":{"b":', b"", ""),
        (b'{"a":[]}', b"", ""),
        (b"[]", b"", ""),
        (b"", b"", ""),
    ],
)
def test_what_is_no_path_of_objects_leads_nowhere(text: bytes, there: bytes, string: str) -> None:
    assert bytes(json.at(text, "a", "b")) == there
    assert json.text_at(text, "a", "b") == string


@pytest.mark.parametrize(
    ("value", "endless"),
    [
        (b'{"n":' + b"7" * 4300 + b"}", False),
        (b'{"n":' + b"7" * 4301 + b"}", True),
        (b'{"n":-' + b"7" * 5000 + b"}", True),
        (b'{"a":"\\\\","n":[1,' + b"7" * 20_000 + b"]}", True),
        (b'{"n":"' + b"7" * 20_000 + b'"}', False),
        (b'{"n":"\\": ' + b"7" * 9000 + b'"}', False),
        (b'{"n":0.' + b"7" * 9000 + b"}", False),
        (b'{"n":' + b"7" * 9000 + b".5}", False),
        (b'{"n":' + b"7" * 9000 + b"e5}", False),
        (b'{"a":"' + b"7" * 9000 + b'","n":' + b"7" * 9000 + b"}", True),
        (b'{"n":[' + b"77," * 9000 + b"7]}", False),
        (b"{}", False),
    ],
)
def test_an_integer_that_no_server_reads_is_found_and_nothing_else(value: bytes, endless: bool) -> None:
    assert has_endless_integer(value) is endless


@pytest.mark.parametrize("first", [b"", b'"\\n",'])
def test_many_long_texts_of_digits_are_looked_through_in_one_pass(first: bytes) -> None:
    value = b'{"a":[' + first + b",".join([b'"' + b"7" * 4400 + b'"'] * 900) + b"]}"
    begun = time.process_time()
    assert not has_endless_integer(value)
    assert time.process_time() - begun < 1  # it was 2.5 s, and 6 s with an escape in it


@given(
    st.lists(st.one_of(st.text(max_size=20), st.integers(4000, 5000), st.floats(allow_nan=False)), max_size=6),
    st.integers(0, 4400),
)
def test_integers_are_found_wherever_they_are(parts: list[Any], offset: int) -> None:
    values = [b"7" * part if isinstance(part, int) else dumps(part).encode() for part in parts]
    text = b'{"x":"' + b"-" * offset + b'","a":[' + b",".join(values) + b"]}"
    assert has_endless_integer(text) is any(isinstance(part, int) and part > 4300 for part in parts)


MARKS = (b'"audio"', b'"resource_link"')
NULL = re.compile(rb'"\s*+:\s*+null')


@pytest.mark.parametrize("quotes", [0, 5, MAX_QUOTES - 1, MAX_QUOTES, MAX_QUOTES + 1, 3 * MAX_QUOTES])
@pytest.mark.parametrize("filling", [0, LARGE_BYTES])
def test_a_mark_is_seen_behind_any_number_of_quotes(quotes: int, filling: int) -> None:
    before = b'"' * quotes + b"x" * filling
    for mark in MARKS:
        assert holds(before + mark, MARKS)
        assert holds(mark + before, MARKS)
        assert not holds(before + mark[:-1], MARKS)
        assert not holds(before + mark[1:], (b'"' + mark[1:-1] + b"'",))
    assert not holds(before, MARKS)


@given(st.lists(st.sampled_from([b'"', b"audio", b'"audio"', b"x" * LARGE_BYTES, b'"' * MAX_QUOTES]), max_size=6))
def test_it_is_the_same_as_to_look_for_each(parts: list[bytes]) -> None:
    text = b"".join(parts)
    assert holds(text, MARKS) == any(mark in text for mark in MARKS)


@pytest.mark.parametrize("quotes", [0, 5, MAX_QUOTES, 3 * MAX_QUOTES])
@pytest.mark.parametrize("filling", [0, LARGE_BYTES])
def test_a_member_that_is_null_is_seen_behind_any_number_of_quotes_and_a_text_that_says_null_is_not(
    quotes: int, filling: int
) -> None:
    before = b'"' * quotes + b"x" * filling
    for member in (b'"a":null', b'"a" : \r\n null'):
        assert may_hold(before + member, NULL, b"null")
        assert may_hold(member + before, NULL, b"null")
    if filling and quotes < MAX_QUOTES:
        assert not may_hold(before + b'"null and void":"null"', NULL, b"null")
    assert not may_hold(before, NULL, b"null")
