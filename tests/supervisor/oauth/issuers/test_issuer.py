"""What is said to an authorization server, and what it answers."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.issuer import (
    ASSERTION,
    Grant,
    OAuthClient,
    Tokens,
    authorization_url,
    refusal_of,
    registration,
    revocation_request,
    token_request,
    tokens_of,
)
from supervisor.oauth.issuers.metadata import IssuerMetadata, IssuerRefused, OAuthTrouble

HERE = "http://127.0.0.1:3001/oauth/callback"
CLIENT = OAuthClient(id="a client", redirect_uri=HERE)
NOW = 1000.0
NONE = OAuthConfig()


def grant(client: OAuthClient, scope: tuple[str, ...] = ()) -> Grant:
    issuer = IssuerMetadata(issuer="https://b.example")
    return Grant(server="https://a", issuer=issuer, resource="https://a", client=client, scope=scope)


def form(body: bytes) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(body.decode(), strict_parsing=True).items()}


def url(scope: tuple[str, ...] = ()) -> dict[str, str]:
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"  # RFC 7636, appendix B
    made = authorization_url("https://b.example/authorize?realm=1", grant(CLIENT, scope), state="st", verifier=verifier)
    assert verifier not in made
    return form(urlsplit(made).query.encode())


def test_where_a_user_says_yes() -> None:
    plain = {
        "realm": "1",
        "response_type": "code",
        "client_id": "a client",
        "redirect_uri": HERE,
        "state": "st",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
        "resource": "https://a",
    }
    assert url() == plain
    assert url(("read", "write")) == {**plain, "scope": "read write"}
    assert url(("offline_access",))["prompt"] == "consent"


def test_no_parameter_is_twice_in_the_address_where_a_user_says_yes() -> None:
    endpoint = "https://b.example/authorize?realm=a%20b&resource=https%3A%2F%2Fother&response%5Ftype=token#x"
    made = urlsplit(authorization_url(endpoint, grant(CLIENT), state="st", verifier="v" * 43))
    named = parse_qs(made.query, strict_parsing=True)
    assert {name for name, values in named.items() if len(values) > 1} == set()
    assert (named["realm"], named["resource"], named["response_type"]) == (["a b"], ["https://a"], ["code"])
    assert (made.path, made.fragment) == ("/authorize", "x")


@pytest.mark.parametrize("secret", ["s:/ö", "plain"])
def test_how_a_client_says_who_it_is(secret: str) -> None:
    body, headers = token_request(NONE, grant(CLIENT), "authorization_code", code="c")
    assert form(body) == {
        "grant_type": "authorization_code",
        "code": "c",
        "resource": "https://a",
        "client_id": "a client",
    }
    assert "Authorization" not in headers
    post = OAuthClient(id="x", secret=secret, method="client_secret_post")
    assert form(token_request(NONE, grant(post), "client_credentials")[0])["client_secret"] == secret
    basic = OAuthClient(id="a client", secret=secret, method="client_secret_basic")
    body, headers = revocation_request(NONE, grant(basic), "t", "refresh_token")
    assert form(body) == {"token": "t", "token_type_hint": "refresh_token", "client_id": "a client"}
    sent = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode()
    assert sent == ("a%20client:s%3A%2F%C3%B6" if secret != "plain" else "a%20client:plain")


def test_a_key_signs_for_the_issuer() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    client = OAuthClient(id="x", method="private_key_jwt")
    config = OAuthConfig(private_key=pem, signing_alg="ES256")
    said = form(token_request(config, grant(client), "client_credentials")[0])
    assert said["client_assertion_type"] == ASSERTION
    claims = jwt.decode(said["client_assertion"], key.public_key(), algorithms=["ES256"], audience="https://b.example")
    assert (claims["iss"], claims["sub"]) == ("x", "x")
    for broken in (NONE, OAuthConfig(private_key="no key", signing_alg="ES256")):
        with pytest.raises(OAuthTrouble, match="private_key"):
            token_request(broken, grant(client), "client_credentials")


def answer(**members: Any) -> bytes:
    return json.dumps({"access_token": "a", "token_type": "bearer", **members}).encode()


def test_tokens_are_read() -> None:
    assert tokens_of(200, answer(), NOW) == Tokens(access="a", issued_at=NOW)
    full = answer(expires_in=60, refresh_token="r", scope="x y")
    assert tokens_of(200, full, NOW) == Tokens(
        access="a", refresh="r", issued_at=NOW, expires_at=NOW + 60, scope=("x", "y")
    )
    assert tokens_of(200, answer(expires_in="60"), NOW).expires_at == NOW + 60
    assert tokens_of(200, answer(expires_in=-5), NOW).expires_at == NOW
    before = Tokens(access="b", refresh="kept", scope=("z",))
    assert tokens_of(200, answer(), NOW, before) == Tokens(access="a", refresh="kept", issued_at=NOW, scope=("z",))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no token"),
        (b"\xff", "no token"),
        (b"{}", "no token"),
        (answer(access_token=""), "no token"),
        (answer(access_token="a\r\nevil: x"), "no token"),
        (answer(access_token="x" * 20_000), "no token"),
        (answer(expires_in="soon"), "no token"),
        (answer(refresh_token="a b"), "no token"),
        (answer(token_type="mac"), "not Bearer"),
    ],
)
def test_what_is_no_token_is_said(body: bytes, said: str) -> None:
    with pytest.raises(OAuthTrouble, match=said):
        tokens_of(200, body, NOW)


def test_a_refusal_is_told_in_words_of_the_standard_only() -> None:
    with pytest.raises(IssuerRefused, match=r"refused \(invalid_grant, HTTP 400\)") as raised:
        tokens_of(400, b'{"error": "invalid_grant", "error_description": "secret"}', NOW)
    assert raised.value.code == "invalid_grant"
    for body in (b'{"error": "<script>"}', b"secret", b"\xff", b"[]"):
        refused = refusal_of(401, body)
        assert (refused.code, refused.reason) == ("", "its authorization server refused (HTTP 401)")


def test_what_we_say_of_ourselves() -> None:
    said = registration(HERE, "none", ("read",))
    assert said["application_type"] == "native"
    assert said["redirect_uris"] == [HERE]
    assert said["grant_types"] == ["authorization_code", "refresh_token"]
    assert said["scope"] == "read"
    assert "scope" not in registration(HERE, "none", ())
