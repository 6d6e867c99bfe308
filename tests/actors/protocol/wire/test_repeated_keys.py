"""Keys that are there twice: found at any depth, however they are written, in small texts and in large ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import InvalidArguments
from actors.protocol.wire.repeated_keys import RepeatedKey, check_keys
from actors.protocol.wire.weight import LARGE_BYTES

TWICE = [
    ('{"a":1,"a":2}', "a"),
    ('{"a":1,"b":{"c":[{"d":1, "d" :1}]}}', "d"),
    ('{"path":1,"pa\\u0074h":2}', "path"),
    ('{"\\/":1,"/":2}', "/"),
    ('{"a\\"b":1,"x":"}\\\\","a\\u0022b":2}', 'a"b'),
    ('{"":1,"":2}', ""),
    ('{"é":1,"\\u00e9":2}', "é"),
    ('{"\\ud83d\\ude00":1,"😀":2}', "😀"),
    ('{"\\ud800":1,"\\ud800":2}', "\\ud800"),
]
ONCE = [
    "{}",
    '{"a":{"a":{"a":1}},"b":{"a":[{"a":1},{"a":1}]}}',
    '{"a":"\\"a\\":1,\\"a\\":","A":1}',
    '{"é":1,"e\u0301":2}',
    '{"a":"{\\\\","b":"}","c":"\\\\"}',
    '{"n":' + "9" * 5000 + ',"m":-0,"f":1e999}',
    "[1,2]",
    '"a"',
]
PADDING = '"padding":"' + 'x\\"' * (LARGE_BYTES // 3) + '",'


@pytest.mark.parametrize(("text", "key"), TWICE)
def test_a_key_that_is_there_twice_is_named(text: str, key: str) -> None:
    for whole in (text, "{" + PADDING + text[1:]):
        with pytest.raises(RepeatedKey) as refused:
            check_keys(whole.encode())
        assert refused.value.details == {"key": key}
        assert repr(key) in refused.value.message


@pytest.mark.parametrize("text", ONCE)
def test_equal_keys_of_different_objects_are_fine(text: str) -> None:
    check_keys(text.encode())
    check_keys(f"[{text},{{{PADDING[:-1]}}}]".encode())


def test_what_is_too_deep_is_refused_in_words() -> None:
    with pytest.raises(InvalidArguments, match="nested too deeply"):
        check_keys(b'{"a":' * 5000 + b"1" + b"}" * 5000)


@pytest.mark.parametrize("size", [0, 65_534, 65_535, 65_536, 65_537, 200_000])
def test_what_is_between_two_keys_may_be_long(size: int) -> None:
    with pytest.raises(RepeatedKey):
        check_keys(('{"a":' + "1" * size + ',"a":1}' + " " * LARGE_BYTES).encode())


def test_strings_full_of_escapes_end_where_they_end() -> None:
    for escapes in range(600):  # whatever place of a piece the escape falls on
        text = '{"a":"' + "x" * escapes + '\\\\\\"\\\\", "b" :1, "b":1}' + " " * LARGE_BYTES
        with pytest.raises(RepeatedKey):
            check_keys(text.encode())


KEYS = st.text(st.sampled_from('ab"\\{}:,é\u0301 '), max_size=3)
VALUES = st.recursive(
    KEYS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(KEYS, inner), max_size=4).map(tuple),
    max_leaves=12,
)


def written(value: Any, colon: str, *, ascii_only: bool) -> str:
    """JSON of a value in which a tuple of pairs is an object."""
    if isinstance(value, tuple):
        keys = [json.dumps(key, ensure_ascii=ascii_only) for key, _ in value]
        values = [written(each, colon, ascii_only=ascii_only) for _, each in value]
        return "{" + ",".join(map(colon.join, zip(keys, values, strict=True))) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(each, colon, ascii_only=ascii_only) for each in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


def repeats(value: Any) -> bool:
    if isinstance(value, tuple):
        return len({key for key, _ in value}) < len(value) or any(repeats(inner) for _, inner in value)
    return isinstance(value, list) and any(map(repeats, value))


@given(VALUES, st.sampled_from((":", ": ", " : ")), st.booleans())
def test_small_and_large_texts_are_judged_alike(value: Any, colon: str, ascii_only: bool) -> None:
    text = written(value, colon, ascii_only=ascii_only)
    for whole in (text, text + " " * LARGE_BYTES):
        try:
            check_keys(whole.encode())
        except RepeatedKey:
            assert repeats(value)
        else:
            assert not repeats(value)


@pytest.mark.parametrize("text", ['"a":1,"a":2', '{"a":"' + "\\" * 3, '{"a":"\\"x'])
def test_nothing_is_said_of_what_is_no_json(text: str) -> None:
    check_keys(text.encode())
    check_keys(("[" + " " * LARGE_BYTES + text).encode())
