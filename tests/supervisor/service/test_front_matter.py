"""Front matter of a `SKILL.md` held against the entry of its skill, by whatever reader of YAML that was made."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it has no types
from hypothesis import given
from hypothesis import strategies as st

from supervisor.service.skills import MAX_BYTES, is_that


def skill(front: str) -> bytes:
    return f"---\n{front}\n---\n# Text\n".encode()


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("a: b", {"a": "b"}),
        ('a: "b"\nc: [1, 2.50]', {"a": "b", "c": [1, 2.5]}),
        ("a: >-\n  one\n  two\nb: |\n  x\n", {"a": "one two", "b": "x\n"}),
        ("a: yes", {"a": True}),
        ("a: yes", {"a": "yes"}),
        ("a: 012", {"a": 10}),
        ("a: 012", {"a": 12}),
        ("a: 0x1F\nb: 1_000\nc: 1e3", {"a": 31, "b": 1000, "c": 1000.0}),
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: 2026-01-01", {"a": "2026-01-01T00:00:00.000Z"}),
        ("a: 1.10", {"a": 1.1}),
        ("a:\nb: ~", {"a": None, "b": None}),
        ("a: &x {b: c}\nd: *x", {"a": {"b": "c"}, "d": {"b": "c"}}),
        ("größe: 名前 😀", {"größe": "名前 😀"}),
        ("a: one\u2028two", {"a": "one\u2028two"}),
    ],
)
def test_what_a_reader_of_yaml_could_have_made_fits(front: str, said: Any) -> None:
    assert is_that(skill(front), said)
    assert is_that(b"\xef\xbb\xbf" + skill(front).replace(b"\n", b"\r\n"), said)


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("a: b", {"a": "c"}),
        ("a: b", {"a": "b", "c": "d"}),
        ("a: b\nc: d", {"a": "b"}),
        ("a: b\na: c", {"a": "c"}),
        ('a: "yes"', {"a": True}),
        ('a: "1"', {"a": 1}),
        ('a: "2026-01-01"', {"a": "2026-01-01T00:00:00Z"}),
        ("a: no", {"a": True}),
        ("a: 1", {"a": True}),
        ("a: [1]", {"a": [1, 2]}),
        ("a: b", ["a", "b"]),
        ("[a]: b", {"a": "b"}),
        ("a: b: c", {"a": "b: c"}),
        ("", {}),
    ],
)
def test_anything_else_does_not(front: str, said: Any) -> None:
    assert not is_that(skill(front), said)


@pytest.mark.parametrize(
    "data",
    [b"", b"a: b", b"---\na: b", b"--- a: b\n---\n", b"----\na: b\n---\n", skill("a: b\n" + "#" * MAX_BYTES)],
)
def test_what_has_no_front_matter_or_too_much_is_none(data: bytes) -> None:
    assert not is_that(data, {"a": "b"})


@pytest.mark.parametrize(
    "front",
    [
        "[" * 16_000,
        "- " * 8_000,
        "{a: " * 4_000,
        "? " * 8_000,
        "a: &a [*a, *a]",
        "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" if n else "a0: &a0 [x]" for n in range(99)),
        "!!python/object/apply:os.system [ls]",
        "%" * 99,
        "\x00",
    ],
)
def test_what_was_written_to_cost_much_does_not(front: str) -> None:
    assert not is_that(skill(front), {"a": [["x"]]})


TEXTS = st.text(st.characters(exclude_categories=("C", "Z")) | st.sampled_from(" \n"), max_size=20)


@given(
    st.dictionaries(
        st.text("abc_-", min_size=1, max_size=6),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXTS,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", min_size=1), inner, max_size=3),
            max_leaves=8,
        ),
        min_size=1,
    )
)
def test_what_was_written_by_a_writer_of_yaml_fits_itself_alone(said: dict[str, Any]) -> None:
    data = skill(yaml.safe_dump(said, allow_unicode=True).rstrip("\n"))
    assert is_that(data, said)
    assert is_that(skill(json.dumps(said, ensure_ascii=False)), said)
    assert not is_that(data, {**said, "more": 1})
