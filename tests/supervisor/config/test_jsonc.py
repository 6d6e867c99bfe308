"""JSON with comments: values, lines, duplicates, and errors that say where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config import jsonc
from supervisor.config.jsonc import MAX_VALUES, ConfigText, read_document, show_path

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def outcome(text: str) -> ConfigText | ConfigError:
    try:
        return read_document(text, "f.json")
    except ConfigError as error:
        return error


@given(json_values, st.sampled_from([None, 2]))
def test_every_json_text_reads_as_the_standard_library_reads_it(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert read_document(text, "f").value == json.loads(text)


@given(st.text() | st.text(alphabet='{}[]",:/*\n\\ u0e1-.tfn'))
def test_garbage_raises_only_config_errors_that_name_file_and_line(text: str) -> None:
    lines = text.count("\n") + 1
    match outcome(text):
        case ConfigError(path=path, line=int(line)):
            assert path == "f.json"
            assert 1 <= line <= lines
        case ConfigText(lines=found):
            assert all(1 <= line <= lines for line in found.values())
        case other:
            raise AssertionError(other)


def test_comments_trailing_commas_and_a_byte_order_mark_are_accepted_and_lines_stay_right() -> None:
    text = '\ufeff// first\n{ /* a\nb */\n "a": [1, // one\n  2,],\n "url": "http://x/*y*/",\n}\n// end'
    document = read_document(text, "f")
    assert document.value == {"a": [1, 2], "url": "http://x/*y*/"}
    assert document.lines == {(): 2, ("a",): 4, ("a", 0): 4, ("a", 1): 5, ("url",): 6}


def test_the_line_of_an_absent_key_is_that_of_its_parent() -> None:
    document = read_document('{\n"a": {\n"b": 1}}', "f")
    assert document.line(("a", "b")) == 3
    assert document.line(("a", "missing", "deeper")) == 2
    assert document.line(("missing",)) == 1


def test_a_key_written_twice_is_reported_with_both_lines() -> None:
    document = read_document('{"a": {\n"b": 1,\n"c": 2,\n"b": 3}}', "f")
    assert document.duplicates == ((("a", "b"), 4),)
    assert document.line(("a", "b")) == 2


def test_a_text_with_more_values_than_any_configuration_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_VALUES == 200_000
    monkeypatch.setattr(jsonc, "MAX_VALUES", 1000)
    assert len(read_document("[" + "0," * 998 + "0]", "f").value) == 999
    with pytest.raises(ConfigError, match=r"^f:1: more than 1000 values \(column 2000\)"):
        read_document("[" + "0," * 1000 + "]", "f")


def test_a_syntax_error_repeats_nothing_of_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        read_document('{"env": {"TOKEN": sk-canary-1}}', "f")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ((), ""),
        (("mcpServers", "github", "args", 2), "mcpServers.github.args[2]"),
        (("servers", "my server", "env", "A"), 'servers["my server"].env.A'),
        (("a.b",), '["a.b"]'),
        (("evil\x1b[31m",), '["evil\\u001b[31m"]'),
    ],
)
def test_a_key_path_is_shown_as_people_write_it(path: tuple[str | int, ...], shown: str) -> None:
    assert show_path(path) == shown
