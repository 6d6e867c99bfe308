"""What is known of a tool: declared over inferred, and never safer than its words."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.lists import Unusable, tool
from actors.catalogue.metadata import MAX_TAGS, Metadata, describe, describe_all, is_superseded
from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Entry
from actors.protocol.wire.json import quoted
from actors.search.index import Index
from actors.search.search import find

GOOD = "Does a thing with the things you name."


def declared(name: str = "do_thing", description: str = GOOD, **members: Any) -> Tool:
    """Return a tool as `validation` makes it of what a server lists."""
    members.setdefault("inputSchema", {"type": "object"})
    return tool(msgspec.Raw(json.dumps({"name": name, "description": description, **members}).encode()))


def known(name: str = "do_thing", description: str = GOOD, **members: Any) -> Metadata:
    return describe("acme", declared(name, description, **members))


def codes(metadata: Metadata) -> list[str]:
    return [finding.code for finding in metadata.findings]


def test_a_tool_without_declarations_gets_what_its_words_suggest() -> None:
    found = known("search_files", "Searches files by name.")
    assert (found.category, found.safety, found.complexity) == ("file-system", "safe", "simple")
    assert found.annotations.read_only_hint is True
    assert found.annotations.destructive_hint is False
    assert found.annotations.title == "Search files"
    assert found.inferred == ("title", "readOnlyHint", "destructiveHint", "category", "complexity")
    assert found.tags == ("file-system", "read-only")
    assert found.findings == ()


def test_what_the_server_declares_wins() -> None:
    annotations = {"title": "Seek", "readOnlyHint": False, "destructiveHint": False, "openWorldHint": True}
    found = known("search_files", "Searches files by name.", annotations=annotations)
    hints = found.annotations
    assert (hints.title, hints.read_only_hint, hints.destructive_hint) == ("Seek", False, False)
    assert (hints.idempotent_hint, hints.open_world_hint) == (None, True)
    assert found.safety == "moderate"
    assert found.inferred == ("category", "complexity")


@pytest.mark.case("X05")
@pytest.mark.parametrize(
    ("name", "annotations", "expected"),
    [
        ("delete_all", {}, ("dangerous", True)),
        ("list_all", {}, ("safe", False)),
        ("do_it", {}, ("moderate", False)),
        ("do_it", {"readOnlyHint": True}, ("safe", False)),
        ("do_it", {"destructiveHint": True}, ("dangerous", True)),
        ("list_all", {"destructiveHint": True}, ("dangerous", True)),
        ("list_all", {"readOnlyHint": True, "destructiveHint": True}, ("dangerous", True)),
        ("delete_all", {"readOnlyHint": True}, ("moderate", True)),
        ("delete_all", {"destructiveHint": False}, ("moderate", True)),
        ("list_all", {"requiresConfirmation": True}, ("safe", True)),
        ("list_all", {"requiresConfirmation": "yes"}, ("safe", False)),
    ],
)
def test_a_declaration_never_makes_a_tool_safer_than_its_words(
    name: str, annotations: dict[str, Any], expected: tuple[str, bool]
) -> None:
    found = known(name, annotations=annotations)
    assert (found.safety, found.requires_confirmation) == expected


def test_a_read_only_tool_is_not_destructive_and_a_destructive_one_not_read_only() -> None:
    assert known("do_it", annotations={"readOnlyHint": True}).annotations.destructive_hint is False
    assert known("list_it", annotations={"destructiveHint": True}).annotations.read_only_hint is False
    assert known("set_it", annotations={"readOnlyHint": True}).annotations.idempotent_hint is None


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        ({"readOnlyHint": True, "destructiveHint": True}, "hints-contradict"),
        ({"readOnlyHint": True}, "hints-doubtful"),
        ({"destructiveHint": False}, "hints-doubtful"),
        ({"destructiveHint": "no"}, "definition-form"),
        ({"openWorldHint": 1}, "definition-form"),
    ],
)
def test_declarations_that_cannot_be_right_are_findings(annotations: dict[str, Any], code: str) -> None:
    assert codes(known("delete_all", annotations=annotations)) == [code]


def test_category_complexity_tags_and_deprecation_can_be_declared() -> None:
    meta = {"category": "Billing", "complexity": "medium", "tags": ["Money", 3, "", "x" * 100], "deprecated": True}
    for where in ("annotations", "_meta"):
        members: dict[str, Any] = {where: meta}
        found = known(**members)
        assert (found.category, found.complexity, found.deprecated) == ("billing", "moderate", True)
        assert found.tags == ("billing", "deprecated", "money")
        assert found.inferred == ("title",)


def test_hints_outside_the_annotations_mean_nothing() -> None:
    assert known(_meta={"readOnlyHint": True, "title": "Safe"}).annotations.read_only_hint is None


def test_declared_tags_are_bounded() -> None:
    found = known(annotations={"tags": [f"t{number}" for number in range(100)]})
    assert len(found.tags) == MAX_TAGS


def test_a_schema_can_deprecate_its_tool() -> None:
    assert known(inputSchema={"type": "object", "deprecated": True}).deprecated
    assert not known().deprecated


def test_the_server_s_own_schema_is_judged_not_the_repaired_one() -> None:
    repaired = declared(inputSchema={"properties": {"a": {}, "b": {}, "c": {}}})
    assert b'"type"' in bytes(repaired.input_schema)
    found = describe("acme", repaired)
    assert codes(found) == ["schema-type"]
    assert found.complexity == "moderate"


def test_a_tool_without_a_schema_is_said_to_have_none() -> None:
    raw = msgspec.Raw(json.dumps({"name": "do_thing", "description": GOOD}).encode())
    assert codes(describe("acme", tool(raw))) == ["schema-missing"]


def test_names_that_can_be_mistaken_for_each_other_are_found() -> None:
    twins = [declared("read_file"), declared("readFile"), declared("re\u0430d-file"), declared("write_it")]
    described = describe_all("acme", twins)
    assert [name for name, metadata in described.items() if "name-duplicate" in codes(metadata)] == [
        "read_file",
        "readFile",
        "re\u0430d-file",
    ]
    (message,) = [one.message for one in described["readFile"].findings if one.code == "name-duplicate"]
    assert "'read_file'" in message
    assert "\\u0430" in message
    assert message.isascii()


def test_warnings_are_counted_without_notes() -> None:
    found = known("execute", "x" * 600 + " more words")
    assert set(codes(found)) == {"name-reserved", "description-long", "description-words"}
    assert found.warnings == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "$ref", "pattern", "title", "tags", "category", "readOnlyHint", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.text(max_size=30), st.text(max_size=60), json_values, json_values, json_values)
def test_whatever_a_server_lists_is_described(name: str, description: str, schema: Any, hints: Any, meta: Any) -> None:
    body = {"name": name, "description": description, "inputSchema": schema, "annotations": hints, "_meta": meta}
    try:
        entry = tool(msgspec.Raw(json.dumps(body).encode()))
    except Unusable:
        raw = msgspec.Raw(json.dumps(schema).encode())
        entry = Tool(
            name=name, described=quoted(description), input_schema=raw, annotations=raw, meta=raw, definition=raw
        )
    found = describe("acme", entry)
    assert all(one.message.isascii() and one.message.isprintable() for one in found.findings)
    assert len(codes(found)) == len(set(codes(found)))
    if found.annotations.destructive_hint:
        assert found.safety == "dangerous"


def test_a_very_deep_schema_is_a_finding_not_an_error() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50):
        deep = {"properties": {"a": deep}, "type": "object"}
    assert codes(known(inputSchema=deep)) == ["schema-depth"]
    endless = b'{"a":' * 5000 + b"1" + b"}" * 5000
    assert codes(describe("acme", Tool(name="a_b", described=quoted(GOOD), input_schema=msgspec.Raw(endless)))) == [
        "schema-missing"
    ]


def test_of_a_schema_over_64_kib_only_the_texts_are_looked_at() -> None:
    found = known(inputSchema={"type": "object", "required": 3, "properties": {"a": {"description": "x" * 70_000}}})
    assert codes(found) == ["schema-size"]
    found = known(inputSchema={"type": "object", "properties": {"a": {"description": "\u200b" + "x" * 70_000}}})
    assert codes(found) == ["schema-size", "text-hidden"]


@pytest.mark.parametrize(
    "old",
    [
        {"description": "Reads a file as text. DEPRECATED: use read_text_file instead."},
        {"description": "Reads a file as text.", "_meta": {"deprecated": True}},
        {"description": "Reads a file as text.", "inputSchema": {"type": "object", "deprecated": True}},
    ],
)
def test_a_deprecated_tool_is_found_behind_the_one_to_be_used_instead(old: dict[str, Any]) -> None:
    kept = {
        "name": "read_text_file",
        "description": "Reads the contents of a file, whole or in parts, in any encoding, as text.",
    }

    def first(*definitions: dict[str, Any]) -> str:
        tools = tuple(tool(msgspec.Raw(json.dumps(each).encode())) for each in definitions)
        index = Index.empty().rebuild([Entry.make("files", "stdio", Offer(tools=tools)).segment])
        return find(index, "read a file").hits[0].document.name

    assert first({"name": "read_file", "description": "Reads a file as text."}, kept) == "read_file"
    assert first({"name": "read_file", **old}, kept) == "read_text_file"


def test_a_tool_of_a_server_that_is_deprecated_as_a_whole_is_found_as_before() -> None:
    said = "Reads a file as text. NOTE: this server is deprecated and no longer receives work."
    old = tool(msgspec.Raw(json.dumps({"name": "read_file", "description": said}).encode()))
    assert not is_superseded(old, frozenset({"read_file", "read_text_file"}))
