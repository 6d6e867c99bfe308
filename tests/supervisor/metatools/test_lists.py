"""Lists for a model: pages within a budget, cursors that outlive changes, everything once, filters, totals."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.catalogue.offer import Offer, Prompt, Resource, Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import InvalidArguments
from actors.protocol.wire.json import quoted
from actors.protocol.wire.jsonrpc import encode
from actors.search.index import Index
from benchmarks.discovery import discover_at_once
from supervisor.metatools import inventory
from supervisor.metatools.arguments import ResourceQuery, discover, list_resources
from supervisor.metatools.discovery import DiscoverySettings
from supervisor.metatools.lists import resources_page
from supervisor.metatools.page import Context
from supervisor.tokens.counting import Tiktoken, load_encoding
from tests.fakes.json_texts import raw


def catalogue(**offers: Offer) -> Catalogue:
    entries = {name: Entry.make(name, "stdio", offer) for name, offer in sorted(offers.items())}
    return Catalogue(entries=entries, index=Index.empty(), indexed=True)


def tools(count: int, letter: str = "t") -> tuple[Tool, ...]:
    schema = raw({"properties": {"owner": {"type": "string"}, "n": {"type": "integer"}}})
    return tuple(
        Tool(
            name=f"{letter}_{n * 7919 % count:04}",
            described=quoted(f"Do {n}. " * 40),
            input_schema=schema,
            required=("owner",),
        )
        for n in range(count)
    )


def resources(count: int, **more: Any) -> tuple[Resource, ...]:
    return tuple(
        Resource(uri=f"file:///{n}", name=f"r{n}", definition=raw({"uri": "x", "size": n}), **more)
        for n in range(count)
    )


MANY = catalogue(a=Offer(tools=tools(300)), b=Offer(), c=Offer(tools=tools(250, "u"), resources=resources(9)))


def ask(seen: Catalogue, query: str | None = "*", budget: int = 2000, **more: Any) -> Any:
    wanted = discover(raw({**({} if query is None else {"query": query}), **more}), 50)
    return json.loads(
        encode(discover_at_once(seen, {}, wanted, DiscoverySettings(discover_token_budget=budget), lambda: 0.0))
    )


def walk(seen: Catalogue, query: str | None = "*", **more: Any) -> list[Any]:
    pages = [ask(seen, query, **more)]
    while "next_cursor" in pages[-1]:
        assert len(pages) < 200
        pages.append(ask(seen, query, **{**more, "cursor": pages[-1]["next_cursor"]}))
    return pages


def paths(pages: list[Any]) -> list[str]:
    return [row.get("tool_path") or row.get("uri") or row["prompt"] for page in pages for row in page["tools"]]


@pytest.mark.parametrize("query", ["*", "server:*", None])
def test_550_tools_are_listed_completely_and_each_once(query: str | None) -> None:
    pages = walk(
        MANY, query, **({"cursor": inventory.encode_cursor(inventory.Position("", 0, ""))} if not query else {})
    )
    listed_paths = paths(pages)
    assert len(listed_paths) == len(set(listed_paths)) == 550
    assert listed_paths == sorted(listed_paths)
    assert {page["total_found"] for page in pages} == {550}
    counter = Tiktoken(load_encoding())
    assert all(counter.count(encode(page).decode()) <= 2000 for page in pages)
    assert len(pages[0]["tools"]) > 20
    done = 0
    for page in pages:
        here = len(page["tools"])
        assert page["notice"].startswith(f"{done + 1} to {done + here} of 550")
        done += here
    assert pages[-1]["notice"].endswith("550 of 550, the end.")
    assert sum(counter.count(encode(page).decode()) for page in pages) < 550 * 60


def test_a_page_of_a_list_fills_its_budget() -> None:
    deeds = ("list", "create", "update", "delete", "search_all", "get")
    things = ("repository_permissions", "merge_request", "kubernetes_deployment", "observations", "file", "tables")
    schema = raw({"properties": {"repository": {"type": "string"}, "page": {"type": "integer"}}})
    tools = tuple(
        Tool(
            name=f"{deed}_{thing}_{of}",
            described=quoted(f"{deed.title()} the {thing} of a {of} with the permissions that it has"),
            input_schema=schema,
            required=("repository",),
        )
        for deed in deeds
        for thing in things
        for of in ("user", "organisation", "project", "workspace")
    )
    pages = walk(catalogue(service=Offer(tools=tools)))
    count = Tiktoken(load_encoding()).count
    full = [count(encode(page).decode()) for page in pages[:-1]]
    assert len(full) > 2
    assert all(1600 <= tokens <= 2000 for tokens in full)


def test_a_line_with_long_names_says_no_more_than_the_name() -> None:
    long = Tool(name="do", required=tuple(f"{number}{60 * chr(0x1F600)}" for number in range(6)))
    (row,) = ask(catalogue(a=Offer(tools=(long,))), budget=1000)["tools"]
    assert row["tool_path"] == "a:do"
    assert "signature" not in row


def test_a_long_cursor_is_part_of_the_budget() -> None:
    tools = tuple(Tool(name=f"{n:03}_" + "describe_table_" * 16, described=quoted("Do it. " * 20)) for n in range(40))
    count = Tiktoken(load_encoding()).count
    pages = walk(catalogue(service=Offer(tools=tools)))
    assert len(pages) == 3
    assert all(count(encode(page).decode()) <= 2000 for page in pages)


def test_a_line_of_a_list_is_short_and_has_the_members_of_a_hit() -> None:
    first, second, *_ = ask(MANY)["tools"]
    for row, name in ((first, "t_0000"), (second, "t_0001")):
        assert row == {
            "tool_path": f"a:{name}",
            "description": row["description"],
            "server_name": "a",
            "transport": "stdio",
            "relevance_score": 0.0,
            "signature": "(owner, ...)",
        }
        assert len(row["description"]) < 70


@pytest.mark.parametrize("query", ["c:*", "server:c", "c/", "server: c"])
def test_one_server_is_listed_completely(query: str) -> None:
    assert paths(walk(MANY, query)) == [f"c:u_{n:04}" for n in range(250)]
    assert paths(walk(MANY, "", server="c")) == [f"c:u_{n:04}" for n in range(250)]


def test_a_limit_counts_where_it_is_given_and_only_there() -> None:
    pages = walk(MANY, "*", limit=7)
    assert {len(page["tools"]) for page in pages[:-1]} == {7}
    assert len(set(paths(pages))) == 550
    assert len(ask(MANY, "*", budget=100_000)["tools"]) == inventory.MAX_ITEMS


def test_kinds_are_listed_too() -> None:
    prompts = (Prompt(name="p2"), Prompt(name="p1", description="A prompt."))
    seen = catalogue(a=Offer(tools=tools(2), prompts=prompts, resources=resources(2)), b=Offer(resources=resources(1)))
    assert paths(walk(seen, "*", kinds="all", limit=1)) == [
        *("a:t_0000", "a:t_0001", "a|file:///0", "a|file:///1", "a-p1", "a-p2", "b|file:///0"),
    ]
    assert paths(walk(seen, "*", kinds=["resource"])) == ["a|file:///0", "a|file:///1", "b|file:///0"]


def test_a_cursor_goes_on_after_the_catalogue_changed() -> None:
    first = ask(MANY, limit=10)
    shown = paths([first])
    gone = tuple(tool for tool in MANY.entries["a"].tools.values() if tool.name not in ("t_0009", "t_0010"))
    new = (Tool(name="t_0000a"), Tool(name="t_0011a"))
    later = catalogue(a=Offer(tools=(*gone, *new)), c=MANY.entries["c"].offer)
    rest = paths(walk(later, cursor=first["next_cursor"]))
    assert rest[:3] == ["a:t_0011", "a:t_0011a", "a:t_0012"]
    assert not set(rest) & set(shown)
    without = catalogue(c=MANY.entries["c"].offer)
    assert paths(walk(without, cursor=first["next_cursor"]))[0] == "c:u_0000"


@pytest.mark.parametrize(
    "cursor", ["x", "é", "AAAA", "A" * 5000, 5, ["a"], inventory.encode_cursor(inventory.Position("a", 9, ""))]
)
def test_a_cursor_that_is_none_of_ours_is_refused(cursor: Any) -> None:
    with pytest.raises(InvalidArguments, match="cursor"):
        ask(MANY, cursor=cursor)
    with pytest.raises(InvalidArguments, match="cursor"):
        list_resources(raw({"cursor": cursor}))


def test_a_cursor_is_for_lists_and_not_for_searches() -> None:
    cursor = ask(MANY)["next_cursor"]
    with pytest.raises(InvalidArguments, match=r"must be '\*' or 'server:\*'"):
        ask(MANY, "do something", cursor=cursor)


def test_a_cursor_is_bounded_however_long_a_uri_is() -> None:
    long = tuple(Resource(uri=f"file:///{'x' * 5000}{n}", name=str(n)) for n in range(30))
    pages = walk(catalogue(a=Offer(resources=long)), "*", kinds=["resource"], limit=4)
    assert len(set(paths(pages))) == 30
    assert all(len(page["next_cursor"]) < 800 for page in pages[:-1])


# Resources ------------------------------------------------------------------------------------------------------------


def listed(seen: Catalogue, budget: int = 2000, **more: Any) -> Any:
    context = Context(seen=seen, statuses={}, budget=budget, now=0.0)
    asked = list_resources(raw(more))
    return json.loads(encode(resources_page(context, asked, asked.servers or seen.visible, "")))


def test_3000_resources_are_listed_completely_within_the_budget() -> None:
    template = Resource(uri="x://{a}", name="t", template=True)
    seen = catalogue(a=Offer(resources=resources(3000), templates=(template,)), b=Offer(resources=resources(3)))
    pages = [listed(seen)]
    while "next_cursor" in pages[-1]:
        pages.append(listed(seen, cursor=pages[-1]["next_cursor"]))
    uris = [row["uri"] for page in pages for row in page["resources"]]
    assert len(uris) == len(set(uris)) == 3003
    assert [row["uriTemplate"] for page in pages for row in page["resource_templates"]] == ["a|x://{a}"]
    assert {(page["total_resources"], page["total_templates"]) for page in pages} == {(3003, 1)}
    counter = Tiktoken(load_encoding())
    assert all(counter.count(encode(page).decode()) <= 2000 for page in pages[:10])


def test_a_model_gets_what_a_resource_says_of_itself() -> None:
    item = Resource(
        uri="file:///1",
        name="r1",
        title="The first",
        description="All\u200b of it",
        mime_type="text/plain",
        meta=raw({"ui": {"resourceUri": "ui://a"}}),
        definition=raw({"uri": "file:///1", "size": 17}),
    )
    assert listed(catalogue(s=Offer(resources=(item,)))) == {
        "resources": [
            {
                "uri": "s|file:///1",
                "name": "r1",
                "title": "The first",
                "description": "All of it",
                "mimeType": "text/plain",
                "size": 17,
                "server": "s",
                "_meta": {"ui": {"resourceUri": "s|ui://a"}},
            }
        ],
        "resource_templates": [],
        "total_resources": 1,
        "total_templates": 0,
    }


def test_resources_are_filtered_by_server_and_by_words() -> None:
    seen = catalogue(
        a=Offer(resources=(Resource(uri="file:///Notes", name="n", description="Of today"), *resources(3))),
        b=Offer(resources=(Resource(uri="file:///x", name="notes of today"),)),
    )
    assert [row["uri"] for row in listed(seen, query="notes today")["resources"]] == ["a|file:///Notes", "b|file:///x"]
    found = listed(seen, query="today", server="b")
    assert ([row["uri"] for row in found["resources"]], found["total_resources"]) == (["b|file:///x"], 1)
    assert listed(seen, query="tomorrow")["total_resources"] == 0
    assert "notice" not in found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"server": "a"}, "a offers no resources; its tools: discover_mcp_tools with 'a:*'."),
        ({"server": "b", "query": "weather"}, "b offers no resources."),
        (
            {"server": ["a", "b"]},
            "No resource is offered by these servers; discover_mcp_tools with '*' lists the tools.",
        ),
        ({"query": "weather"}, "No resource of any server has all of the words 'weather'; "),
        ({"server": "c", "query": "Bad weather"}, "No resource of c has all of the words 'bad weather'; "),
    ],
)
def test_where_no_resource_is_found_that_is_said(asked: Any, said: str) -> None:
    answer = listed(MANY, **asked)
    assert answer["notice"].startswith(said)
    assert answer["resources"] == answer["resource_templates"] == []
    assert "notice" not in listed(MANY, server="c")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, ResourceQuery()),
        (None, ResourceQuery()),
        ("notes", ResourceQuery(words=("notes",))),
        ({"q": "Two Words", "server_name": " git "}, ResourceQuery(words=("two", "words"), servers=frozenset({"git"}))),
        ({"query": "*", "cursor": ""}, ResourceQuery()),
    ],
)
def test_a_list_is_asked_for_in_many_ways(written: Any, expected: ResourceQuery) -> None:
    assert list_resources(raw(written)) == expected


@pytest.mark.parametrize("definition", [b"5", b'{"size":"x"}', b'{"size":1.5}', b"[" * 5000])
def test_a_size_that_is_none_is_left_out(definition: bytes) -> None:
    item = Resource(uri="x", name="x", definition=msgspec.Raw(definition))
    assert "size" not in listed(catalogue(a=Offer(resources=(item,))))["resources"][0]
