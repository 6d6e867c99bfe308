"""From what a server listed to a catalogue: validation, names, differences, snapshots."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import msgspec
import pytest

from actors.catalogue import lists as validation
from actors.catalogue.diff import MAX_COMPARED_BYTES, MAX_REMEMBERED, Change, compare, merge_renames
from actors.catalogue.documents import MAX_PARAMETERS, Said, documents, parameters_of
from actors.catalogue.names import Resolved, Unknown
from actors.catalogue.offer import MAX_DESCRIPTION, Offer, decode_offer, encode_offer
from actors.catalogue.snapshot import Catalogue, Entry, compare_entries
from actors.catalogue.tool_rules import ToolRules
from actors.search.index import Index
from tests.fakes.pages import offer_of


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"a": schema}
    return schema


# Validation -----------------------------------------------------------------------------------------------------------


def test_a_tool_keeps_its_own_definition_and_what_ranking_needs() -> None:
    schema = {"type": "object", "properties": {"p": {"description": "d"}}, "required": ["p"]}
    definition = {"name": "t", "title": "T", "description": "D", "inputSchema": schema, "annotations": {"x": 1}, "y": 2}
    (tool,) = offer_of(definition).tools
    assert json.loads(bytes(tool.definition)) == definition
    assert (tool.name, tool.title, tool.description, tool.required) == ("t", "T", "D", ("p",))
    assert parameters_of(tool) == (("p", "d"),)
    assert json.loads(bytes(tool.input_schema)) == schema


@pytest.mark.case("L09", "L16")
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (7, "object"),
        ({}, "name"),
        ({"name": 1}, "name"),
        ({"name": ""}, "empty"),
        ({"name": "x" * 257}, "256"),
        ({"name": "a\u200bb"}, "invisible"),
        ({"name": "a\nb"}, "invisible"),
        ({"name": " a"}, "spaces"),
        ({"name": "a", "inputSchema": "{}"}, 'inputSchema is "{}"'),
        ({"name": "a", "inputSchema": {"type": "string"}}, ""),
        ({"name": "a", "inputSchema": None}, ""),
        ({"name": "a", "inputSchema": nested(126)}, ""),
        ({"name": "a", "_meta": nested(200)}, "128 levels"),
        ({"name": "a", "inputSchema": nested(127)}, "128 levels"),
        ({"name": "a", "description": "x" * 1024 * 1024}, "1048576 bytes"),
    ],
)
def test_a_bad_tool_is_left_out_with_a_reason_and_the_others_stay(entry: Any, reason: str) -> None:
    offer = offer_of(entry, {"name": "good"})
    if not reason:
        assert [tool.name for tool in offer.tools] == ["a", "good"]
        return
    assert [tool.name for tool in offer.tools] == ["good"]
    assert re.match(r"tool 1( \('.*'\))? left out: ", offer.problems[0])
    assert reason in offer.problems[0]


def test_a_definition_that_closes_more_than_it_opens_is_no_json() -> None:
    with pytest.raises(validation.Unusable, match="not JSON"):
        validation.tool(msgspec.Raw(b"[" * 200 + b"]" * 201))


@pytest.mark.case("L12")
def test_of_two_tools_of_one_name_the_first_stays() -> None:
    offer = offer_of({"name": "a", "description": "first"}, {"name": "a", "description": "second"})
    assert [tool.description for tool in offer.tools] == ["first"]
    assert "a second tool of the name 'a'" in offer.problems[0]


def test_parameters_are_found_one_level_deep_and_are_bounded() -> None:
    inner = {"properties": {"deep": {"description": "found", "properties": {"deeper": {}}}}}
    schema = {"properties": {"list": {"items": inner}, "object": inner, "odd": 7}, "required": ["list", 7]}
    (tool,) = offer_of({"name": "a", "inputSchema": schema}).tools
    assert [name for name, _ in parameters_of(tool)] == ["list", "deep", "object", "deep", "odd"]
    assert tool.required == ("list",)
    wide: dict[str, Any] = {"properties": {f"p{number}": {} for number in range(1000)}}
    assert len(parameters_of(offer_of({"name": "a", "inputSchema": wide}).tools[0])) == MAX_PARAMETERS


@pytest.mark.case("L15")
def test_long_descriptions_are_cut_but_the_definition_is_not() -> None:
    (tool,) = offer_of({"name": "a", "description": "x" * 20_000}).tools
    assert len(tool.description) == MAX_DESCRIPTION
    assert len(json.loads(bytes(tool.definition))["description"]) == 20_000


def test_resources_templates_and_prompts_are_read_too() -> None:
    offer = offer_of(
        resources=[{"uri": "x:1", "name": "n", "mimeType": "text/plain"}, {"name": "no uri"}, {"uri": "x:\n"}],
        templates=[{"uriTemplate": "x:{a}", "name": "n"}],
        prompts=[{"name": "p", "description": "d"}, {"name": ""}],
    )
    assert [(one.uri, one.mime_type, one.template) for one in offer.resources] == [("x:1", "text/plain", False)]
    assert [(one.uri, one.template) for one in offer.templates] == [("x:{a}", True)]
    assert [one.name for one in offer.prompts] == ["p"]
    assert [problem.split(" left")[0] for problem in offer.problems] == [
        "resource 2 ('no uri')",
        "resource 3 ('x:\\\\n')",
        "prompt 2",
    ]


def test_an_offer_survives_the_store() -> None:
    offer = offer_of(
        {"name": "a"}, {"name": "b", "annotations": {"x": 1}}, resources=[{"uri": "x:1"}], prompts=[{"name": "p"}]
    )
    kept = decode_offer(encode_offer(offer))
    assert [bytes(tool.annotations) for tool in kept.tools] == [b"", b'{"x": 1}']
    assert not compare(offer, kept)
    assert encode_offer(decode_offer(encode_offer(offer))) == encode_offer(offer)


WHOLE = {"title": "T", "description": "D", "annotations": {"x": 1}, "_meta": {"y": 2}}


@pytest.mark.parametrize(
    "definition",
    [
        {**WHOLE, "inputSchema": {"type": "object"}},
        {"inputSchema": {"type": "object"}},
        {"inputSchema": {"type": "object"}, "title": "t" * 300, "description": "\u00fc" * 20_000},
        {"description": None},
        WHOLE,
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_tool_comes_back_from_the_store_as_it_was_read(definition: Any, separators: tuple[str, str]) -> None:
    made = validation.tool(msgspec.Raw(json.dumps({"name": "a", **definition}, separators=separators).encode()))
    (kept,) = decode_offer(encode_offer(Offer(tools=(made,)))).tools
    assert (kept, kept.description) == (made, (definition.get("description") or "")[:MAX_DESCRIPTION])


def test_what_a_definition_says_is_saved_once_and_nothing_else_of_what_is_saved_stays_in_memory() -> None:
    told = {"name": "a", **WHOLE, "description": "D" * 1000, "inputSchema": {"type": "object"}}
    written = msgspec.json.encode(told)
    offer = Offer(tools=(validation.tool(msgspec.Raw(written)),), answer=msgspec.Raw(b'{"x":1}'))
    saved = encode_offer(offer)
    assert len(saved) < len(written) + 200
    known = sys.getrefcount(saved)
    kept = decode_offer(saved)
    assert (kept, sys.getrefcount(saved)) == (offer, known)


# Differences ----------------------------------------------------------------------------------------------------------


def test_a_difference_names_what_came_went_and_changed_and_how() -> None:
    before = offer_of({"name": "gone"}, {"name": "same"}, {"name": "other", "description": "a"}, {"name": "odd"})
    after = offer_of({"name": "same"}, {"name": "other", "description": "b"}, {"name": "new"}, {"name": "odd", "x": 1})
    change = compare(before, after)
    assert change.tools == Change(
        added=("new",),
        removed=("gone",),
        changed=("odd", "other"),
        fields={"other": ("description",), "odd": ("definition",)},
    )
    assert not change.resources
    assert change


def described(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "description": "Says where the nearest shelter is.", **more}


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        pytest.param([described("a")], [described("b")], {"a": "b"}, id="one"),
        pytest.param(
            [described("a"), {"name": "c", "description": "other"}],
            [{"name": "d", "description": "other"}, described("b")],
            {"a": "b", "c": "d"},
            id="two",
        ),
        pytest.param([described("a")], [described("b", outputSchema={})], {}, id="another definition"),
        pytest.param([described("a")], [described("a"), described("b")], {}, id="a copy"),
        pytest.param([described("a")], [described("b"), described("c")], {}, id="either of two"),
        pytest.param([described("a"), described("b")], [described("c")], {}, id="of either of two"),
        pytest.param([{"name": "a"}], [{"name": "b"}], {}, id="nothing that tells one from another"),
        pytest.param([described("a")], [], {}, id="gone"),
        pytest.param([described("a", x="y" * MAX_COMPARED_BYTES)], [described("b", x="y" * MAX_COMPARED_BYTES)], {},
                     id="too much to compare"),
    ],
)  # fmt: skip
def test_a_tool_that_has_another_name_is_known_by_its_definition(
    before: list[dict[str, object]], after: list[dict[str, object]], moves: dict[str, str]
) -> None:
    old, new = offer_of(*before), offer_of(*after)
    change = compare(old, new).tools
    assert change.renamed == moves
    assert {*moves} <= {*change.removed}
    assert {*moves.values()} <= {*change.added}


@pytest.mark.parametrize(
    ("known", "fresh", "names", "then"),
    [
        ({"a": "b"}, {"b": "c"}, ["c"], {"a": "c", "b": "c"}),
        ({"a": "b"}, {}, ["b", "x"], {"a": "b"}),
        ({"a": "b"}, {}, ["a", "b"], {}),
        ({"a": "b"}, {}, ["x"], {}),
        ({"a": "b"}, {"b": "a"}, ["a"], {"b": "a"}),
        ({}, {str(n): "x" for n in range(MAX_REMEMBERED + 1)}, ["x"], {str(n + 1): "x" for n in range(MAX_REMEMBERED)}),
    ],
)
def test_names_that_changed_are_remembered_as_long_as_they_say_something(
    known: dict[str, str], fresh: dict[str, str], names: list[str], then: dict[str, str]
) -> None:
    assert merge_renames(known, fresh, names) == then


def test_counts_and_problems_are_no_difference() -> None:
    before = offer_of({"name": "a"})
    after = msgspec.structs.replace(before, token_counts={"a": 1}, problems=("x",))
    assert not compare(before, after)


def test_templates_count_as_resources() -> None:
    change = compare(Offer(), offer_of(templates=[{"uriTemplate": "x:{a}"}]))
    assert change.resources.added == ("x:{a}",)


# Snapshots ------------------------------------------------------------------------------------------------------------

EMPTY = Catalogue(index=Index.empty())


def entry(server: str, *tools: str, available: bool = True, **lists: Any) -> Entry:
    return Entry.make(server, "stdio", offer_of(*({"name": name} for name in tools), **lists), available=available)


def with_(catalogue: Catalogue, *entries: Entry) -> Catalogue:
    changed = {one.server: one for one in entries}
    return catalogue.with_entries(changed, catalogue.index, compare_entries(catalogue.entries, changed))[0]


def revisions(catalogue: Catalogue) -> tuple[int, int, int, int]:
    found = catalogue
    return (found.revision, found.revisions.tools, found.revisions.resources, found.revisions.prompts)


def test_revisions_move_by_what_a_client_can_see() -> None:
    first = with_(EMPTY, entry("s", "a"))
    assert revisions(first) == (1, 1, 0, 0)
    assert revisions(with_(first, entry("s", "a"))) == (1, 1, 0, 0)
    second = with_(first, entry("s", "a", prompts=[{"name": "p"}]))
    assert revisions(second) == (2, 1, 0, 1)
    hidden = with_(second, entry("s", "a", available=False))
    assert revisions(hidden) == (3, 2, 0, 2)
    assert revisions(with_(hidden, entry("s", "b", available=False))) == (3, 2, 0, 2)
    assert revisions(with_(hidden, entry("s", "a"))) == (4, 3, 0, 2)
    assert revisions(first) == (1, 1, 0, 0)


def test_several_servers_at_once_are_one_revision_in_sorted_order() -> None:
    found = with_(EMPTY, entry("t", "a"), entry("s", "b"))
    assert (found.revision, list(found.entries)) == (1, ["s", "t"])


def test_a_removed_server_is_gone_and_its_change_is_told() -> None:
    found, change = with_(EMPTY, entry("s", "a"), entry("t", "b")).without("s", Index.empty())
    assert (list(found.entries), found.revision, change.tools.removed) == (["t"], 2, ("a",))


def test_removing_a_hidden_server_changes_nothing_that_is_seen() -> None:
    found, change = with_(EMPTY, entry("s", "a", available=False)).without("s", Index.empty())
    assert (list(found.entries), found.revision, bool(change)) == ([], 0, False)


def test_counts_are_filled_in_without_a_revision() -> None:
    found = with_(EMPTY, entry("s", "a")).with_counts("s", {"a": 7}, exact=True)
    assert found.entries["s"].offer.token_counts == {"a": 7}
    assert (found.revision, found.tool("s:a")) == (1, Resolved("s", "a"))


def test_a_problem_is_noted_once_without_a_revision() -> None:
    before = with_(EMPTY, entry("s", "a"))
    found = before.with_problem("s", "too many words")
    assert (found.entries["s"].offer.problems, revisions(found)) == (("too many words",), revisions(before))
    assert found.with_problem("s", "too many words") is found
    assert found.with_problem("gone", "too many words") is found


def test_a_tool_is_found_by_any_of_its_names_even_if_hidden() -> None:
    found = with_(EMPTY, entry("s", "a-b", "c"), entry("s-a", "d", available=False))
    for path, expected in {"s:a-b": "a-b", "s-a-b": "a-b", "mcp__s__c": "c", "s-a:d": "d", "s-a-d": "d"}.items():
        tool = found.tool(path)
        assert isinstance(tool, Resolved)
        assert tool.name == expected
    assert found.tool("c") == Unknown()
    assert found.visible == {"s"}


def test_the_nearest_tools_are_visible_ones() -> None:
    found = with_(EMPTY, entry("git", "log", "status"), entry("gut", "log", available=False))
    assert found.nearest("git:lgo")[0] == "git:log"
    assert not any(path.startswith("gut") for path in found.nearest("gut:log"))


def test_documents_cover_all_that_is_offered() -> None:
    offer = offer_of(
        {"name": "t"}, resources=[{"uri": "x:1"}], templates=[{"uriTemplate": "x:{a}"}], prompts=[{"name": "t"}]
    )
    kinds = {document.key: document.kind for document in documents("s", offer)}
    assert kinds == {"s:t": "tool", "s|x:1": "resource", "s|x:{a}": "template", "s:t#prompt": "prompt"}
    assert all(document.instructions == "read me" for document in documents("s", offer)[:1])


def test_a_tool_is_asked_for_by_the_sentences_of_what_its_server_declares_whatever_clients_see_of_it() -> None:
    def said(server: str, tool: Any) -> Said:
        return Said((f"{tool.name} among {server}",), "file")

    made = Entry.make("s", "stdio", offer_of({"name": "t"}), phrases=said)
    seen = made.with_rules(ToolRules(rename={"t": "u"}))
    (document,) = documents("s", seen.offer, phrases=seen.phrases)
    assert (document.name, document.said) == ("u", ("t among s",))
    assert "among" in seen.segment.known
