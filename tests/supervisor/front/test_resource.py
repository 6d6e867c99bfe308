"""How the daemon is called as a resource, what it tells clients of that, and for which door a token is."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.front.admission import INSUFFICIENT, INVALID, METADATA, ProtectedResource, needed_scope
from supervisor.front.edge.fields import Fields
from supervisor.identity.requester import EXECUTE, READ, TokenGrant
from supervisor.oauth.issuers.metadata import challenge_of
from tests.fakes.identity_provider import ISSUER

PUBLIC = ProtectedResource("https://MCP.example:8443/", "0.0.0.0", {3001})
LOCAL = ProtectedResource("", "127.0.0.1", {3001})
HERE = Fields({b"host": b"localhost:3001"})
BASE = "https://MCP.example:8443"
PATHS = st.one_of(
    st.sampled_from(["/mcp", "/mcp/all", "/mcp/servers/a", "/api/status", "/ws", "/"]),
    st.text(max_size=40).map(lambda text: f"/mcp/servers/{text}"),
    st.text(max_size=700).map(lambda text: f"/{text}"),
)


def grant(*audiences: str) -> TokenGrant:
    return TokenGrant(issuer=ISSUER, subject="a", audiences=audiences, scopes=frozenset(), expires_at=0.0)


@given(PATHS)
def test_a_challenge_is_found_by_the_patterns_of_the_official_clients(path: str) -> None:
    """TypeScript: `/resource_metadata=(?:"([^"]*)"|([^\\s,]+))/`; Python the same with `scope` and `error`."""
    for more in ("", INVALID, INSUFFICIENT):
        line = PUBLIC.challenge(HERE, path) + more
        assert line.startswith('Bearer resource_metadata="')
        assert line.isascii()
        assert line.isprintable()
        assert len(line) < 2200
        (url,) = re.findall(r'resource_metadata=(?:"([^"]+)"|([^\s,]+))', line)
        assert url[0].startswith(f"{BASE}{METADATA}/mcp")
        (scope,) = re.findall(r'scope=(?:"([^"]+)"|([^\s,]+))', line)
        assert scope[0] == "mcp:read mcp:tools:execute"
        assert len(re.findall(r'error=(?:"([^"]+)"|([^\s,]+))', line)) == bool(more)
        assert challenge_of([line]).resource_metadata == url[0]


@given(st.text(max_size=60))
def test_what_is_published_of_an_address_is_about_that_and_tells_of_no_server(name: str) -> None:
    path = f"/mcp/servers/{name}"
    url = re.findall(r'resource_metadata="([^"]+)"', PUBLIC.challenge(HERE, path))[0]
    document = PUBLIC.metadata(HERE, f"{METADATA}{path}", [ISSUER])
    assert document is not None
    read = json.loads(document)
    assert read["resource"] == url.replace(METADATA, "", 1)
    assert read["authorization_servers"] == [ISSUER]
    assert (read["scopes_supported"], read["bearer_methods_supported"]) == ([READ, EXECUTE], ["header"])


@pytest.mark.parametrize("path", ["", "/mcp", "/mcp/all", "/mcp/servers/none"])
def test_a_document_is_at_the_place_of_its_resource(path: str) -> None:
    document = json.loads(LOCAL.metadata(HERE, METADATA + path, [ISSUER]) or b"")
    assert document["resource"] == f"http://localhost:3001{path or '/mcp'}"


@pytest.mark.parametrize("path", ["/", "/x", "/api", "/mcp2", f"/mcp/{'x' * 600}"])
def test_what_is_no_door_has_no_document(path: str) -> None:
    assert LOCAL.metadata(HERE, METADATA + path, [ISSUER]) is None
    assert LOCAL.metadata(HERE, "/mcp", [ISSUER]) is None


@pytest.mark.parametrize("host", [b"evil.example", b"127.0.0.1:9999", b"localhost", b"", b"a b"])
def test_the_name_of_a_resource_is_never_what_a_request_says(host: bytes) -> None:
    fields = Fields({b"host": host})
    assert LOCAL.base(fields) == "http://127.0.0.1:3001"
    assert PUBLIC.base(fields) == BASE
    assert not LOCAL.admits(grant("http://127.0.0.1:9999/mcp"), fields, "/mcp", ())


@pytest.mark.parametrize(
    ("audience", "doors"),
    [
        (f"{BASE}/mcp", ["/mcp", "/mcp/all", "/mcp/servers/a", "/api/status", "/ws"]),
        (f"{BASE}/mcp/", ["/mcp", "/mcp/all", "/mcp/servers/a", "/api/status", "/ws"]),
        ("HTTPS://mcp.EXAMPLE:8443/mcp", ["/mcp", "/mcp/all", "/mcp/servers/a", "/api/status", "/ws"]),
        (f"{BASE}/mcp/servers/a", ["/mcp/servers/a"]),
        (f"{BASE}/mcp/servers/%61", ["/mcp/servers/a"]),
        (f"{BASE}/mcp/all", ["/mcp/all"]),
        ("the client", ["/mcp", "/mcp/all", "/mcp/servers/a", "/api/status", "/ws"]),
        *(
            (wrong, [])
            for wrong in (BASE, f"{BASE}/", "https://mcp.example/mcp", "http://MCP.example:8443/mcp", f"{BASE}/mcp?x")
        ),
        *((wrong, []) for wrong in (f"{BASE}/MCP", f"{BASE}/mcp/servers", "other", "", "https://[", f"{BASE}:1/mcp")),
    ],
)
def test_a_token_is_for_its_door_or_for_the_daemon(audience: str, doors: list[str]) -> None:
    ways = ["/mcp", "/mcp/all", "/mcp/servers/a", "/api/status", "/ws"]
    found = [door for door in ways if PUBLIC.admits(grant("x", audience), HERE, door, ("the client",))]
    assert found == doors


@given(st.lists(st.text(max_size=30) | st.sampled_from([f"{BASE}/mcp/all", "http://localhost:3001/mcp"]), max_size=3))
def test_no_other_audience_is_taken(audiences: list[str]) -> None:
    assert not PUBLIC.admits(grant(*audiences), HERE, "/mcp/servers/a", ())


def test_reading_needs_one_scope_and_pages_that_change_something_the_other() -> None:
    for path in ("/mcp", "/mcp/all", "/ws"):
        assert {needed_scope(path, method) for method in ("GET", "POST", "DELETE")} == {READ}
    assert needed_scope("/api/status", "GET") == READ
    assert needed_scope("/api/reload", "POST") == EXECUTE
    assert needed_scope("/api/servers/x", "DELETE") == EXECUTE


def test_the_card_of_a_door_is_read_with_what_the_door_takes() -> None:
    ours = grant(f"{BASE}/mcp/servers/a")
    assert PUBLIC.admits(ours, HERE, "/mcp/servers/a/server-card", ())
    assert not PUBLIC.admits(ours, HERE, "/mcp/servers/b/server-card", ())
    assert not PUBLIC.admits(ours, HERE, "/v0.1/servers", ())
