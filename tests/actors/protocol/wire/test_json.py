"""JSON of others: one error for whatever is wrong with it, and integers that hardly anybody reads."""

from __future__ import annotations

import time
from json import dumps
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.wire import json
from actors.protocol.wire.json import has_endless_integer


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
