"""Variables in texts, and env files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config.expansion import Reference, expand, expand_home, is_env_name, parse_env_file, split

ENVIRON = {"A": "alpha", "EMPTY": "", "HOME": "/home/me", "NESTED": "${A}"}


def escape(text: str) -> str:
    """Return text that `expand` turns into `text` again."""
    return text.replace("${", "$${")


def outcome(text: str) -> str:
    """Return the expanded text or the hint of the error."""
    try:
        return expand(text, ENVIRON)
    except ConfigError as error:
        return error.hint or pytest.fail("an error without a hint")


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("plain $A $ $$ $5 {A}", "plain $A $ $$ $5 {A}"),
        ("${A}", "alpha"),
        ("x${A}${A}y", "xalphaalphay"),
        ("${env:A}", "alpha"),
        ("${env:B:-b}", "b"),
        ("${A:-b}", "alpha"),
        ("${B:-b c:-d}", "b c:-d"),
        ("${B:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-full}", "full"),
        ("${userHome}${/}x${pathSeparator}", "/home/me/x/"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("${NESTED}", "${A}"),
    ],
)
def test_references_are_replaced_once(text: str, expanded: str) -> None:
    assert expand(text, ENVIRON) == expanded


@given(st.text())
def test_an_escaped_text_expands_to_itself(text: str) -> None:
    assert expand(escape(text), {}) == text


@given(st.text(), st.text(), st.text())
def test_a_variable_is_data_and_expands_to_exactly_its_value(before: str, value: str, after: str) -> None:
    before = escape(before).rstrip("$")
    assert expand(before + "${V}" + escape(after), {"V": value}) == expand(before, {}) + value + after


@given(st.text(alphabet="${}:-aA/_env") | st.text())
def test_any_text_expands_or_raises_a_config_error(text: str) -> None:
    assert isinstance(outcome(text), str)


def test_a_leading_tilde_is_the_home_directory_and_nothing_else_is() -> None:
    assert expand_home("~/x", ENVIRON) == "/home/me/x"
    assert expand_home("~", ENVIRON) == "/home/me"
    assert expand_home("~other/x", ENVIRON) == "~other/x"
    assert expand_home("a~/x", ENVIRON) == "a~/x"
    with pytest.raises(ConfigError, match="HOME is not set"):
        expand_home("~/x", {})


def test_an_env_file_gives_its_variables_literally() -> None:
    text = "\ufeff# comment\n\nA=1\nexport B = two words \nC='x y'\nD=\"q\"\nE=\nF=${A}=1\nG='"
    assert parse_env_file(text, "p").values == {
        "A": "1", "B": "two words", "C": "x y", "D": "q", "E": "", "F": "${A}=1", "G": "'",
    }  # fmt: skip


@pytest.mark.parametrize("line", ["canary", "=canary", "A canary=1", "A\x01=canary"])
def test_another_line_of_an_env_file_is_an_error_with_its_number(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_env_file(f"A=1\n{line}\n", "p.env")
    assert (caught.value.path, caught.value.line) == ("p.env", 2)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "good"), [("A", True), ("a-b.c(1)", True), ("", False), ("A=B", False), ("A B", False)]
)
def test_names_of_variables_have_no_blanks_and_no_equals_sign(name: str, good: bool) -> None:
    assert is_env_name(name) is good


# Values of teams and users --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("plain ${A}", ("plain alpha",)),
        ("${user:X}", (Reference("user", "X"),)),
        ("${team:X:-}", (Reference("team", "X", ""),)),
        ("a${user:X:-b:-c}${A}d", ("a", Reference("user", "X", "b:-c"), "alphad")),
        ("${team:X}${user:X}", (Reference("team", "X"), Reference("user", "X"))),
        ("$${user:X}${A}$${", ("${user:X}alpha${",)),
        ("${userHome}", ("/home/me",)),
    ],
)
def test_places_for_values_stay_and_all_else_is_replaced(text: str, parts: tuple[str | Reference, ...]) -> None:
    assert split(text, ENVIRON) == parts
