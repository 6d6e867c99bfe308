"""One discover, whole: what a query restricts itself to, whose tools come first, and how the page is filled."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest

from actors.catalogue.documents import documents
from actors.catalogue.lists import tool
from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue, Entry
from actors.protocol.wire.jsonrpc import encode
from actors.search.index import Index
from actors.search.segment import analyse
from benchmarks.discovery import discover_at_once
from supervisor.metatools.arguments import Discover, discover
from supervisor.metatools.discovery import DiscoverySettings
from tests.fakes import nasty_tools


def catalogue(*hidden: str, **servers: Any) -> Catalogue:
    """Return a catalogue of servers with these tools; `_` in a server's name stands for `-`."""
    entries: dict[str, Entry] = {}
    for name, tools in sorted(servers.items()):
        listed = tuple(tool(msgspec.Raw(json.dumps(one).encode())) for one in tools)
        server = name.replace("_", "-")
        entries[server] = Entry.make(server, "stdio", Offer(tools=listed), available=server not in hidden)
    index = Index.empty().rebuild(analyse(name, documents(name, entry.offer)) for name, entry in entries.items())
    return Catalogue(revision=3, entries=entries, index=index, indexed=True)


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "description": f"To {name.replace('_', ' ')}.", "inputSchema": {}} for name in names]


SEEN = catalogue(
    "gone",
    github=named("create_issue", "list_issues", "fork", "search_code"),
    git_lab=named("create_issue", "list_issues", "mirror_from_github"),
    fetch=named("get_page", "fetch"),
    crawler=named("fetch", "crawl_github"),
    gone=named("create_issue"),
)


def ask(query: str, seen: Catalogue = SEEN, budget: int = 2000, **more: Any) -> Any:
    wanted = discover(msgspec.Raw(json.dumps({"query": query, **more}).encode()), 50)
    clock = itertools.count(0, 0.002)
    settings = DiscoverySettings(discover_token_budget=budget)
    return json.loads(encode(discover_at_once(seen, {}, wanted, settings, lambda: next(clock))))


def paths(query: str, **more: Any) -> list[str]:
    return [row["tool_path"] for row in ask(query, **more)["tools"]]


def test_the_time_of_the_search_is_that_of_the_clock() -> None:
    assert ask("create issue")["search_time_ms"] == 2.0


@pytest.mark.parametrize(
    "query", ["server:github issues", "server: github issues", "server=GitHub issues", 'Server:"github" issues']
)
def test_a_query_may_restrict_itself_to_a_server(query: str) -> None:
    assert sorted(paths(query)) == ["github:create_issue", "github:list_issues"]


@pytest.mark.parametrize("query", ["server:git-lab", "git-lab:*", "git-lab/", "git_lab:", "gitlab__*", " git-lab: * "])
def test_all_tools_of_a_server_can_be_listed(query: str) -> None:
    answer = ask(query)
    listed = ["git-lab:create_issue", "git-lab:list_issues", "git-lab:mirror_from_github"]
    assert [row["tool_path"] for row in answer["tools"]] == listed
    assert answer["total_found"] == 3


@pytest.mark.parametrize("query", ["github", "GitHub", " github "])
def test_the_name_of_a_server_lists_its_tools_first_and_then_what_fits(query: str) -> None:
    answer = ask(query)
    found = [row["tool_path"] for row in answer["tools"]]
    assert {path.partition(":")[0] for path in found[:4]} == {"github"}
    assert "git-lab:mirror_from_github" in found[4:]
    scores = [row["relevance_score"] for row in answer["tools"]]
    assert scores == sorted(scores)
    assert answer["total_found"] >= len(found)


@pytest.mark.parametrize("query", ["list all tools of the git-lab server", "what can gitlab do?", "GitLab tools"])
def test_a_list_may_be_asked_for_in_words(query: str) -> None:
    answer = ask(query)
    assert [row["tool_path"] for row in answer["tools"]] == [row["tool_path"] for row in ask("git-lab:*")["tools"]]
    assert "notice" not in answer


def test_what_a_list_is_asked_of_may_not_be_a_tool() -> None:
    assert ask("github tools", kinds=["prompt"])["total_found"] == 0


@pytest.mark.parametrize("query", ["nosuch:*", "nosuch/*", "server:nosuch", "server: 'nosuch'"])
def test_a_list_of_a_server_that_is_not_there_says_which_there_are(query: str) -> None:
    answer = ask(query)
    assert (answer["tools"], answer["total_found"]) == ([], 0)
    assert answer["notice"].startswith("There is no server 'nosuch'. Servers: crawler ")


def test_a_misspelt_server_is_answered_with_the_nearest_name() -> None:
    assert ask("crawlre:*")["notice"].startswith("There is no server 'crawlre'; did you mean crawler? Servers: ")


def test_a_tool_that_is_called_like_a_server_stays_on_the_page() -> None:
    assert paths("fetch") == ["fetch:fetch", "fetch:get_page", "crawler:fetch"]
    assert paths("fetch", limit=2) == ["fetch:fetch", "crawler:fetch"]


def test_a_server_that_is_not_there_restricts_nothing() -> None:
    assert "github:create_issue" in paths("server:jira create issue")


def test_a_hidden_server_is_never_shown() -> None:
    for query in ("gone", "server:gone", "gone:*", "create issue", "*"):
        assert not any(path.startswith("gone:") for path in paths(query, limit=50))
    assert paths("create", server="gone") == []


def test_the_argument_server_filters_before_the_limit() -> None:
    assert paths("create issue", server="git-lab", limit=1) == ["git-lab:create_issue"]
    assert {path.partition(":")[0] for path in paths("issue", servers=["github", "git-lab"])} == {"github", "git-lab"}
    assert len(paths("", server="github")) == 4
    several = [f"unknown-{number}" for number in range(50)]
    assert ask("issue", servers=["jira", *several])["notice"] == ask("issue", servers=[*several, "jira"])["notice"]
    notice = ask("issue", servers=["jira", *several])["notice"]
    assert notice.startswith("There is no server 'jira'. No description matches")
    assert "Servers: crawler " in notice


def test_an_exact_path_is_no_server_filter() -> None:
    seen = catalogue(server=named("github", "other"), github=named("fork"))
    assert ask("server:github", seen)["tools"][0]["tool_path"] == "server:github"


def test_a_long_query_counts_to_its_end() -> None:
    chatter = "Thank you so much for being here with me on this fine day. " * 30
    assert paths(f"{chatter}Please fork it.")[0] == "github:fork"
    wanted = Discover(query=f"{chatter}Please fork it.")
    short = discover_at_once(SEEN, {}, wanted, DiscoverySettings(max_query_chars=100), lambda: 0.0)
    assert "github:fork" not in [row["tool_path"] for row in short["tools"]]


def test_ten_rows_have_a_line_however_large_the_first_schema_is() -> None:
    seen = catalogue(**nasty_tools.catalogue())
    for server, thing in nasty_tools.THINGS.items():
        for verb in nasty_tools.VERBS:
            rows = ask(f"{verb} {thing} {server}", seen, limit=11)["tools"]
            assert len(rows) >= 10, (verb, thing)
            assert all("inputSchema" in row or "signature" in row for row in rows)


def test_the_lines_of_others_shrink_before_the_first_schema_is_left_out() -> None:
    wordy = {**nasty_tools.SHAPES["plain"], "properties": {f"p{n}": {"type": "integer"} for n in range(60)}}
    tools = [
        {
            "name": f"make_{n}",
            "description": "Make it. " * 40,
            "inputSchema": wordy,
            "annotations": {"readOnlyHint": True},
        }
        for n in range(10)
    ]
    rows = ask("make", catalogue(maker=tools), limit=11)["tools"]
    assert len(rows) == 10
    assert "inputSchema" in rows[0]
    assert any(len(row["description"]) < 70 for row in rows[1:])
    assert not any("inputSchema" in row for row in rows[1:])


def test_texts_of_a_schema_are_shortened_where_the_whole_does_not_fit() -> None:
    seen = catalogue(a=[{"name": "do_it", "description": "Do it.", "inputSchema": nasty_tools.SHAPES["wordy"]}])
    whole = ask("a:do_it", seen, budget=900)["tools"][0]["inputSchema"]
    short = ask("do what", seen, budget=900)["tools"][0]["inputSchema"]
    wordy = nasty_tools.SHAPES["wordy"]["properties"]  # their titles only repeat their names
    assert whole["properties"] == {
        name: {key: value for key, value in schema.items() if key != "title"} for name, schema in wordy.items()
    }
    assert short["required"] == whole["required"]
    assert len(json.dumps(short)) < len(json.dumps(whole)) / 3


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("list the issues and send an email to Bob", "No description matches 'send an email to Bob' well."),
        ("send an email to Bob, then list the issues", "No description matches 'send an email to Bob' well."),
        (f"list the issues and mail {'x' * 70}@example.com to all", "No description matches 'mail ...' well."),
    ],
)
def test_a_need_of_several_for_which_there_is_nothing_is_named(query: str, said: str) -> None:
    answer = ask(query)
    assert answer["notice"] == said
    assert "list_issues" in answer["tools"][0]["tool_path"]


@pytest.mark.parametrize(
    "query",
    [
        "list the issues and create an issue",
        "list the issues and send an email" + " to everybody who has ever asked for one of them" * 4,
        "list the issues and book a flight and call a taxi and print a page",
        "list issues",
        "github:list_issues",
    ],
)
def test_where_every_need_has_a_tool_or_it_is_not_plain_nothing_is_said(query: str) -> None:
    assert "No description matches" not in ask(query).get("notice", "")


def test_several_needs_of_which_none_has_a_tool_are_answered_as_one() -> None:
    assert ask("send an email to Bob and book a flight")["notice"].startswith("No description matches. ")


@pytest.mark.parametrize(("limit", "used"), [(0, 1), (-1, 1), (51, 50), ("1e9", 50)])
@pytest.mark.parametrize("query", ["create issue", "*"])
def test_a_limit_that_cannot_be_taken_is_told_of_with_the_one_that_was(query: str, limit: Any, used: int) -> None:
    answer, taken = ask(query, limit=limit), ask(query, limit=used)
    said = f"'limit' goes from 1 to 50: {used} was taken."
    assert answer["notice"] == " ".join(filter(None, [said, taken.get("notice", "")]))
    assert answer["tools"] == taken["tools"]
    assert said not in taken.get("notice", "")


def test_an_empty_list_of_a_kind_says_that_there_is_none_of_it() -> None:
    assert ask("*", kinds=["skill"])["notice"] == "Nothing to list: no server offers a skill."
    assert ask("fetch:*", kinds=["prompt"])["notice"] == "Nothing to list: fetch offers no prompt."
