"""One key of a JSON text with comments changes; everything else is there byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config.jsonc import put, read_document, remove
from tests.supervisor.config.test_jsonc import json_values

PEOPLE = """\
// what people write
{
  "mcpServers": { // all of them
    "a": {"command": "x", "args": ["-y"]}, // the first
    /* the second */ "b": {
      "url": "http://h/*no comment*/" /* here */,
      // "old": 1
      "headers": {},
    }, // its end
    // a last word
  },
  "other": [1, 2]
}
"""

SERVER = {"command": "y", "args": ["-m", "z"], "env": {"K": "v"}}


# Layouts --------------------------------------------------------------------------------------------------------------

spaces = st.sampled_from(["", " ", "\t", "  ", "\n", "\r\n", "\n\n  ", "\n\t"])
comments = st.sampled_from(["// c\n", '// }",\r\n  ', "/* d */", "/* {\n, */ ", "// \t \n"])
blanks = st.lists(spaces | comments, max_size=3).map("".join)
keys = st.sampled_from(["a", "b", "c d", "é", '"', "\\", ""])


@st.composite
def layouts(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> tuple[Any, str]:
    """A value, and one of the texts that it may be written as. Objects without members hold no blanks."""

    def write(value: Any) -> str:
        if not value or not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        items = [write(each) for each in value]
        if isinstance(value, dict):
            colon = f"{draw(blanks)}:{draw(blanks)}"
            items = [f"{json.dumps(key)}{colon}{write(each)}" for key, each in value.items()]
        items = [f"{draw(blanks)}{item}{draw(blanks)}" for item in items]
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        return f"{opening}{','.join(items)}{draw(st.sampled_from(['', ',']))}{draw(blanks)}{closing}"

    value = draw(values)
    return value, f"{draw(st.sampled_from(['', chr(0xFEFF)]))}{draw(blanks)}{write(value)}{draw(blanks)}"


inner = st.recursive(st.integers(0, 9) | st.text(max_size=2), lambda below: st.dictionaries(keys, below, max_size=3))
objects = st.dictionaries(keys, inner | st.lists(inner, max_size=2), max_size=4)
paths = st.lists(keys, min_size=1, max_size=3).map(tuple)


def change(value: Any, where: tuple[str, ...], new: Any) -> Any:
    """The value with another one at `where`; None if the way leads through what is no object."""
    if not isinstance(value, dict):
        return None
    below = new if len(where) == 1 else change(value.get(where[0], {}), where[1:], new)
    return None if below is None else {**value, where[0]: below}


def lack(value: dict[str, Any], where: tuple[str, ...]) -> dict[str, Any]:
    if where[0] not in value:
        return value
    if len(where) == 1:
        return {key: each for key, each in value.items() if key != where[0]}
    return {**value, where[0]: lack(value[where[0]], where[1:])}


def is_in(part: str, whole: str) -> bool:
    """Whether all characters of a text are in another one, in their order."""
    rest = iter(whole)
    return all(character in rest for character in part)


def get(value: Any, where: tuple[str, ...]) -> Any:
    for key in where:
        value = value.get(key) if isinstance(value, dict) else None
    return value


@given(layouts(objects), paths, json_values.filter(lambda value: value is not None))
def test_what_is_put_is_there_and_nothing_else_changed(
    layout: tuple[Any, str], where: tuple[str, ...], new: Any
) -> None:
    value, text = layout
    expected = change(value, where, new)
    if expected is None:
        with pytest.raises(ConfigError, match="must be an object"):
            put(text, where, new)
        return
    after = put(text, where, new)
    assert read_document(after, "f").value == expected
    assert put(after, where, new) == after


@given(layouts(objects), paths, inner)
def test_a_new_member_leaves_every_character_and_goes_without_a_trace(
    layout: tuple[Any, str], where: tuple[str, ...], new: Any
) -> None:
    value, text = layout
    if change(value, where, new) is None or get(value, where) is not None:
        return
    after = put(text, where, new)
    assert is_in(text, after)
    made = next(where[:depth] for depth in range(1, len(where) + 1) if get(value, where[:depth]) is None)
    assert remove(after, made) == text


@given(layouts(objects), st.data())
def test_what_is_removed_is_gone_and_nothing_was_added(layout: tuple[Any, str], data: st.DataObject) -> None:
    value, text = layout
    where: tuple[str, ...] = ()
    below = value
    while isinstance(below, dict) and below and (not where or data.draw(st.booleans())):
        where = (*where, data.draw(st.sampled_from(list(below))))
        below = below[where[-1]]
    after = remove(text, where or ("a",))
    assert read_document(after, "f").value == lack(value, where or ("a",))
    assert is_in(after, text)
    assert remove(after, where or ("a",)) == after


# As people would ------------------------------------------------------------------------------------------------------


def test_a_server_is_put_behind_the_others_with_their_indentation_and_commas() -> None:
    expected = PEOPLE.replace(
        "    }, // its end\n",
        "    }, // its end\n"
        '    "c": {\n'
        '      "command": "y",\n'
        '      "args": ["-m", "z"],\n'
        '      "env": {\n'
        '        "K": "v"\n'
        "      }\n"
        "    },\n",
    )
    assert put(PEOPLE, ("mcpServers", "c"), SERVER) == expected


@pytest.mark.parametrize(
    ("text", "where", "value", "expected"),
    [
        ("{}", ("a",), 1, '{\n  "a": 1\n}'),
        ('{"m": {}}\n', ("m", "a"), 1, '{"m": {\n  "a": 1\n}}\n'),
        ("{}", ("m", "a"), {}, '{\n  "m": {\n    "a": {}\n  }\n}'),
        ("{ // none\n}", ("a",), 1, '{ // none\n  "a": 1\n}'),
        ("{ /* none */ }", ("a",), 1, '{ /* none */\n  "a": 1\n}'),
        ("{\n}", ("a",), 1, '{\n  "a": 1\n}'),
        ('{"a": 1}', ("b",), {"x": [1]}, '{"a": 1, "b": {"x": [1]}}'),
        ('{"a": 1,}', ("b",), 2, '{"a": 1, "b": 2,}'),
        ('{"a": 1 /* one */ }', ("b",), 2, '{"a": 1, /* one */ "b": 2 }'),
        ('{"a": 1 // one\n}', ("b",), 2, '{"a": 1, // one\n"b": 2\n}'),
        ('{\r\n\t"a": 1\r\n}', ("b",), {"x": 1}, '{\r\n\t"a": 1,\r\n\t"b": {\r\n\t\t"x": 1\r\n\t}\r\n}'),
        ('{\n    "a": {\n        "x": 1 }}', ("a", "y"), 2, '{\n    "a": {\n        "x": 1,\n        "y": 2 }}'),
        ('{\n"a": 1,\n"b": 2\n}', ("c",), {"x": 1}, '{\n"a": 1,\n"b": 2,\n"c": {\n  "x": 1\n}\n}'),
        ('\ufeff{"a": 1}', ("a",), 2, '\ufeff{"a": 2}'),
        ('{\n  "a": 1 // one\n}', ("a",), [{"x": 1}], '{\n  "a": [\n    {\n      "x": 1\n    }\n  ] // one\n}'),
        ('{"a": {"x": 1, /* two */ "y": 2}}', ("a",), {"y": 2, "z": 3}, '{"a": {/* two */ "y": 2, "z": 3}}'),
        ('{"a": 1}', ("a",), True, '{"a": true}'),
        ('{"a": 1.0}', ("a",), 1.0, '{"a": 1.0}'),
    ],
)
def test_a_value_is_put_as_its_neighbours_stand(text: str, where: tuple[str, ...], value: Any, expected: str) -> None:
    assert put(text, where, value) == expected


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ('{"a": 1, "b": 2, "c": 3}', ("a",), '{"b": 2, "c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', ("b",), '{"a": 1, "c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', ("c",), '{"a": 1, "b": 2}'),
        ('{ "a": 1, "b": 2, }', ("b",), '{ "a": 1, }'),
        ('{"a": 1, /* b */ "b": 2}', ("a",), '{/* b */ "b": 2}'),
        ('{ "a": 1, }', ("a",), "{}"),
        ('{\n  "a": 1\n}', ("a",), "{}"),
        ('{ // none\n  "a": 1\n}', ("a",), "{ // none\n}"),
        ('{\n  // above\n  "a": 1, // own\n  // below\n  "b": 2\n}', ("a",), '{\n  // above\n  // below\n  "b": 2\n}'),
        ('{\n  "a": 1, // one\n  "b": 2 // two\n}', ("b",), '{\n  "a": 1 // one\n}'),
        ('{\n  "a": 1, // one\n  "b": 2 }', ("b",), '{\n  "a": 1 // one\n }'),
        ('{\n  "a": 1,\n  "b": 2 }', ("b",), '{\n  "a": 1 }'),
        ('{\r\n  "a": 1, // one\r\n  "b": 2\r\n}', ("b",), '{\r\n  "a": 1 // one\r\n}'),
        ('{\n  "a": 1, "b": 2\n}', ("a",), '{\n  "b": 2\n}'),
        ('{\n  "z": 0,\n  "a": 1, "b": 2\n}', ("a",), '{\n  "z": 0,\n  "b": 2\n}'),
        ('{ "a": 1\n, "b": 2 // two\n, "c": 3\n}', ("b",), '{ "a": 1\n,\n "c": 3\n}'),
        ('{"a": 1}', ("b",), '{"a": 1}'),
        ('{"a": 1}', ("b", "c"), '{"a": 1}'),
    ],
)
def test_a_member_goes_with_what_is_on_its_line(text: str, where: tuple[str, ...], expected: str) -> None:
    assert remove(text, where) == expected


@pytest.mark.parametrize(
    ("text", "where", "line", "words"),
    [
        ("", ("a",), 1, "empty"),
        ('{"a": 1\n', ("a",), 2, "ends before"),
        ('{"m": {},\n"m": {}}', ("m", "a"), 2, r"m: the key is written twice \(first on line 1\)"),
        ('{"m": {"a": 1,\n"a": 2}}', ("m", "a"), 2, "m.a: the key is written twice"),
        ("\n[]", ("a",), 2, "must be an object"),
        ('{\n"m": []}', ("m", "a"), 2, "m: must be an object"),
        ('{\n"m": null}', ("m", "a"), 2, "m: must be an object"),
    ],
)
def test_what_would_be_a_guess_is_refused_with_its_line(
    text: str, where: tuple[str, ...], line: int, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        put(text, where, {}, "f.json")
    assert (caught.value.path, caught.value.line) == ("f.json", line)
    with pytest.raises(ConfigError, match=words) as caught:
        remove(text, where, "f.json")
    assert (caught.value.path, caught.value.line) == ("f.json", line)


def test_a_key_that_is_written_twice_elsewhere_hinders_nobody() -> None:
    assert put('{"x": {"k": 1, "k": 2}, "y": 1}', ("y",), 2) == '{"x": {"k": 1, "k": 2}, "y": 2}'
