"""As which client a login is made."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.issuer import Grant, OAuthClient, known_client, read_registration, wanted_method
from supervisor.oauth.issuers.metadata import IssuerMetadata, OAuthTrouble

HERE = "http://127.0.0.1:3001/oauth/callback"
ISSUER = IssuerMetadata(issuer="https://b.example", registration_endpoint="https://b.example/register")
GIVEN = OAuthClient(id="given", redirect_uri=HERE, registered=True)
KEPT = Grant(server="s", issuer=ISSUER, resource="r", client=GIVEN)


DEFAULTS = OAuthConfig()


def client(config: OAuthConfig = DEFAULTS, issuer: IssuerMetadata = ISSUER, kept: Grant | None = None) -> Any:
    return known_client(config, issuer, HERE, kept, 100.0)


def test_a_configured_client_comes_first() -> None:
    config = OAuthConfig(client_id="ours", client_metadata_url="https://c.example/client.json")
    assert client(config, replace(ISSUER, client_id_metadata_document_supported=True), KEPT) == OAuthClient(
        id="ours", redirect_uri=HERE
    )


@pytest.mark.parametrize(
    ("offered", "method"),
    [
        (None, "client_secret_basic"),
        (("client_secret_post", "client_secret_basic"), "client_secret_post"),
        (("private_key_jwt",), "client_secret_basic"),
    ],
)
def test_a_secret_is_told_as_the_authorization_server_likes_it(offered: tuple[str, ...] | None, method: str) -> None:
    issuer = replace(ISSUER, token_endpoint_auth_methods_supported=offered)
    assert client(OAuthConfig(client_id="ours", client_secret="s"), issuer).method == method


def test_a_key_signs() -> None:
    assert client(OAuthConfig(client_id="ours", private_key="k")).method == "private_key_jwt"


def test_a_configured_client_is_told_to_its_own_issuer_only() -> None:
    assert client(OAuthConfig(client_id="ours", issuer="https://b.example")).id == "ours"
    with pytest.raises(OAuthTrouble, match="not the one"):
        client(OAuthConfig(client_id="ours", issuer="https://other.example"))


def test_a_configured_client_stays_with_the_issuer_that_it_was_told_to_first() -> None:
    config = OAuthConfig(client_id="ours", client_secret="s")
    kept = replace(KEPT, client=OAuthClient(id="ours"))
    assert client(config, kept=kept).id == "ours"
    with pytest.raises(OAuthTrouble, match="log out first"):
        client(config, replace(ISSUER, issuer="https://other.example"), kept)
    assert client(config, replace(ISSUER, issuer="https://other.example"), KEPT).id == "ours"


def test_a_document_of_ours_is_used_where_it_is_taken() -> None:
    config = OAuthConfig(client_metadata_url="https://c.example/client.json")
    issuer = replace(ISSUER, client_id_metadata_document_supported=True)
    assert client(config, issuer, KEPT).id == "https://c.example/client.json"
    assert client(config, ISSUER, KEPT) is GIVEN


def test_a_name_that_was_given_is_used_again_as_long_as_it_is_good() -> None:
    assert client(kept=KEPT) is GIVEN
    assert client() is None
    for kept in (
        replace(KEPT, issuer=replace(ISSUER, issuer="https://c.example")),
        replace(KEPT, client=replace(GIVEN, redirect_uri="http://127.0.0.1:1/oauth/callback")),
        replace(KEPT, client=replace(GIVEN, registered=False)),
        replace(KEPT, client=replace(GIVEN, secret_until=100.0)),
    ):
        assert client(kept=kept) is None
    assert client(kept=replace(KEPT, client=replace(GIVEN, secret_until=101.0))).id == "given"


def test_where_nobody_gives_names_the_operator_has_to() -> None:
    with pytest.raises(OAuthTrouble, match=r"client_id.*redirect URI is http://127"):
        client(issuer=replace(ISSUER, registration_endpoint=None))
    with pytest.raises(OAuthTrouble, match=r"of the entry$"):
        known_client(OAuthConfig(), replace(ISSUER, registration_endpoint=None), "", None, 0.0)


@pytest.mark.parametrize(
    ("offered", "method"),
    [
        (None, "none"),
        (("client_secret_basic", "none"), "none"),
        (("client_secret_post", "client_secret_basic"), "client_secret_post"),
        (("tls_client_auth",), "none"),
    ],
)
def test_what_we_ask_for_is_something_that_is_offered(offered: tuple[str, ...] | None, method: str) -> None:
    assert wanted_method(replace(ISSUER, token_endpoint_auth_methods_supported=offered)) == method


def body(**members: Any) -> bytes:
    return json.dumps({"client_id": "x", **members}).encode()


def test_a_registration_is_read() -> None:
    assert read_registration(body(), "none", HERE) == OAuthClient(id="x", redirect_uri=HERE, registered=True)
    full = body(client_secret="s", client_secret_expires_at=7, token_endpoint_auth_method="client_secret_post")
    assert read_registration(full, "none", HERE) == OAuthClient(
        id="x", secret="s", method="client_secret_post", redirect_uri=HERE, registered=True, secret_until=7.0
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"{}", "no registration"),
        (b"\xff", "no registration"),
        (body(client_id=""), "no registration"),
        (body(token_endpoint_auth_method="tls_client_auth"), "do not have"),
        (body(token_endpoint_auth_method="client_secret_basic"), "gave none"),
    ],
)
def test_what_is_no_registration_is_said(answer: bytes, said: str) -> None:
    with pytest.raises(OAuthTrouble, match=said):
        read_registration(answer, "none", HERE)
