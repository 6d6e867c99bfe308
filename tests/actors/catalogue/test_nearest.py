"""What is suggested for a path that means no tool: what may be meant, or nothing."""

from __future__ import annotations

import pytest

from actors.catalogue.names import MOST_NEAREST, nearest

EXCEL = "create_sheet rename_sheet delete_sheet read_range write_range"
MEMORY = (
    "create_entities create_relations add_observations delete_entities delete_observations delete_relations "
    "read_graph search_nodes open_nodes"
)
FILES = "read_media_file read_file write_file move_file delete_file list_directory"


def of(server: str, names: str) -> list[tuple[str, str]]:
    return [(server, name) for name in names.split()]


ALL = [*of("excel", EXCEL), *of("memory", MEMORY), *of("filesystem", FILES), *of("redis", "json_del get set delete")]


@pytest.mark.parametrize(
    "path", ["gmail:send_email", "slack:post_message", "weather:get_forecast", "x:y", "", "x" * 900]
)
def test_nothing_is_suggested_for_what_nobody_has(path: str) -> None:
    assert nearest(path, ALL) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("filesystem:raed_file", "filesystem:read_file"),
        ("files:readFile", "filesystem:read_file"),
        ("read-file", "filesystem:read_file"),
        ("filesytem:write_fil", "filesystem:write_file"),
        ("fs:delete_file", "filesystem:delete_file"),
        ("sheets:write_range", "excel:write_range"),
    ],
)
def test_another_spelling_or_another_server_is_suggested_first(path: str, expected: str) -> None:
    assert nearest(path, ALL)[0] == expected


def test_a_server_that_is_named_is_asked_for_the_same_deed() -> None:
    assert nearest("excel:read_sheet", of("excel", EXCEL), named=True) == ["excel:read_range"]
    found = nearest("memory:remember", of("memory", MEMORY), named=True)
    assert set(found) == {"memory:create_entities", "memory:create_relations", "memory:add_observations"}
    assert nearest("memory:quux", of("memory", MEMORY), named=True) == []


@pytest.mark.parametrize("asked", ["read", "get", "list", "create", "update", "file", "entities"])
def test_what_deletes_is_suggested_only_to_who_asks_for_it(asked: str) -> None:
    for thing in ("file", "entities", "sheet", "observations"):
        found = nearest(f"s:{asked}_{thing}", ALL)
        assert not any("delete" in path for path in found)
        assert len(found) <= MOST_NEAREST
