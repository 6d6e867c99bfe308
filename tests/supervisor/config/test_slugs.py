"""The slugs of installation names, and the names that servers answer to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.config import Configuration
from supervisor.config.keys import installation_slug
from supervisor.config.load import parse


def configured(**servers: Any) -> Configuration:
    """Return the configuration of entries; `_` in a name stands for `-`."""
    entries = {name.replace("_", "-"): {"command": "x", **more} for name, more in servers.items()}
    return parse(json.dumps({"mcpServers": entries}), Path("/mcp.json"), {})


def shown(configuration: Configuration) -> list[str]:
    return [server.path_name for server in configuration.servers]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("filesystem-john-abc123", "filesystem"),
        ("github-team123-alice-abc456", "github"),
        ("brave-search-john-abc123", "brave-search"),
        ("aws-s3-acme-7fk29x0q", "aws-s3"),
        ("team1-john-abc123", "team1"),
    ],
)
def test_the_slug_is_taken_from_an_installation_name(name: str, slug: str) -> None:
    assert installation_slug(name) == slug


@pytest.mark.parametrize(
    "name",
    [
        *("aws-documentation", "brave-search", "chrome-devtools", "my-server-2", "sequential-thinking", "github"),
        *("my-app-python3", "my-app-python312", "notes-mcp-2025", "notes-mcp-mcp2025", "crypto-tools-sha256"),
        *("my-db-v2beta1", "google-maps-i18next", "build-win-win32x64", "one-abc123", "Filesystem-john-abc123"),
        *("mcp-server-git", "a-b-deadbeef", "a-b-12345678", "", "-", "--", "-john-abc123"),
    ],
)
def test_any_other_name_stays_whole(name: str) -> None:
    assert installation_slug(name) is None


@given(st.text(alphabet="ab1-._", max_size=64))
def test_a_slug_is_a_name_before_the_rest(name: str) -> None:
    slug = installation_slug(name)
    assert slug is None or (slug and name.startswith(f"{slug}-"))


def test_a_server_is_called_by_the_slug_and_by_its_whole_name() -> None:
    found = configured(filesystem_john_abc123={}, notes={})
    assert shown(found) == ["filesystem", "notes"]
    assert found.server_names == {
        "filesystem-john-abc123": "filesystem",
        "filesystem": "filesystem",
        "notes": "notes",
    }
    (note,) = found.notes
    assert str(note) == (
        '/mcp.json:1: mcpServers.filesystem-john-abc123: served as "filesystem", as its name says '
        '(set "slug" to call it otherwise)'
    )


@pytest.mark.parametrize(
    "servers",
    [
        {"files_john_abc123": {}, "files_mary_abc456": {}},
        {"files_john_abc123": {}, "files": {}},
        {"files_john_abc123": {}, "Files": {"disabled": True}},
        {"files_john_abc123": {}, "other": {"slug": "files"}},
        {"files_john_abc123": {}, "files": {"nonsense": 1}},
    ],
)
def test_a_slug_that_another_entry_has_or_would_get_is_nobodys(servers: dict[str, Any]) -> None:
    found = configured(**servers)
    assert "files-john-abc123" in shown(found)
    assert found.server_names["files-john-abc123"] == "files-john-abc123"


def test_a_slug_that_is_written_down_wins() -> None:
    found = configured(files_john_abc123={"slug": "docs"})
    assert shown(found) == ["docs"]
    assert found.server_names == {"files-john-abc123": "docs", "docs": "docs"}
    assert found.notes == ()


def test_every_entry_has_a_name_also_if_it_cannot_run() -> None:
    found = configured(off={"disabled": True}, wrong={"nonsense": 1}, far={"command": "", "url": "https://a.b/c"})
    assert found.server_names == {"off": "off", "wrong": "wrong", "far": "far"}


def test_the_name_that_tools_are_shown_under_goes_over_the_key_of_another_entry() -> None:
    found = configured(files={"slug": "docs"}, other={"slug": "files"})
    assert found.server_names == {"files": "files", "docs": "docs", "other": "files"}
