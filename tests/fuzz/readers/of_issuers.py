"""What authorization servers and identity providers publish and answer, and the tokens of theirs that clients show."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from actors.protocol.wire import json
from actors.transport.http.addresses import where
from actors.transport.http.head import answers, field_value, mark_of, media_type, retry_after_s, session_of
from supervisor.config import OAuthConfig
from supervisor.front.http.heads import header_text
from supervisor.identity.people import Issuer
from supervisor.identity.requester import TokenRefused
from supervisor.oauth.bearer.claims import check_jwt, named_issuer, read_introspection, read_keys
from supervisor.oauth.issuers import metadata
from supervisor.oauth.issuers.issuer import (
    Grant,
    OAuthClient,
    Tokens,
    authorization_url,
    known_client,
    read_registration,
    refusal_of,
    token_request,
    tokens_of,
    wanted_method,
)
from supervisor.oauth.issuers.metadata import OAuthTrouble, check_addresses, check_scheme
from tests.fuzz.target import holds, parts_of, same, text_of

SERVER = "https://a.example/mcp"
_BACK = "http://127.0.0.1:1/x"
_ISSUER = Issuer(issuer="https://i.example", audience=("a",), allow_untyped=True)
_RESOURCE = msgspec.json.Decoder(metadata.ResourceMetadata)
_METADATA = msgspec.json.Decoder(metadata.IssuerMetadata)
_KEYS = (
    b'{"keys":[{"kty":"EC","crv":"P-256","kid":"k","use":"sig","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",'
    b'"y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},{"kty":"OKP","crv":"Ed25519","x":'
    b'"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"oct","k":"AA"}]}'
)
"""Of the examples of RFC 7515 A.3 and RFC 8037 A.1."""


def documents(data: bytes) -> None:
    """Read what an issuer publishes and answers: values, or trouble that repeats nothing of it."""
    with suppress(OAuthTrouble):
        given = tokens_of(200, data, 0.0, Tokens(access="before"))
        assert given.left_s(0.0) >= 0
    refused = refusal_of(400, data)
    assert len(str(refused)) < 200
    client = OAuthClient(id="c", redirect_uri=_BACK)
    with suppress(OAuthTrouble):
        client = read_registration(data, "none", _BACK)
    document = json.read_or(_RESOURCE, data, None)
    if document is not None:
        with suppress(OAuthTrouble):
            metadata.checked_resource(document, SERVER)
        metadata.words_of(" ".join(document.scopes_supported or ()))
    issuer = json.read_or(_METADATA, data, None)
    if issuer is None:
        return
    with suppress(OAuthTrouble):
        metadata.checked_issuer(issuer, issuer.issuer)
    wanted_method(issuer)
    with suppress(OAuthTrouble):
        known_client(OAuthConfig(), issuer, _BACK, None, 0.0)
    grant = Grant(server=SERVER, issuer=issuer, resource=SERVER, client=client, scope=issuer.scopes_supported or ())
    with suppress(OAuthTrouble):
        endpoint = metadata.check_login(issuer)
        check_scheme(endpoint, SERVER)
        assert authorization_url(endpoint, grant, state="s", verifier="v" * 43)
    with suppress(OAuthTrouble):
        token_request(OAuthConfig(), grant, "authorization_code", code="c")


def addresses(data: bytes) -> None:
    """Read challenges, addresses and fields of the head of an answer: nothing private is taken for public."""
    text = text_of(data)
    challenge = metadata.challenge_of(text.split("\n"))
    assert len(challenge.scope) <= metadata.MAX_SCOPES
    for said in (challenge.resource_metadata, text):
        with suppress(OAuthTrouble):
            parts = check_scheme(said, SERVER)
            assert parts.scheme == "https" or parts.hostname == "a.example"
            assert metadata.issuer_addresses(said)
            assert not metadata.covers("https://b.example", said) or parts.hostname == "b.example"
            with suppress(OAuthTrouble):
                check_addresses(parts.hostname or "", [parts.hostname or ""], "o.example", [])
                assert parts.hostname == "o.example" or where(parts.hostname or "") == "public"
    where(text)
    assert len(session_of(text)) <= 1024
    mark_of(text)
    media_type(text)
    seconds = retry_after_s(text)
    assert seconds is None or 0 <= seconds <= 300
    same(header_text(field_value(text).encode("latin-1")), text)
    answers(data, b"1")


def tokens(data: bytes) -> None:
    """Read keys, tokens and answers about tokens: a grant, or a refusal that says why; none is ever granted here."""
    token, document = parts_of(data, 2)
    text = text_of(token)
    keys = read_keys(document) or read_keys(_KEYS)
    named_issuer(text)
    try:
        check_jwt(text, _ISSUER, keys, 0.0)
    except TokenRefused as error:
        holds(len(str(error)) < 300)
    else:
        raise AssertionError("a token was granted that nobody signed")
    with suppress(TokenRefused):
        granted = read_introspection(document, _ISSUER, 0.0)
        assert granted.issuer == _ISSUER.issuer


TARGETS = {
    "issuers": documents,
    "addresses": addresses,
    "tokens": tokens,
}
