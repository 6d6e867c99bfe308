"""Arguments as they are remembered: short, JSON whatever came in, and without secrets wherever these stand."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.principal import LOCAL
from actors.transport.redaction import Mask
from supervisor.usage.arguments import (
    MAX_CHARS,
    MAX_ITEMS,
    MAX_SCHEMA_BYTES,
    MORE,
    READ_BYTES,
    secret_names,
    show_arguments,
)
from supervisor.usage.records import CallArguments, CallRecord
from supervisor.usage.totals import KeptArguments

CANARY = 'canary-3f9 with "quotes"\nand canary-4f9'
MASK = Mask({"API_KEY": CANARY})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=40,
)


def show(value: Any, schema: Any = None, **how: Any) -> Any:
    written = b"" if schema is None else json.dumps(schema).encode()
    return json.loads(show_arguments(json.dumps(value, **how).encode(), MASK, written))


def test_what_is_short_and_no_secret_is_as_it_was() -> None:
    given_ = {"path": "/tmp/a", "lines": [1, 2.5, -3], "deep": {"on": True, "none": None, "name": "Zoë"}}
    assert show(given_) == show(given_, ensure_ascii=False) == given_


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": "hunter2"}, {"password": "***"}),
        ({"apiToken": {"a": ["hunter2"]}, "b": 1}, {"apiToken": "***", "b": 1}),
        ({"x": {"Authorization": "hunter2"}}, {"x": {"Authorization": "***"}}),
        ({"pin": 1234, "is_secret": True}, {"pin": "***", "is_secret": True}),
        ({"args": ["--token", "hunter2", "x"]}, {"args": ["--token", "***", "x"]}),
        ({"args": ["--token=hunter2"]}, {"args": ["--token=***"]}),
        ({"headers": [{"name": "Cookie", "value": "hunter2"}]}, {"headers": [{"name": "Cookie", "value": "***"}]}),
        ([{"value": "hunter2", "key": "password"}], [{"value": "***", "key": "***"}]),
        ({"body": '{"secret": "hunter2", "n": [1]}'}, {"body": {"secret": "***", "n": [1]}}),
        ({"code": "say({'password': 'hunter2'})"}, {"code": "***"}),
        ({"arguments": "{'password': 'hunter2'}"}, {"arguments": {MORE: MORE}}),
        ({"note": "use ghp_" + "a1" * 18}, {"note": "use ***"}),
        ({"url": "https://me:hunter2@example.com/"}, {"url": "https://me:***@example.com/"}),
        ({"ghp_" + "a1" * 18: 1}, {"***": 1}),
        ({"mine": CANARY}, {"mine": "***"}),
        ({"text": f"a {CANARY} b"}, {"text": "a *** b"}),
        ({"note": '{"inside": ' + json.dumps(CANARY) + "}"}, {"note": {"inside": "***\n***"}}),
    ],
)
def test_a_secret_is_hidden_wherever_it_stands(value: Any, shown: Any) -> None:
    for how in ({}, {"ensure_ascii": False}, {"indent": 1}):
        assert show(value, **how) == shown


def test_an_escape_hides_no_secret_from_the_mask() -> None:
    spelled = "".join(f"\\u{ord(letter):04x}" for letter in CANARY)
    written = f'{{"a": "{spelled}", "\\u0070assword": "hunter2"}}'.encode()
    assert json.loads(show_arguments(written, MASK)) == {"a": "***", "password": "***"}


def test_a_schema_says_what_is_secret() -> None:
    properties = {
        "motto": {"type": "string", "writeOnly": True},
        "word": {"anyOf": [{"type": "object", "properties": {"inner": {"format": "password"}}}]},
    }
    schema = {"type": "object", "properties": properties}
    assert show({"motto": "hunter2", "word": {"inner": "hunter2", "b": 1}}, schema) == {
        "motto": "***",
        "word": {"inner": "***", "b": 1},
    }
    large = {**schema, "description": "x" * MAX_SCHEMA_BYTES}
    assert list(show({"motto": "hunter2"}, large)) == [MORE], "nothing is shown of what nobody can judge"
    assert "*" in secret_names(b'{"writeOnly": tru')


def test_large_arguments_are_shown_by_their_beginning() -> None:
    shown = show({"content": "word " * 1_000_000, "path": "/never/read"})
    assert shown["content"].startswith("word word")
    assert shown[MORE] == "5,000,038 bytes in all"
    assert list(show({"numbers": [*range(100)]})["numbers"])[-2:] == [MAX_ITEMS - 1, f"{100 - MAX_ITEMS} more"]


@pytest.mark.parametrize("before", range(READ_BYTES - 60, READ_BYTES + 10, 3))
def test_the_beginning_of_a_secret_at_the_end_of_what_is_read_is_not_shown(before: int) -> None:
    token = "ghp_" + "a1" * 18
    for text in (f"{'x' * before}{token}{'y' * 9000}", f"{'x' * before}{CANARY}{'y' * 9000}"):
        shown = show_arguments(json.dumps({"t": text}).encode(), MASK)
        assert "ghp" not in shown
        assert "canary" not in shown
    listed = show_arguments(json.dumps(["x" * (before - 9), token, "y" * 9000]).encode(), MASK)
    assert "ghp" not in listed


@given(JSON)
def test_whatever_comes_in_is_short_json(value: Any) -> None:
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(json.dumps(value))):
        shown = show_arguments(written.encode(errors="replace"), MASK)
        json.loads(shown)
        assert len(shown) <= MAX_CHARS


@given(st.binary(max_size=300) | st.text('{}[]",:\\u1aé "', max_size=300).map(str.encode))
def test_what_is_no_json_harms_nobody(data: bytes) -> None:
    shown = show_arguments(data, MASK)
    json.loads(shown)
    assert len(shown) <= MAX_CHARS


WORST = {
    "a text": b'{"content":"' + b"word " * 800_000 + b'"}',
    "members": b"{" + b",".join(b'"k%d":1' % n for n in range(400_000)) + b"}",
    "lists": b"[" * 2_000_000 + b"]" * 2_000_000,
    "escapes": b'["' + b"\\u00e9" * 700_000 + b'"]',
    "hints": b'{"a":"' + b"token=x1 " * 460_000 + b'"}',
    "quotes": b'["' + b'\\\\\\"' * 1_000_000 + b'"]',
    "objects": b"[" + b'{"key":"a","value":1},' * 190_000 + b"{}]",
}


@pytest.mark.parametrize("name", WORST)
def test_four_mebibytes_take_a_few_milliseconds(name: str) -> None:
    many = Mask({f"KEY_{n}": f"secret-{n:05}-of-a-server" for n in range(600)})
    best = min(timed(WORST[name], many) for _ in range(5))
    assert best < 0.02, "the loop is held for less than 20 ms"


def timed(data: bytes, mask: Mask) -> float:
    began = time.thread_time()
    show_arguments(data, mask)
    return time.thread_time() - began


def test_they_are_kept_only_while_that_is_wanted_and_so_many_of_them() -> None:
    kept = KeptArguments(2, lambda: True, lambda principal: MASK)
    record, given_ = CallRecord(tool="a", principal=LOCAL), CallArguments(msgspec.Raw(b'{"a": 1}'))
    for turn in (2, 3, 5):
        kept.keep(turn, record, given_)
    assert [kept.of(turn) for turn in (2, 3, 4, 5)] == [None, '{"a": 1}', None, '{"a": 1}']
    kept.wanted = lambda: False
    assert kept.of(5) is None
    kept.wanted = lambda: True
    assert kept.of(5) is None, "what was forgotten stays so"
