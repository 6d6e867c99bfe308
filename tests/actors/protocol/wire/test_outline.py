"""Where the parts of a JSON text are: the same as a real reader finds, whatever the text holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.wire import outline as module
from actors.protocol.wire.outline import MalformedJson, Outline, Span, extent

TEXTS = st.text(alphabet='ab"\\{}[],:é ', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max((depth(part) for part in parts), default=0)


def members(text: bytes) -> dict[bytes, Span]:
    found = Outline(text, 3, 100)
    return found.members(found.root())


@given(
    many=st.lists(VALUES, max_size=5),
    one=VALUES,
    indent=st.sampled_from([None, 1]),
    escaped=st.booleans(),
    piece=st.integers(1, 40),
)
def test_parts_are_found_as_a_reader_finds_them(
    many: list[Any], one: Any, indent: int | None, escaped: bool, piece: int
) -> None:
    text = json.dumps({"many": many, "one": one}, indent=indent, ensure_ascii=escaped).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE_BYTES", piece)
        found = Outline(text, 2, 10_000)
        members = found.members(found.root())
        elements, whole = found.elements(members[b"many"])
        assert whole
        assert [json.loads(found.take(element)) for element in elements] == many
        assert json.loads(found.take(members[b"one"])) == one
        assert extent(text).depth == depth({"many": many, "one": one})


@pytest.mark.parametrize("text", [b"", b"7", b"[", b"]", b'{"a":[1}', b'{"a":"}', b'{"a":[1]'])
def test_what_does_not_match_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        members(text)


def test_a_member_whose_name_cannot_be_told_is_left_out() -> None:
    assert members(b'{"\\u0061":1,"b":2,3,"' + b"c" * 300 + b'":4}') == {b"b": Span(16, 17)}


def test_a_text_with_too_many_parts_is_cut_and_what_comes_before_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 16)
    text = json.dumps({"first": 1, "list": list(range(1000))}).encode()
    found = Outline(text, 2, 20)
    members = found.members(found.root())
    elements, whole = found.elements(members[b"list"])
    assert not whole
    numbers = [json.loads(found.take(element)) for element in elements]
    assert numbers == list(range(len(numbers)))
    assert 0 < len(numbers) < 1000


def test_no_depth_is_too_deep() -> None:
    text = b'{"a":[' + b"[" * 1_000_000 + b"]" * 1_000_000 + b",1]}"
    found = Outline(text, 2, 100)
    elements, _ = found.elements(found.members(found.root())[b"a"])
    assert found.take(elements[1]) == b"1"
    assert extent(text).depth == 1_000_002


def test_an_extent_counts_what_is_not_in_strings() -> None:
    assert extent(b'{"a,b":"{,,,","c":[1,2,[3]]}') == (3, 9)
