"""Selecting tools: what fits, in which order, and which versions go together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.criteria import Criteria, ToolTotals, Treatment, Usage, incompatible, select
from actors.catalogue.metadata import describe_all
from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue
from actors.search.index import Index
from tests.fakes.tool_catalogue import CATALOGUE, USED, entry


def names(**criteria: Any) -> list[str]:
    return [row.name for row in select(CATALOGUE, USED, Criteria(**criteria)).rows]


@pytest.mark.parametrize(("wanted", "expected"), [(True, ["ship"]), (False, ["search_orders"])])
def test_what_the_daemon_does_counts_and_not_what_a_tool_says_of_itself(wanted: bool, expected: list[str]) -> None:
    criteria = Criteria(servers=("shop",), requires_confirmation=wanted)
    chosen = select(CATALOGUE, {}, criteria, treat=lambda server, tool, _: Treatment(tool == "ship", server != "shop"))
    assert [row.name for row in chosen.rows] == expected
    assert chosen.total == 1
    assert not any(row.exposed for row in chosen.rows)
    assert names(servers=("files",), requires_confirmation=True) == []


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ({}, ["delete_file", "read_file", "search_orders", "ship", "writeFile"]),
        ({"name": "file"}, ["delete_file", "read_file", "writeFile"]),
        ({"name": "write-file"}, ["writeFile"]),
        ({"name": "READ_F"}, ["read_file"]),
        ({"name": "_"}, ["delete_file", "read_file", "search_orders"]),
        ({"name": "!"}, []),
        ({"description": "a TEXT file f"}, ["read_file"]),
        ({"description": "file text"}, ["read_file", "writeFile"]),
        ({"description": "?!"}, []),
        ({"servers": ("shop", "unknown")}, ["search_orders", "ship"]),
        ({"version": "2"}, ["search_orders", "ship"]),
        ({"version": "1.1"}, ["delete_file", "read_file", "writeFile"]),
        ({"version": "dev", "include_unavailable": True}, ["list_ghosts"]),
        ({"category": "File-System"}, ["delete_file", "read_file", "writeFile"]),
        ({"tags": ("slow", "READ-ONLY")}, ["read_file"]),
        ({"read_only": True}, ["read_file", "search_orders"]),
        ({"read_only": False}, ["delete_file", "writeFile"]),
        ({"destructive": True}, ["delete_file"]),
        ({"destructive": False}, ["read_file", "search_orders"]),
        ({"idempotent": True}, ["writeFile"]),
        ({"open_world": True}, ["search_orders"]),
        ({"open_world": False}, []),
        ({"safety": "moderate"}, ["ship", "writeFile"]),
        ({"complexity": "moderate"}, ["ship"]),
        ({"include_unavailable": True, "read_only": True}, ["list_ghosts", "read_file", "search_orders"]),
        ({"limit": 2, "offset": 1}, ["read_file", "search_orders"]),
        ({"offset": 99}, []),
        ({"descending": True, "limit": 2}, ["writeFile", "ship"]),
        ({"sort_by": "calls", "descending": True}, ["read_file", "ship", "delete_file", "writeFile", "search_orders"]),
        ({"sort_by": "success_rate"}, ["read_file", "delete_file", "ship", "writeFile", "search_orders"]),
        ({"sort_by": "success_rate", "descending": True, "limit": 3}, ["delete_file", "ship", "read_file"]),
        ({"sort_by": "avg_time"}, ["delete_file", "ship", "read_file", "writeFile", "search_orders"]),
        ({"sort_by": "tokens"}, ["writeFile", "delete_file", "read_file", "search_orders", "ship"]),
        ({"sort_by": "tokens", "descending": True}, ["read_file", "delete_file", "writeFile", "search_orders", "ship"]),
    ],
)
def test_criteria_select_and_sort(criteria: dict[str, Any], expected: list[str]) -> None:
    assert sorted(names(**criteria)) == sorted(expected)
    assert names(**criteria) == expected


def test_totals_count_everything_that_fits_and_groups_only_the_page() -> None:
    selection = select(CATALOGUE, USED, Criteria(limit=2))
    assert selection.total == 5
    assert selection.by_safety == {"safe": 2, "moderate": 2, "dangerous": 1}
    assert selection.groups == {"safe": ("files:read_file",), "moderate": (), "dangerous": ("files:delete_file",)}


def test_a_row_has_the_numbers_of_the_tool() -> None:
    (row,) = select(CATALOGUE, USED, Criteria(name="read_file")).rows
    assert (row.path, row.tokens, row.calls, row.failures) == ("files:read_file", 30, 10, 5)
    assert (row.success_rate, row.avg_ms, row.avg_wait_ms, row.available) == (0.5, 100.0, 300.0, True)
    (row,) = select(CATALOGUE, USED, Criteria(name="search_orders")).rows
    assert (row.tokens, row.calls, row.success_rate, row.avg_ms) == (None, 0, None, None)


def test_long_descriptions_are_cut() -> None:
    catalogue = Catalogue(entries={"a": entry("a", {"name": "b", "description": "c" * 9000})}, index=Index.empty())
    (row,) = select(catalogue, {}, Criteria()).rows
    assert len(row.description) == 500


def test_what_was_described_before_gives_the_same_rows() -> None:
    described = {name: describe_all(name, entry.offer.tools) for name, entry in CATALOGUE.entries.items()}
    assert select(CATALOGUE, USED, Criteria(), described) == select(CATALOGUE, USED, Criteria())


@given(
    st.sampled_from(["name", "calls", "success_rate", "avg_time", "tokens"]),
    st.booleans(),
    st.integers(1, 4),
    st.dictionaries(
        st.sampled_from([("files", "read_file"), ("files", "writeFile"), ("shop", "ship")]),
        st.builds(ToolTotals, st.integers(0, 5), st.just(0), st.floats(0, 100), st.floats(0, 100)),
    ),
)
def test_pages_together_are_the_whole(sort_by: Any, descending: bool, limit: int, usage: Usage) -> None:
    whole = select(CATALOGUE, usage, Criteria(sort_by=sort_by, descending=descending)).rows
    pages = [
        select(CATALOGUE, usage, Criteria(sort_by=sort_by, descending=descending, limit=limit, offset=offset)).rows
        for offset in range(0, 5, limit)
    ]
    assert [row for page in pages for row in page] == list(whole)


@pytest.mark.parametrize(
    ("wanted", "found", "fits"),
    [
        ("1.2.3", "1.2.3", True),
        ("1.2.3", "1.10.0", True),
        ("1.2.3", "1.2.2", False),
        ("1", "1.9.9", True),
        ("1", "2.0.0", False),
        ("2", "1.0.0", False),
        ("v1.2", "1.2.0-rc.1", True),
        ("1.0.0+build", "v1.0.1", True),
        ("0.3", "0.3.9", True),
        ("0.3", "0.4.0", False),
        ("0", "0.9", True),
        ("2025.12.1", "2026.1.1", False),
        ("latest", "latest", True),
        ("latest", "1.0.0", False),
        ("1.0.0", "", False),
        ("", "", True),
        ("1.2.3.4", "1.2.3.4", True),
    ],
)
def test_versions_go_together_by_their_major_number(wanted: str, found: str, fits: bool) -> None:
    assert bool(incompatible(wanted, found)) is not fits


def test_the_reason_says_which_version_differs() -> None:
    assert incompatible("1.0", "2.1") == "the major version is 2, not 1"
    assert incompatible("0.1", "0.2") == "below 1.0.0 minor versions differ in kind: it is 0.2, not 0.1"
    assert incompatible("1.3", "1.2") == "it is older"
    assert "'latest'" in incompatible("1", "latest")


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_two_texts_can_be_compared(wanted: str, found: str) -> None:
    assert not incompatible(wanted, wanted)
    assert incompatible(wanted, found).isascii()


@pytest.mark.parametrize("info", [b"", b"nonsense", b"[]", b"{}", b'{"version":3}'])
def test_a_server_that_does_not_say_has_no_version(info: bytes) -> None:
    assert Offer(server_info=msgspec.Raw(info)).server_version == ""
