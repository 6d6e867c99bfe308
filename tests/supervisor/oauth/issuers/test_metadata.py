"""Where metadata are looked for, and what of them is believed."""

from __future__ import annotations

import pytest

from supervisor.oauth.issuers.metadata import (
    Challenge,
    OAuthTrouble,
    ResourceMetadata,
    canonical,
    checked_resource,
    covers,
    issuer_addresses,
    origin,
    resource_addresses,
)

SERVER = "https://a.example/team/mcp"
KNOWN = "https://a.example/.well-known"


def test_an_address_has_one_form() -> None:
    assert canonical("HTTPS://A.Example:443/") == "https://a.example"
    assert canonical("https://a.example:8443/mcp?x=1#part") == "https://a.example:8443/mcp?x=1"
    assert origin("http://[::1]:80/x") == "http://[::1]"


def test_where_a_resource_is_described() -> None:
    named = Challenge(resource_metadata="https://b.example/there")
    assert resource_addresses(SERVER, named) == ("https://b.example/there",)
    assert resource_addresses(SERVER, Challenge()) == (
        f"{KNOWN}/oauth-protected-resource/team/mcp",
        f"{KNOWN}/oauth-protected-resource",
    )
    assert resource_addresses("https://a.example/", Challenge()) == (f"{KNOWN}/oauth-protected-resource",)


def test_where_an_issuer_is_described() -> None:
    assert issuer_addresses("https://a.example") == (
        f"{KNOWN}/oauth-authorization-server",
        f"{KNOWN}/openid-configuration",
    )
    assert issuer_addresses("https://a.example/one/") == (
        f"{KNOWN}/oauth-authorization-server/one",
        f"{KNOWN}/openid-configuration/one",
        "https://a.example/one/.well-known/openid-configuration",
    )


@pytest.mark.parametrize(
    ("resource", "is_covered"),
    [
        (SERVER, True),
        ("https://a.example/team", True),
        ("https://a.example/team/mcp/", True),
        ("https://a.example", True),
        ("https://a.example/", True),
        ("https://a.example/te", False),
        ("https://a.example/team/mcp/deeper", False),
        ("http://a.example/team/mcp", False),
        ("https://a.example:8443/team/mcp", False),
        ("https://evil.example/team/mcp", False),
        ("https://a.example/team/mcp?realm=1", False),
        ("https://a.example:x/team/mcp", False),
        ("", False),
    ],
)
def test_a_resource_is_the_server_or_what_is_above_it(resource: str, is_covered: bool) -> None:
    assert covers(resource, SERVER) is is_covered
    document = ResourceMetadata(resource=resource, authorization_servers=("https://b.example",))
    if is_covered:
        assert checked_resource(document, SERVER) is document
    else:
        with pytest.raises(OAuthTrouble, match="another resource"):
            checked_resource(document, SERVER)
