"""Several needs in one discover: a page that they share fairly, rows once, and what is said where something lacks."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.errors import InvalidArguments
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.arguments import MAX_NEEDS, discover
from supervisor.metatools.discovery import DiscoverySettings, cut
from supervisor.metatools.texts import estimate_tokens
from tests.supervisor.metatools.test_discovery import ask, catalogue, named

DEEDS = ("create", "delete", "list", "rename", "search")
THINGS = ("invoice", "calendar", "photo", "repository", "song", "table", "ticket", "wallet", "garden", "parcel")
LARGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        f"{thing}_{number}": {"type": "string", "description": f"The {thing} of number {number}, as it was."}
        for thing in THINGS
        for number in range(3)
    },
}
MANY = catalogue(
    **{thing: named(*(f"{deed}_{thing}" for deed in DEEDS)) for thing in THINGS},
    large=[{**tool, "inputSchema": LARGE} for tool in named("draw_map", "paint_wall", "carve_stone")],
)
NEEDS = st.lists(
    st.sampled_from([*(f"{deed} a {thing}" for deed in DEEDS for thing in THINGS), "draw a map", "paint a wall", "*"]),
    min_size=2,
    max_size=MAX_NEEDS,
    unique=True,
)


def several(*queries: str, **more: Any) -> Any:
    return ask(queries[0], queries=[*queries[1:]], **more)


def rows_by_need(answer: Any) -> dict[int, list[str]]:
    """Return the paths of a page by the needs that they are for, counted from 1."""
    found: dict[int, list[str]] = {number + 1: [] for number in range(len(answer["queries"]))}
    asked: list[int] = []
    for row in answer["tools"]:
        asked = row.get("queries", asked)
        for number in asked:
            found[number].append(row["tool_path"])
    return found


@given(NEEDS, st.sampled_from([None, 10, 12, 30, 50]), st.sampled_from([700, 2000]))
def test_a_page_is_shared_fairly_and_no_row_is_there_twice(needs: list[str], limit: int | None, budget: int) -> None:
    more = {} if limit is None else {"limit": limit}
    answer = several(*needs, seen=MANY, budget=budget, **more)
    paths = [row["tool_path"] for row in answer["tools"]]
    assert len(set(paths)) == len(paths) <= (limit or max(10, 3 * len(needs)))
    found = rows_by_need(answer)
    assert all(found.values()), "each has a row"
    assert [answer["queries"][number - 1] for number in found] == needs
    for number, need in enumerate(needs, 1):
        alone = [row["tool_path"] for row in ask(need, MANY, limit=50)["tools"]]
        assert found[number][0] in alone[:1] or need == "*" or alone[0] in paths
    assert answer == {**several(*needs, seen=MANY, budget=budget, **more), "search_time_ms": answer["search_time_ms"]}
    if budget > 700:
        assert estimate_tokens(encode(answer).decode()) <= budget


LETTERS = ("x", "\u00e9", "\u4e2d", "\U0001f600", "_", "-9", "aB", '"')
VERBS = ("create", "delete", "list", "rename", "search", "draw", "bake", "play", "ride", "swim")


@given(
    st.lists(st.sampled_from(LETTERS), min_size=10, max_size=10),
    st.lists(st.sampled_from([0, 20, 60, 120, 250]), min_size=10, max_size=10),
    st.integers(2, MAX_NEEDS),
    st.booleans(),
    st.integers(0, MAX_NEEDS),
)
@settings(max_examples=25)
def test_names_of_any_length_leave_a_page_within_its_budget(
    letters: list[str], lengths: list[int], count: int, same: bool, lists: int
) -> None:
    servers = dict[str, Any]()
    for verb, letter, length in zip(VERBS, letters, lengths, strict=True):
        much = (letter * length)[:length]
        parameters = {f"{number}{much}": {"type": "string"} for number in range(30)}
        schema = {"type": "object", "properties": parameters, "required": [*parameters][:9]}
        tools = [f"{verb}_{'thing' if same else verb}_{much}"[:250] + str(number) for number in range(4)]
        servers[verb] = [
            {"name": name, "description": f"To {verb} a thing. {much}", "inputSchema": schema} for name in tools
        ]
    needs = [f"{verb} a thing" for verb in VERBS[:count]]
    needs[:lists] = [f"{verb}:*" for verb in VERBS[: min(lists, count)]]
    answer = several(*needs, seen=catalogue(**servers))
    assert estimate_tokens(encode(answer).decode()) <= 2000
    found = rows_by_need(answer)
    assert all(found[number] for number in range(lists + 1, count + 1) if lengths[number - 1] <= 20)
    for number in range(1, count + 1):
        said = answer.get("notice", "")
        assert found[number] or re.search(rf"rows of queries [0-9, ]*\b{number}\b|'{VERBS[number - 1]}:\*': 0 of", said)


def test_of_needs_with_long_names_as_many_are_shown_as_fit() -> None:
    servers = {verb: named(f"{verb}_thing_" + 100 * "\u4e2d") for verb in VERBS}
    answer = several(*(f"{verb} a thing" for verb in VERBS), seen=catalogue(short=named("swim_thing"), **servers))
    assert 1 < len(answer["tools"]) < len(VERBS)
    assert "short:swim_thing" in rows_by_need(answer)[10]
    assert re.search(
        r"Too long for this page by their names: rows of queries [0-9, ]+; ask these alone", answer["notice"]
    )
    (row,) = ask("create a thing", catalogue(create=named("create_" + 240 * "\u4e2d")), budget=1000)["tools"]
    assert row["tool_path"].startswith("create:create_")
    assert "signature" not in row


def test_the_first_rows_of_each_are_those_of_the_need_alone_with_the_schema_of_the_best() -> None:
    answer = several("create an invoice", "delete a song", seen=MANY)
    found = rows_by_need(answer)
    for number, need in enumerate(answer["queries"], 1):
        alone = ask(need, MANY)["tools"]
        assert found[number][:3] == [row["tool_path"] for row in alone[:3]]
        (best,) = [row for row in answer["tools"] if row["tool_path"] == found[number][0]]
        assert best["inputSchema"] == alone[0]["inputSchema"]


def test_what_one_need_does_not_use_goes_to_the_others() -> None:
    answer = several("invoice:create_invoice", "list songs", seen=MANY, limit=6)
    found = rows_by_need(answer)
    assert (len(found[1]), len(found[2])) == (1, 5)
    assert "inputSchema" in answer["tools"][0]


def test_schemas_share_what_is_left_and_one_that_has_no_room_is_named() -> None:
    answer = several("draw a map", "paint a wall", "create an invoice", seen=MANY, budget=1700)
    schemas = {row["tool_path"] for row in answer["tools"] if "inputSchema" in row}
    best = {"large:draw_map", "large:paint_wall", "invoice:create_invoice"}
    assert "invoice:create_invoice" in schemas
    wanting = best - schemas
    assert len(wanting) == 1
    assert f"Long inputSchema: {wanting.pop()}; a path alone as query gives it." in answer["notice"]


def test_a_path_is_named_whole_or_not_at_all() -> None:
    long = f"draw_map_{'of_a_country_' * 6}"
    large = [{**tool, "inputSchema": LARGE} for tool in named(long, "paint_wall")]
    asked = ("draw a map of a country", "paint a wall")
    assert (
        f"Long inputSchema: a:{long}, a:paint_wall;" in several(*asked, seen=catalogue(a=large), budget=700)["notice"]
    )
    longer = [{**tool, "inputSchema": LARGE} for tool in named("draw_map_" + 60 * "\u4e2d", "paint_wall")]
    notice = several("draw a map", "paint a wall", seen=catalogue(a=longer), budget=1100)["notice"]
    assert "Long inputSchema: a:paint_wall and 1 more;" in notice


def test_a_need_without_a_tool_is_named_and_has_one_row_at_most() -> None:
    answer = several("create an invoice", "qqqq zzzz", "bake xyzzy bread", seen=MANY)
    assert answer["notice"].startswith("No description matches 'qqqq zzzz' and 'bake xyzzy bread' well.")
    assert "Servers:" not in answer["notice"]
    assert all(len(rows) <= 1 for number, rows in rows_by_need(answer).items() if number > 1)
    none = several("qqqq zzzz", "yyyy xxxx", seen=MANY)
    assert "Ask for what a tool should do" in none["notice"]


def test_lists_are_needs_too_and_the_first_that_is_not_over_goes_on() -> None:
    answer = several("invoice:*", "create a song", "photo:*", seen=MANY, limit=9)
    found = rows_by_need(answer)
    assert found[1] == ["invoice:create_invoice", "invoice:delete_invoice", "invoice:list_invoice"]
    assert "'invoice:*': 3 of 5; for the rest ask it alone with 'cursor' set to next_cursor." in answer["notice"]
    assert "'photo:*': 3 of 5; for the rest ask it alone." in answer["notice"]
    rest = ask("invoice:*", MANY, cursor=answer["next_cursor"])
    assert [row["tool_path"] for row in rest["tools"]] == ["invoice:rename_invoice", "invoice:search_invoice"]
    with pytest.raises(InvalidArguments, match="'cursor' goes on with one list"):
        several("invoice:*", "photo:*", seen=MANY, cursor=answer["next_cursor"])
    assert "next_cursor" not in several("invoice:*", "photo:*", seen=MANY)


def test_an_unknown_server_and_one_that_is_down_are_told_of_once() -> None:
    answer = several("nowhere:*", "gone:*", "create issue", "list gone tools")
    assert answer["notice"] == "gone is being discovered; tell the user. There is no server 'nowhere'."
    assert rows_by_need(answer)[3][:2] == ["git-lab:create_issue", "github:create_issue"]
    assert several("fetch:*", "fetch:*", "crawler:*", kinds=["prompt"])["notice"].startswith("Nothing to list for")


@pytest.mark.parametrize(
    ("written", "needs"),
    [
        ({"query": "a", "queries": ["b", "c"]}, ["a", "b", "c"]),
        ({"queries": ["a", "b"]}, ["a", "b"]),
        ({"queries": "a"}, ["a"]),
        ({"queries": '["a", "b"]'}, ["a", "b"]),
        ({"queries": [{"query": "a"}, {"q": "b"}, {}, None]}, ["a", "b"]),
        ({"query": "Read  a File", "queries": ["read a file ", "", "b", "B"]}, ["Read  a File", "b"]),
        ({"query": "", "queries": ["a"]}, ["a"]),
        ({"query": "a", "queries": []}, ["a"]),
        ({"query": "a", "queries": None}, ["a"]),
        ({"query": ["a", "b"], "queries": ["c"]}, ["a b", "c"]),
        ({"queries": [""]}, [""]),
    ],
)
def test_needs_are_read_generously_and_each_once(written: Any, needs: list[str]) -> None:
    asked = discover(msgspec.Raw(json.dumps(written).encode()), 50)
    assert [asked.query, *asked.further] == needs


@pytest.mark.parametrize("queries", [7, ["a", 7], [["a"]], [{"limit": 3}]])
def test_what_is_no_list_of_needs_is_refused(queries: Any) -> None:
    with pytest.raises(InvalidArguments, match="'queries' must be a list of strings"):
        ask("a", queries=queries)


def test_so_many_needs_are_answered_and_no_more() -> None:
    assert len(several(*map(str, range(MAX_NEEDS)))["queries"]) == MAX_NEEDS
    for count in (MAX_NEEDS + 1, 200):
        with pytest.raises(InvalidArguments, match=f"{count} needs at once, {MAX_NEEDS} are the most"):
            ask("", queries=[*map(str, range(count))])


@pytest.mark.parametrize(("limit", "used"), [(1, 3), (3, 3), (4, 4), (500, 50)])
def test_the_limit_counts_all_needs_together_and_leaves_a_row_for_each(limit: int, used: int) -> None:
    answer = several("create issue", "fetch a page", "search code", limit=limit)
    said = f"'limit' goes from 3 to 50 with 3 needs, which share them: {used} was taken."
    assert (said in answer.get("notice", "")) == (limit != used)
    assert len(answer["tools"]) <= used


def test_the_characters_of_all_needs_together_are_bounded() -> None:
    wanted = discover(msgspec.Raw(json.dumps({"query": "short", "queries": ["b" * 90, "c" * 900]}).encode()), 50)
    kept = cut(wanted, DiscoverySettings(max_query_chars=105))
    assert [kept.query, *kept.further] == ["short", "b" * 50, "c" * 50]


def test_one_need_is_answered_as_ever() -> None:
    alone = ask("create issue")
    assert ask("create issue", queries=["Create  Issue"]) == alone == ask("", queries=["create issue"])
    assert "queries" not in alone
