"""What a person is shown of a call: all keys, each value or how much of it is left out, and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import InvalidArguments
from actors.protocol.asking.forms import MAX_MESSAGE_CHARS
from actors.protocol.wire.repeated_keys import RepeatedKey
from supervisor.metatools.questions import LIMITS, MAX_BLANKS, MAX_CALL_CHARS, MAX_DEPTH, question
from supervisor.metatools.texts import clean
from tests.fakes.shown_calls import decoded_call


def shown(arguments: Any) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return question("s", b'"name":"t","arguments":' + text.encode())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"a": 1, "b": ["x", None]}, '{"a":1,"b":["x",null]}'),
        ('{ "a" : -0, "b":1E400 , "c":0.100}', '{"a":-0,"b":1E400,"c":0.100}'),
        ('{"pa\\u0074h":"\\u0041"}', '{"path":"A"}'),
        ({"path": "/tmp/harmless" + " " * 1100 + "/etc"}, '{"path":"/tmp/harmless" (1,100 blanks) "/etc"}'),
        ({"a": "\u202e\u200b\x1b[2J\u00a0"}, '{"a":"\\u202e\\u200b\\u001b[2J\\u00a0"}'),
        ({"é": 1, "e\u0301": 2}, '{"é" (in ASCII "\\u00e9"):1,"e\\u0301" (in ASCII "e\\u0301"):2}'),
        ({"p\u0430th": 1, "path": 2}, '{"p\u0430th" (in ASCII "p\\u0430th"):1,"path":2}'),
        ({"a": '"}? Nothing runs.'}, '{"a":"\\"}? Nothing runs."}'),
        ({"a": "1 (5 more characters) 2"}, '{"a":"1 (5 more characters) 2"}'),
        ("[1]", "[1]"),
    ],
)
def test_what_is_shown_is_what_is_sent(arguments: Any, text: str) -> None:
    assert shown(arguments) == f"Run s:t with {text}?"


def test_each_long_value_is_cut_by_itself_and_says_how_much_is_left_out() -> None:
    text = shown({"a": "x" * 3000 + "end", "b": list(range(5000)), "c": {"d": "short"}})
    assert text.endswith("(not all is shown of 4901 of its 5002 values)")
    assert '"c":{"d":"short"}' in text
    assert " (2,003 more characters) " in text
    assert 'xend",' in text
    assert " (4,900 more elements)]" in text


def test_params_beside_the_arguments_are_shown_too() -> None:
    assert question("s", b'"name":"t","x":{"y":1}') == 'Run s:t with {}, and beside the arguments {"x":{"y":1}}?'


def test_a_name_of_a_tool_cannot_look_like_a_question() -> None:
    name = msgspec.json.encode('t with {"path":"/tmp"}?' + " " * 500)
    text = question("s", b'"name":%b,"arguments":{"path":"/etc"}' % name)
    assert text == r'Run "s:t with {\"path\":\"/tmp\"}?" (500 blanks) "" with {"path":"/etc"}?'


@pytest.mark.parametrize(
    "arguments",
    [
        {f"key{number}": number for number in range(1000)},
        {"k" * MAX_CALL_CHARS: 1},
        {"rows": [{"a": 1}] * 1000},
        json.loads("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2)),
        '{"a":"\\ud800"}',
    ],
)
def test_a_call_of_which_a_key_cannot_be_shown_is_refused(arguments: Any) -> None:
    with pytest.raises(InvalidArguments, match="who cannot be shown all of its arguments"):
        shown(arguments)


def test_a_key_that_is_there_twice_is_refused() -> None:
    with pytest.raises(RepeatedKey, match="'path'"):
        shown('{"path":"/tmp/harmless"' + " " * 1100 + ',"path":"/etc"}')


TEXTS = st.text(st.sampled_from('aeb"\\ (){}é\u0301\u202e\u00a0\U0001f600\n'), max_size=12) | st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.integers(0, 40), st.booleans())
def test_whatever_is_shown_whole_can_be_read_back(value: dict[str, Any], blanks: int, ascii_only: bool) -> None:
    value = {**value, "blank": f"a{' ' * blanks}b"}
    text = shown(json.dumps(value, ensure_ascii=ascii_only))
    assert clean(text) == text
    assert "\n" not in text
    assert ("blanks)" in text) is (blanks > MAX_BLANKS)
    assert decoded_call(text) == ("s:t", value)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=3000), max_size=30))
def test_every_key_is_shown_or_the_call_is_refused(value: dict[str, str]) -> None:
    try:
        text = shown(value)
    except InvalidArguments:
        assert len(json.dumps(value)) > LIMITS[-1].characters
        return
    assert len(text) <= MAX_CALL_CHARS < MAX_MESSAGE_CHARS
    keys = re.sub(r' \([^"]*?\)(?=:")', "", text)
    assert all(f"{json.dumps(key)}:" in keys for key in value if key.isascii() and key.isprintable())


def test_of_an_endless_number_its_beginning_is_shown_and_how_much_is_left_out() -> None:
    assert f"{'9' * 1000} (500 more digits)" in shown('{"n":' + "9" * 1500 + "}")
