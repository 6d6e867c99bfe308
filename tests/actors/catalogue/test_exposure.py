"""What clients see where they are shown no tools above a level: the same catalogue without them, in every respect."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.catalogue.documents import documents
from actors.catalogue.metadata import SAFETY, Safety, describe_all, judge
from actors.catalogue.names import Absent, Resolved
from actors.catalogue.snapshot import Catalogue
from actors.catalogue.views import Exposure, only
from actors.search.index import Index
from actors.search.search import find
from actors.search.segment import analyse
from tests.fakes.tool_catalogue import CATALOGUE, entry

INDEX = Index.empty().rebuild([analyse(name, documents(name, e.offer)) for name, e in CATALOGUE.entries.items()])
WHOLE = replace(CATALOGUE, index=INDEX)
LEVELS = st.dictionaries(st.sampled_from(sorted(WHOLE.entries)), st.sampled_from(SAFETY))


def every(highest: Safety) -> Mapping[str, Safety]:
    return dict.fromkeys(WHOLE.entries, highest)


def shown(highest: Safety, catalogue: Catalogue = WHOLE) -> Catalogue:
    return Exposure().of(catalogue, every(highest))


def paths(catalogue: Catalogue) -> set[tuple[str, str]]:
    return {(server, tool) for server, entry in catalogue.entries.items() for tool in entry.tools}


@pytest.mark.case("Q06")
@pytest.mark.parametrize(("highest", "left"), [("safe", 2), ("moderate", 4), ("dangerous", 5)])
def test_what_is_above_the_level_is_found_in_no_way(highest: Safety, left: int) -> None:
    seen = shown(highest)
    available = [path for path in paths(seen) if path[0] != "gone"]
    assert len(available) == left
    found = {hit.document.key for hit in find(seen.index, "*", limit=50, within=seen.within).hits}
    assert found == {f"{server}:{tool}" for server, tool in paths(seen)}
    wanted = find(seen.index, "delete a file for ever", limit=50, within=seen.within)
    assert ("files:delete_file" in {hit.document.key for hit in wanted.hits}) == (highest == "dangerous")
    exact = seen.tool("files:delete_file")
    assert isinstance(exact, Resolved if highest == "dangerous" else Absent)
    assert ("files:delete_file" in seen.nearest("files:delete_fil")) == (highest == "dangerous")


def test_counts_and_definitions_go_with_their_tools() -> None:
    seen = shown("moderate").entries["files"]
    assert seen.hidden == {"delete_file"}
    assert seen.offer.token_counts == {"read_file": 30, "writeFile": 10}
    assert [tool.name for tool in seen.offer.tools] == ["read_file", "writeFile"]
    assert seen.revisions == WHOLE.entries["files"].revisions


def test_where_everything_is_shown_it_is_the_same_catalogue() -> None:
    assert shown("dangerous") is WHOLE
    assert WHOLE.within is None


def test_a_change_of_the_level_is_a_change_of_the_list_of_those_that_it_concerns() -> None:
    exposure = Exposure()
    before = exposure.of(WHOLE, every("dangerous"))
    fewer = exposure.of(WHOLE, every("moderate"))
    same = exposure.of(replace(WHOLE), every("moderate"))
    again = exposure.of(WHOLE, every("dangerous"))
    tools = [seen.revisions.tools - WHOLE.revisions.tools for seen in (before, fewer, same, again)]
    assert tools == [0, 1, 1, 2]
    assert [seen.entries["files"].revisions.tools for seen in (before, fewer, again)] == [0, 1, 2]
    assert [seen.entries["shop"].revisions.tools for seen in (before, fewer, again)] == [0, 0, 0]
    assert again.revision - WHOLE.revision == 2
    assert same.entries["shop"] is fewer.entries["shop"] is WHOLE.entries["shop"]


def test_what_was_shown_before_the_first_level_is_missed() -> None:
    exposure = Exposure()
    exposure.begin_with(WHOLE)
    assert exposure.of(WHOLE, every("moderate")).revision == WHOLE.revision + 1


def test_what_the_server_itself_changed_counts_once() -> None:
    exposure = Exposure()
    exposure.of(WHOLE, every("moderate"))
    more = entry("files", {"name": "wipe_disk", "description": "Wipes the whole disk."})
    following = replace(WHOLE, revision=1, entries={**WHOLE.entries, "files": more})
    assert exposure.of(following, every("moderate")).revision == 1


@given(LEVELS)
def test_nothing_else_than_tools_above_the_level_is_missing(levels: Mapping[str, Safety]) -> None:
    seen = Exposure().of(WHOLE, levels)
    for server, whole in WHOLE.entries.items():
        most = SAFETY.index(levels.get(server, "dangerous"))
        judged = {tool.name: SAFETY.index(judge(tool).safety) for tool in whole.offer.tools}
        assert seen.entries[server].tools.keys() == {name for name, level in judged.items() if level <= most}
        assert replace(seen.entries[server].offer, tools=(), token_counts={}) == replace(
            whole.offer, tools=(), token_counts={}
        )


def test_a_judgement_is_what_is_shown_of_the_tool() -> None:
    for server, each in WHOLE.entries.items():
        known = describe_all(server, each.offer.tools)
        for tool in each.offer.tools:
            judged = judge(tool)
            assert (judged.safety, judged.requires_confirmation) == (
                known[tool.name].safety,
                known[tool.name].requires_confirmation,
            )


def test_only_what_is_wanted_is_left_beside_what_was_hidden_before() -> None:
    seen = only(shown("moderate"), lambda server, tool: tool == "read_file")
    assert paths(seen) == {("files", "read_file")}
    assert seen.entries["files"].hidden == {"delete_file"}
    assert {hit.document.key for hit in find(seen.index, "*", limit=50, within=seen.within).hits} == {"files:read_file"}
    assert only(WHOLE, lambda server, tool: True).entries["files"] is WHOLE.entries["files"]


@pytest.mark.parametrize("highest", SAFETY)
def test_a_launch_of_its_own_is_shown_as_far_as_that_of_all(highest: Safety) -> None:
    own = {f"files~{number:x}": WHOLE.entries["files"] for number in range(3)}
    exposure = Exposure()
    catalogue = replace(WHOLE, own=own)
    seen = exposure.of(catalogue, every(highest))
    assert {id(each) for each in seen.own.values()} == {id(seen.own["files~0"])}, "equal ones stay one"
    assert seen.own["files~0"].tools.keys() == seen.entries["files"].tools.keys()
    again = exposure.of(catalogue, every(highest))
    assert again.own["files~2"] is seen.own["files~2"]
    assert exposure.of(catalogue, every("safe")).own["files~1"].hidden == {"delete_file", "writeFile"}
