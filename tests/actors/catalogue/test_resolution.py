"""What names mean, over servers and tools whose names are made to be confused with each other."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.catalogue.names import (
    MAX_PATH_CHARS,
    Absent,
    Ambiguous,
    Meaning,
    Resolution,
    Resolved,
    ServerNames,
    Spellings,
    Undiscovered,
    Unknown,
    clip,
    namespaced_name,
    resolve,
    tool_path,
)
from actors.catalogue.offer import Offer, Prompt, Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.search.index import Index

Servers = Mapping[str, frozenset[str] | None]
"""What each server offers; None: nothing is known of it, as it was never started, failed, or is switched off."""

GIT: Servers = {
    "git": frozenset({"log", "hub:delete_repo", "lab:delete_repo", "hub-x", "Read", "read"}),
    "mcp__git": frozenset({"other"}),
    "git-hub": frozenset({"x", "y"}),
    "github": frozenset({"delete_repo", "create_issue", "create_issue()"}),
    "git.lab": frozenset({"x"}),
    "mcp": frozenset({"my_db__drop"}),
    "my-db": frozenset({"drop", "run_query"}),
    "new": None,
    "new-er": None,
}


def meaning(path: str, servers: Servers = GIT, also: Mapping[str, str] | None = None, server: str = "") -> Resolution:
    names = ServerNames({**{name: name for name in servers}, **(also or {})})
    listed = {name: None if tools is None else Spellings(tools) for name, tools in servers.items()}
    return resolve(path, names, listed.__getitem__, server=server)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("git:log", Resolved("git", "log")),
        ("git:hub-x", Resolved("git", "hub-x")),
        (" git: log ", Resolved("git", "log")),
        ("`git:log()`", Resolved("git", "log")),
        ("github:create_issue()", Resolved("github", "create_issue()")),
        ("github:createIssue", Ambiguous((("github", "create_issue"), ("github", "create_issue()")))),
        ("git:READ", Ambiguous((("git", "Read"), ("git", "read")))),
        ("git-log", Resolved("git", "log")),
        ("mcp__git__log", Resolved("git", "log")),
        ("git-hub-y", Resolved("git-hub", "y")),
        ("git-hub-x", Ambiguous((("git-hub", "x"), ("git", "hub-x")))),
        ("git-hub:x", Resolved("git-hub", "x")),
        ("git-hub:delete_repo", Absent("git-hub", "delete_repo")),
        ("git_hub:y", Ambiguous((("git-hub", "y"), ("github", "y")))),
        ("git/hub:delete_repo", Ambiguous(
            (("git-hub", "delete_repo"), ("github", "delete_repo"), ("git", "hub:delete_repo")))),
        ("gitlab:x", Resolved("git.lab", "x")),
        ("GIT.LAB-X", Resolved("git.lab", "x")),
        ("my_db__run_query", Resolved("my-db", "run_query")),
        ("mcp__my_db__run_query", Resolved("my-db", "run_query")),
        ("mcp__my-db__drop", Resolved("my-db", "drop")),
        ("mcp__my_db__drop", Resolved("mcp", "my_db__drop")),
        ("mcp__git.lab:delete_repo", Absent("git.lab", "delete_repo")),
        ("mcp__git:log", Absent("mcp__git", "log")),
        ('"mcp__git:log"', Absent("mcp__git", "log")),
        ("new:anything", Undiscovered("new", "anything")),
        ("New:anything", Undiscovered("new", "anything")),
        ("new-er-thing", Ambiguous((("new-er", "thing"), ("new", "er-thing")))),
        ("new-thing", Undiscovered("new", "thing")),
        ("git-nothing", Absent("git", "nothing")),
        ("git-hub-nothing", Absent("git-hub", "nothing", certain=False)),
        ("git-lab-x", Absent("git", "lab-x")),
        ("git-LOG", Resolved("git", "log")),
        ("git-mcp:log", Unknown()),
        ("log", Unknown()),
        ("weather:log", Unknown()),
        ("weather-log", Unknown()),
        ("git", Unknown()),
        ("git:", Unknown()),
        (":log", Unknown()),
        ("", Unknown()),
        ("git:" + "x" * MAX_PATH_CHARS, Unknown()),
    ],
)  # fmt: skip
def test_a_path_means_one_thing_or_says_why_not(path: str, expected: Resolution) -> None:
    assert meaning(path) == expected


@pytest.mark.parametrize(
    ("server", "path", "expected"),
    [
        ("git", "log", Resolved("git", "log")),
        ("git", "git-log", Resolved("git", "log")),
        ("git", "hub:delete_repo", Resolved("git", "hub:delete_repo")),
        ("git", "hub-x", Resolved("git", "hub-x")),
        ("git-hub", "git-hub-x", Resolved("git-hub", "x")),
        ("github", "git:log", Ambiguous((("git", "log"), ("github", "git:log")))),
        ("github", "git-log", Absent("github", "git-log")),
        ("Git", "github:log", Ambiguous((("github", "log"), ("git", "github:log")))),
        ("github", "Git:log", Ambiguous((("git", "log"), ("github", "Git:log")))),
        ("nobody", "git:log", Unknown()),
        ("nobody", "log", Unknown()),
        ("my_db", "runQuery", Resolved("my-db", "run_query")),
        ("new", "new-thing", Undiscovered("new", "thing")),
    ],
)
def test_a_server_beside_the_path_is_the_server(server: str, path: str, expected: Resolution) -> None:
    assert meaning(path, server=server) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("filesystem:read", Resolved("filesystem", "read")),
        ("filesystem-john-abc123:read", Resolved("filesystem", "read")),
        ("filesystem-john-abc123-read", Resolved("filesystem", "read")),
        ("filesystem-john-abc123-nope", Absent("filesystem", "nope")),
        ("fresh-read", Undiscovered("fresh", "read")),
        ("fresh-mary-abc456-read", Undiscovered("fresh", "mary-abc456-read")),
    ],
)
def test_each_name_of_a_server_means_it(path: str, expected: Resolution) -> None:
    also = {"filesystem-john-abc123": "filesystem", "fresh-mary-abc456": "fresh"}
    found = meaning(path, {"filesystem": frozenset({"read"}), "fresh": None}, also)
    if isinstance(found, Absent):
        assert found.server == "filesystem"
    else:
        assert found == expected


# Anything at all ------------------------------------------------------------------------------------------------------

SEPARATORS = (":", "-", "/", ".", "__")
PARTS = ("a", "b", "A", "mcp", "a-b", "a.b", "a_b", "ab", "b-c", "b:c", "c", "C", "b__c", "-", "a-b:c", "")
server_names = st.builds(
    "".join, st.lists(st.sampled_from(["a", "b", "A", "-", "_", ".", "mcp"]), min_size=1, max_size=4)
)
tool_names = st.builds(
    "".join, st.lists(st.sampled_from(["a", "b", "B", "-", "_", ":", ".", "/", "()", "|"]), min_size=1, max_size=5)
)
some_servers: st.SearchStrategy[Servers] = st.dictionaries(
    server_names.filter(lambda name: name[0] not in "-."),
    st.none() | st.frozensets(tool_names, max_size=4),
    min_size=1,
    max_size=6,
)
written = st.builds(
    lambda start, head, separator, name: f"{start}{head}{separator}{name}",
    st.sampled_from(["", "", "", "mcp__", " ", "`"]),
    server_names | st.sampled_from(PARTS),
    st.sampled_from([*SEPARATORS, " : ", "::"]),
    tool_names | st.sampled_from(PARTS),
)


def plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def literal_server(path: str, servers: Servers) -> str | None:
    """The server that a path names in so many words: before the first colon, with nothing around it."""
    head, colon, name = path.partition(":")
    return head if colon and name and head in servers else None


def named_anywhere(path: str, servers: Servers) -> Collection[str]:
    """The servers that a path without a colon names in so many words, whichever separator ends the name; else all."""
    text = path.strip().strip("`'\"").removesuffix("()").strip()
    if ":" in text or text.startswith("mcp__"):  # which may be in front of any name
        return servers
    named = {server for server in servers for sign in SEPARATORS if text.removeprefix(server + sign) not in (text, "")}
    return named or servers


def every_reading(path: str, servers: Servers) -> set[str]:
    """Every server that any reading allows, by brute force: it is spelled at the beginning, and may have the rest."""
    allowed = set()
    text = path.strip().strip("`'\"").removesuffix("()").strip()
    for start in {path, text, text.removeprefix("mcp__")}:
        for end in range(1, len(start)):
            for server, tools in servers.items():
                rests = [start[end + len(sign) :] for sign in SEPARATORS if start[end:].startswith(sign)]
                alike = server == start[:end] or plain(server) == plain(start[:end]) != ""
                fits = tools is None or any(plain(tool) == plain(rest) for tool in tools for rest in rests)
                if alike and rests and fits:
                    allowed.add(server)
    return allowed


@pytest.mark.case("L13", "C25", "X15")
@given(some_servers, written)
@example({"git.hub": frozenset({"x"}), "git": frozenset({"hub:delete"})}, "git.hub:delete")
@example({"db": frozenset({"read"}), "dbprod": frozenset({"drop"})}, "db:prod_drop")
@example({"db": frozenset({"read"}), "dbprod": frozenset({"drop"})}, "db-prod-drop")
@example({"a": frozenset({"b-wipe"}), "a-b": None}, "a-b-wipe")
def test_whatever_is_written_runs_on_the_server_that_was_named_or_nowhere(servers: Servers, path: str) -> None:
    found = meaning(path, servers)
    named = literal_server(path, servers)
    if isinstance(found, Resolved | Undiscovered | Absent):
        assert named in (None, found.server)
    if isinstance(found, Resolved):
        tools = servers[found.server]
        assert tools is not None
        assert found.name in tools
        assert found.server in named_anywhere(path, servers)
        if named is None:
            possible = {server for server in every_reading(path, servers) if says(path, server, servers)}
            assert possible <= {found.server}
    if isinstance(found, Ambiguous):
        assert len(set(found.readings)) > 1
        assert named is None or {server for server, _ in found.readings} == {named}


def says(path: str, server: str, servers: Servers) -> bool:
    """Whether a path, cut at one of its separators, is literally the name of a server and of what it may have."""
    text = path.strip().strip("`'\"").removesuffix("()").strip()
    for start in {text, text.removeprefix("mcp__")}:
        for sign in SEPARATORS:
            rest = start.removeprefix(server + sign)
            tools = servers[server]
            if rest not in (start, "") and (tools is None or rest in tools):
                return ":" not in start or literal_server(start, servers) in (None, server)
    return False


@pytest.mark.case("L13", "Q07")
@given(some_servers)
def test_every_name_that_is_given_out_means_its_own_server_and_tool(servers: Servers) -> None:
    entries = {
        name: Entry.make(
            name,
            "stdio",
            Offer(tools=tuple(map(tool_named, tools)), prompts=tuple(Prompt(name=tool) for tool in tools)),
        )
        for name, tools in servers.items()
        if tools is not None
    }
    seen = Catalogue(entries=entries, index=Index.empty(), names=ServerNames({}).with_servers(servers))
    given_out: dict[str, Meaning] = {}
    for server, entry in entries.items():
        for name in entry.tools:
            assert seen.tool(tool_path(server, name)) == Resolved(server, name)
            shown = seen.prompt_name(server, name)
            assert shown in (namespaced_name(server, name), tool_path(server, name))
            assert seen.prompt(shown) == Resolved(server, name)
            assert given_out.setdefault(shown, (server, name)) == (server, name)


def tool_named(name: str) -> Tool:
    return Tool(name=name)


@given(some_servers, written)
def test_each_reading_of_an_ambiguous_name_means_itself(servers: Servers, path: str) -> None:
    found = meaning(path, servers)
    for server, name in found.readings if isinstance(found, Ambiguous) else ():
        again = meaning(tool_path(server, name), servers)
        assert not isinstance(again, Ambiguous)
        assert getattr(again, "server", server) == server


@given(some_servers, server_names, written)
def test_a_server_beside_the_path_is_never_left_for_another(servers: Servers, server: str, path: str) -> None:
    found = meaning(path, servers, server=server)
    if server in servers and isinstance(found, Resolved | Undiscovered | Absent):
        assert found.server == server


@pytest.mark.case("C25")
def test_a_path_that_is_too_long_is_not_cut_to_another() -> None:
    assert len(clip("x" * 5000)) == MAX_PATH_CHARS + 1
    assert meaning(clip("git:log" + " " * 2000 + "x")) == Unknown()
    assert clip(" git:log ") == "git:log"


def test_names_are_read_in_no_time_however_many_servers_there_are() -> None:
    servers: Servers = {f"server-{number}": frozenset({"tool", "other"}) for number in range(1000)}
    names = ServerNames({}).with_servers(servers)
    listed = {name: Spellings(tools or ()) for name, tools in servers.items()}

    def quickest(path: str) -> float:
        seconds = []
        for _ in range(20):
            started = time.perf_counter()
            resolve(path, names, listed.__getitem__)
            seconds.append(time.perf_counter() - started)
        return min(seconds)

    assert quickest("server-500:tool") < 0.0005
    assert quickest("server-500-tool") < 0.0005
    assert quickest("server-500:" + "x" * 980) < 0.002
    assert quickest("a-" * 500) < 0.02
