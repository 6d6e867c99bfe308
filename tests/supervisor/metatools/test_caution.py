"""What destroys is not shown first, and not without a word of doubt, for a need that names something else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.catalogue.snapshot import Catalogue
from actors.protocol.wire.jsonrpc import encode
from actors.search.document import Document, Found, Hit, Kind
from benchmarks.discovery import discover_at_once
from supervisor.metatools.arguments import discover
from supervisor.metatools.discovery import DiscoverySettings, after_successors, likely_server
from tests.supervisor.metatools.test_discovery import catalogue

DESTROYS = {"destructiveHint": True}


def tool(name: str, description: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


SEEN = catalogue(
    git=[
        tool("git_clean", "Remove untracked files from the working directory.", annotations=DESTROYS),
        tool("git_status", "Show the status of the working directory."),
        tool("git_branch", "Delete or create branches of the repository.", annotations=DESTROYS),
    ],
    files=[
        tool("read_file", "Read the contents of a file."),
        tool("write_file", "Write a file.", annotations=DESTROYS),
        tool("list_directory", "List what is in a directory."),
        tool("search_files", "Search for files whose text has a pattern."),
        tool("remove_tag", "Remove a tag of a file.", annotations={"readOnlyHint": True}),
    ],
    todoist=[
        tool("find_tasks", "Find tasks of the to-do list."),
        tool("add_todo", "Add a to-do to a list."),
        tool("list_todos", "List all to-dos."),
        tool("complete_todo", "Complete a to-do."),
        tool("find_projects", "Find projects with tasks to do."),
        tool("user_info", "Get comprehensive user information including user ID, name, email, timezone and goals."),
    ],
    memory=[
        tool("search_nodes", "Search for nodes in the knowledge graph."),
        tool("delete_entities", "Delete entities and their relations from the knowledge graph."),
    ],
)


ABOUT_PEOPLE = catalogue(
    hub=[
        tool("search_users", "Search for users."),
        tool("user_info", "Get comprehensive user information including user ID, name, email, timezone and goals."),
        tool("update_user_preferences", "Change the preferences of a user."),
        tool("delete_user", "Delete a user and all preferences.", annotations=DESTROYS),
    ],
    calendar=[
        tool("list_meetings", "List meetings."),
        tool("delete_meeting", "Delete a meeting.", annotations=DESTROYS),
    ],
    notes=[tool("search_notes", "Search all notes."), tool("create_note", "Create a note.")],
    memory=[
        tool("create_entities", "Create multiple new entities in the knowledge graph"),
        tool("add_observations", "Add new observations to existing entities in the knowledge graph"),
        tool("delete_entities", "Delete multiple entities and their associated relations", annotations=DESTROYS),
        tool("read_graph", "Read the entire knowledge graph"),
        tool("search_nodes", "Search for nodes in the knowledge graph based on a query"),
    ],
)


def ask(query: str, seen: Catalogue = SEEN) -> Any:
    wanted = discover(msgspec.Raw(json.dumps({"query": query}).encode()), 50)
    return json.loads(encode(discover_at_once(seen, {}, wanted, DiscoverySettings(), lambda: 0.0)))


def first(answer: Any) -> str:
    return str(answer["tools"][0]["tool_path"])


@pytest.mark.parametrize("query", ["delete a directory", "remove the working directory", "delete my whole directory"])
def test_who_would_delete_one_thing_is_not_shown_first_what_deletes_another(query: str) -> None:
    answer = ask(query)
    assert first(answer) != "git:git_clean"
    assert "git:git_clean" in [row["tool_path"] for row in answer["tools"]]
    assert answer["notice"].startswith("Not sure that anything fits")
    assert "inputSchema" not in answer["tools"][0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("remove untracked files", "git:git_clean"),
        ("get rid of untracked files", "git:git_clean"),
        ("delete a branch", "git:git_branch"),
        ("delte branches of the repository", "git:git_branch"),
        ("write a file", "files:write_file"),
        ("delete entities", "memory:delete_entities"),
        ("git_clean", "git:git_clean"),
        ("remove the tag of a file", "files:remove_tag"),
    ],
)
def test_what_is_named_is_first_without_a_doubt_though_it_destroys(query: str, expected: str) -> None:
    answer = ask(query)
    assert first(answer) == expected
    assert "Not sure" not in answer.get("notice", "")


@pytest.mark.parametrize("query", ["what is untracked", "entities and their relations"])
def test_a_need_that_names_no_destruction_gets_none_first(query: str) -> None:
    answer = ask(query)
    assert first(answer) not in ("git:git_clean", "memory:delete_entities")


@pytest.mark.parametrize(
    "query",
    ["find all text files containing TODO", "find the files containing TODO", "search all files containing TODO marks"],
)
def test_a_mark_that_files_shall_contain_asks_for_no_tool_of_that_name(query: str) -> None:
    answer = ask(query)
    assert first(answer) == "files:search_files"
    assert not {"todoist:add_todo", "todoist:list_todos"} & {row["tool_path"] for row in answer["tools"]}


@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("what do I know about the user preferences", SEEN),
        ("what do I know about the user preferences", ABOUT_PEOPLE),
        ("what do we know about this user?", SEEN),
        ("what do we know about the branches", SEEN),
    ],
)
def test_what_is_known_about_somebody_is_read_from_memory_and_nothing_is_written(query: str, seen: Catalogue) -> None:
    assert first(ask(query, seen)) in ("memory:search_nodes", "memory:read_graph")


@pytest.mark.parametrize(
    "query",
    [
        "what did we write about the deleted users",
        "what did I write about deleting a meeting",
        "what did I write about updating preferences",
    ],
)
def test_what_was_written_about_a_deed_is_read_from_notes_and_the_deed_is_not_done(query: str) -> None:
    assert first(ask(query, ABOUT_PEOPLE)) == "notes:search_notes"


def test_where_only_what_destroys_is_found_the_doubt_is_said() -> None:
    alone = catalogue(
        git=[tool("git_clean", "Remove untracked files from the working directory.", annotations=DESTROYS)]
    )
    wanted = discover(msgspec.Raw(b'{"query": "delete a directory"}'), 50)
    answer = discover_at_once(alone, {}, wanted, DiscoverySettings(), lambda: 0.0)
    assert first(answer) == "git:git_clean"
    assert answer["notice"].startswith("Not sure that anything fits")


def test_a_need_that_no_description_matches_well_gets_the_nearest_servers_and_their_tools() -> None:
    answer = ask("find a person in wikipedia")
    assert answer["notice"].startswith("No description matches well; nearest servers: ")
    assert answer["tools"][0]["server_name"] in answer["notice"].partition(". Servers:")[0]


@pytest.mark.parametrize(
    ("kind", "distances", "expected"),
    [("tool", (0.49, 0.6), "git"), ("tool", (0.5,), ""), ("resource", (0.1,), ""), ("tool", (), "")],
)
def test_a_server_is_likely_whose_tool_is_the_first_hit_and_fits(
    kind: Kind, distances: tuple[float, ...], expected: str
) -> None:
    documents = [Document(key=f"{name}:t", kind=kind, server=name, name="t") for name in ("git", "files")]
    hits = tuple(
        Hit(document=document, score=1.0, distance=distance, exact=False)
        for document, distance in zip(documents, distances, strict=False)
    )
    assert likely_server(Found(hits=hits, total=len(hits))) == expected


def in_order(*names: str, exact: str = "", **tools_of: Any) -> list[str]:
    """The names of hits of a server, in the order that they are shown in when they were found in this one."""
    seen = catalogue(**tools_of)
    server = next(iter(tools_of))
    hits = [
        Hit(document=Document(key=n, kind="tool", server=server, name=n), score=1, distance=d / 10, exact=n == exact)
        for d, n in enumerate(names)
    ]
    ordered = after_successors(seen, hits)
    assert [hit.distance for hit in ordered] == [hit.distance for hit in hits]
    return [hit.document.name for hit in ordered]


OLD = tool("read", "Read a file. DEPRECATED: use read_text or read_bytes instead.")
NEW = [tool("read_text", "Read a file."), tool("read_bytes", "Read a file."), tool("stat", "See read. Not deprecated.")]


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (["read", "read_bytes", "stat", "read_text"], ["read_bytes", "read", "stat", "read_text"]),
        (["read", "stat", "read_text"], ["stat", "read_text", "read"]),
        (["read_text", "read", "read_bytes"], ["read_text", "read", "read_bytes"]),
        (["read", "stat"], ["read", "stat"]),
        (["stat", "read"], ["stat", "read"]),
    ],
)
def test_a_deprecated_tool_comes_after_the_best_of_its_successors(found: list[str], shown: list[str]) -> None:
    assert in_order(*found, files=[OLD, *NEW]) == shown


@pytest.mark.parametrize(
    "declares",
    [{"annotations": {"deprecated": True}}, {"_meta": {"deprecated": True}}, {"title": "Read (deprecated)"}],
)
def test_deprecated_is_what_says_so_anywhere_and_names_another(declares: dict[str, Any]) -> None:
    old = tool("read", "Read a file; read_text is better.", **declares)
    assert in_order("read", "read_text", files=[old, *NEW]) == ["read_text", "read"]
    assert in_order("read", "read_text", files=[{**old, "description": "Read."}, *NEW]) == ["read", "read_text"]


def test_one_that_was_asked_for_by_its_name_stays_and_so_does_a_pair_that_names_each_other() -> None:
    assert in_order("read", "read_text", exact="read", files=[OLD, *NEW]) == ["read", "read_text"]
    pair = [tool("a", "DEPRECATED: use b."), tool("b", "DEPRECATED: use a.")]
    assert sorted(in_order("a", "b", s=pair)) == ["a", "b"]
