"""JSON as texts: any value as somebody may write it, and what a text says, with its numbers as they were written."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import msgspec
from hypothesis import strategies as st


def raw(value: Any) -> msgspec.Raw:
    """Return a value as JSON, as it comes over a wire."""
    return msgspec.Raw(json.dumps(value).encode())


class Number(str):
    """A number as it was written: `1.0` is not `1`."""


def read(text: bytes) -> Any:
    """Return what a text says: objects are tuples of pairs in their order, numbers are `Number`s."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=tuple)


def members(text: bytes) -> dict[str, Any]:
    """Return the members of an object, in their order, read like that."""
    return dict(read(text))


NUMBERS = st.one_of(
    st.integers().map(str),
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", "-"]),
        st.integers(0, 10**41 - 1),
        st.one_of(st.just(""), st.builds(".{}{}".format, st.sampled_from(["", "00"]), st.integers(0, 10**38 - 1))),
        st.one_of(
            st.just(""),
            st.builds("{}{}".format, st.sampled_from(["e", "E", "e+", "E+", "e-", "E-", "e0"]), st.integers(0, 99_999)),
        ),
    ),
)
STRINGS = st.builds(
    lambda value, escaped: json.dumps(value, ensure_ascii=escaped),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.booleans(),
)
SPACE = st.sampled_from(["", "", "", " ", "\n\t"])


def _array(items: list[str], space: str) -> str:
    return f"[{space}" + f"{space},{space}".join(items) + f"{space}]"


def _object(pairs: list[tuple[str, str]], space: str) -> str:
    return f"{{{space}" + f"{space},{space}".join(f"{key}{space}:{space}{value}" for key, value in pairs) + f"{space}}}"


def objects(
    values: st.SearchStrategy[str], always: Collection[str] = (), /, **more: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    """Texts of objects with any members that have such values; `more`: some that may be there, too, or `always` are."""
    any_pairs = st.lists(st.tuples(STRINGS, values), max_size=2)
    named = []
    for name, value in more.items():
        pair = st.tuples(st.just(json.dumps(name)), value)
        named.append(pair if name in always else st.one_of(st.none(), pair))
    pairs = st.tuples(any_pairs, *named).map(lambda drawn: [*drawn[0], *(pair for pair in drawn[1:] if pair)])
    distinct = pairs.map(lambda drawn: list({json.loads(pair[0]): pair for pair in drawn}.values()))
    return st.builds(_object, distinct.flatmap(st.permutations), SPACE)


VALUES: st.SearchStrategy[str] = st.recursive(
    st.one_of(st.sampled_from(["null", "true", "false", '"structuredContent"', '"audio"']), NUMBERS, STRINGS),
    lambda inner: st.one_of(st.builds(_array, st.lists(inner, max_size=4), SPACE), objects(inner)),
    max_leaves=6,
)
OBJECTS = objects(VALUES)


def arrays(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts of arrays."""
    return st.builds(_array, st.lists(items, max_size=4), SPACE)
