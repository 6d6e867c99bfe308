"""The documents about what is served here fit their schemas, whatever a server says of itself."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from supervisor.service.doors import cards
from supervisor.service.doors.addresses import door_of, has_card
from supervisor.service.doors.cards import Document, Served, Site, served

NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
REMOTE = re.compile(r"https?://[^\s]+")
HERE = Site("http://127.0.0.1:3001", "1.0")
SERVER_NAMES = st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9_. -]{0,62}[A-Za-z0-9_.-])?", fullmatch=True)
BASES = st.sampled_from(
    ["http://127.0.0.1:3001", "http://[::1]:3001", "http://localhost:3001", "https://mcp.example.com", "https://a.b/c"]
)


@given(SERVER_NAMES, st.text(), st.text(), st.text(), BASES, st.booleans())
def test_whatever_a_server_says_its_card_and_its_row_fit_their_schemas(
    name: str, title: str, description: str, version: str, base: str, needs_token: bool
) -> None:
    site, door = Site(base, "1", needs_token), served(name, title, description, version)
    for document in (cards.card(site, door), cards.server_json(site, door)):
        assert NAME.fullmatch(document["name"])
        assert 3 <= len(document["name"]) <= 200
        assert 1 <= len(document["title"]) <= 100
        assert 1 <= len(document["description"]) <= 100
        assert document["title"].isprintable()
        assert document["description"].isprintable()
        assert 1 <= len(document["version"]) <= 255
        assert re.fullmatch(r"[A-Za-z0-9.+_-]+", document["version"])
        assert document["version"] != "latest"
        (remote,) = document["remotes"]
        assert REMOTE.fullmatch(remote["url"])
        assert remote["url"].startswith(f"{base}/mcp/servers/")
        assert ("headers" in remote) == needs_token


@given(SERVER_NAMES, SERVER_NAMES)
def test_two_servers_have_two_names(one: str, other: str) -> None:
    names = [cards.name_of(served(each, "", "", "")) for each in (one, other, one.replace(" ", "-"))]
    assert (names[0] == names[1]) == (one == other)
    assert (names[0] == names[2]) == (" " not in one)


def test_a_name_begins_with_the_host_in_reverse_and_an_address_has_none() -> None:
    github = served("github", "", "", "")
    public = Site("https://tools.example.com", "1")
    assert cards.full_name(public, github) == "com.example.tools/mcp.servers.github"
    assert cards.full_name(HERE, github) == "localhost/mcp.servers.github"
    (entry,) = cards.catalogue(public, [github])["entries"]
    assert entry["identifier"] == "urn:air:tools.example.com:mcp:mcp.servers.github"
    assert entry["url"] == "https://tools.example.com/mcp/servers/github/server-card"


def test_a_document_is_known_by_its_tag_alone() -> None:
    one, other = Document.of({"a": 1}), Document.of({"a": 2})
    assert one.tag != other.tag
    for header in (one.tag, f"W/{one.tag}", f'"x", {one.tag}', "*"):
        assert one.is_known(header)
    assert not any(one.is_known(header) for header in ("", other.tag, one.tag.strip('"')))


def test_a_card_is_no_door_and_a_server_of_that_name_has_one() -> None:
    for path in ("/mcp", "/mcp/all", "/mcp/servers/a", "/mcp/servers/server-card"):
        assert door_of(path) is not None
        assert has_card(f"{path}/server-card")
        assert door_of(f"{path}/server-card") is None
    for path in ("/mcp/servers/server-card", "/mcp/servers/a/b/server-card", "/i/a/mcp/server-card", "/server-card"):
        assert not has_card(path)


def told(door: Served) -> dict[str, Any]:
    return cards.card(HERE, door)


def test_the_card_of_the_first_door_says_which_revisions_it_speaks() -> None:
    card = told(cards.own_doors("1.0")[0])
    (remote,) = card["remotes"]
    assert remote["url"] == "http://127.0.0.1:3001/mcp"
    assert {"2024-11-05", "2026-07-28"} <= {*remote["supportedProtocolVersions"]}
