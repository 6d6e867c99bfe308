"""What makes a token of an identity provider a good one, and that nothing else does."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OctKey, RSAKey

from supervisor.identity.people import ALGORITHMS, Introspection, Issuer
from supervisor.identity.requester import EXECUTE, READ, TokenRefused, UnknownKey
from supervisor.oauth.bearer.claims import LEEWAY_S, check_jwt, named_issuer, read_introspection, read_keys
from tests.fakes.identity_provider import DOOR, EC, ED, ISSUER, NOW, RSA, Key, key_set, signed

PROVIDER = Issuer(issuer=ISSUER, algorithms=ALGORITHMS)
UNTYPED = Issuer(issuer=ISSUER, allow_untyped=True)
KEYS = read_keys(key_set(RSA, EC, ED))
GOOD = signed()


def refused(token: str, issuer: Issuer = PROVIDER) -> str:
    with pytest.raises(TokenRefused) as caught:
        check_jwt(token, issuer, KEYS, NOW)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "alg"), [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256"), (ED, "EdDSA"), (ED, "Ed25519")]
)
def test_a_token_by_each_kind_of_key_is_good(key: Key, alg: str) -> None:
    grant = check_jwt(signed(key, alg), PROVIDER, KEYS, NOW)
    assert (grant.issuer, grant.subject, grant.audiences) == (ISSUER, "248289", (DOOR,))
    assert grant.allows(READ)
    assert grant.allows(EXECUTE)


def test_a_scope_is_read_in_each_form_and_reading_is_no_calling() -> None:
    for more in ({"scope": "mcp:read"}, {"scope": None, "scp": "mcp:read"}, {"scope": None, "scp": ["mcp:read"]}):
        grant = check_jwt(signed(**more), PROVIDER, KEYS, NOW)
        assert (grant.allows(READ), grant.allows(EXECUTE)) == (True, False)
    assert not check_jwt(signed(scope=None), PROVIDER, KEYS, NOW).allows(READ)


@pytest.mark.parametrize(
    "more",
    [
        *({name: None} for name in ("iss", "sub", "exp", "aud")),
        {"iss": f"{ISSUER}/"},
        {"iss": "https://evil.example"},
        {"sub": ""},
        {"sub": 5},
        {"aud": []},
        {"aud": ""},
        {"aud": {"a": 1}},
        {"aud": ["a"] * 40},
        {"exp": NOW - LEEWAY_S - 1},
        {"exp": "tomorrow"},
        {"exp": True},
        {"nbf": NOW + LEEWAY_S + 1},
        {"iat": NOW + LEEWAY_S + 1},
        {"nonce": "x"},
        {"at_hash": "x"},
        {"c_hash": "x"},
        {"scope": 5},
    ],
)
def test_a_claim_that_is_wrong_or_of_an_id_token_is_refused(more: dict[str, Any]) -> None:
    refused(signed(**more))


@pytest.mark.parametrize("typ", ["JWT", None, "jwt", "id+jwt", ""])
def test_only_access_tokens_are_taken_unless_others_are_allowed(typ: str | None) -> None:
    token = signed(header={"typ": typ})
    assert "typed" in refused(token)
    if typ != "id+jwt":
        assert check_jwt(token, UNTYPED, KEYS, NOW).subject
        assert "ID token" in refused(signed(header={"typ": typ}, nonce="n"), UNTYPED)


def part(members: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(members).encode()).decode().rstrip("=")


def test_no_token_is_taken_for_the_sake_of_a_secret_or_without_a_signature() -> None:
    head = {"typ": "at+jwt", "kid": "rsa"}
    first, middle, _ = GOOD.split(".")
    text = f"{part({'alg': 'HS256', **head})}.{middle}"
    mac = hmac.digest(RSA.as_pem(private=False), text.encode(), "sha256")
    refused(f"{text}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}")
    refused(f"{part({'alg': 'none', **head})}.{middle}.")
    refused(f"{first}.{middle}.")


def test_a_key_is_used_for_its_own_algorithm_and_use_alone() -> None:
    refused(signed(header={"kid": "ec"}))  # another kind of key
    refused(signed(EC, "ES256"), Issuer(issuer=ISSUER, algorithms=("RS256",)))
    assert read_keys(key_set(RSA, use="enc")) == ()
    assert read_keys(key_set(RSA, key_ops=["encrypt"], use="sig")) == ()
    only_ps = read_keys(key_set(RSA, alg="PS256"))
    with pytest.raises(UnknownKey):
        check_jwt(GOOD, PROVIDER, only_ps, NOW)


@pytest.mark.filterwarnings("ignore")
def test_keys_that_are_secret_small_or_slow_are_none_and_take_no_others_with_them() -> None:
    small = RSAKey.generate_key(1024, {"kid": "small"})
    slow = {**RSA.as_dict(private=False), "e": base64.urlsafe_b64encode(b"\xff" * 200).decode().rstrip("=")}
    document = {
        "keys": [
            *(OctKey.generate_key(256).as_dict(), RSA.as_dict(private=True), small.as_dict(private=False), slow),
            *({"kty": "RSA"}, {"kty": "AKP"}, {"kty": 5}, {}, EC.as_dict(private=False)),
        ]
    }
    (only,) = read_keys(json.dumps(document).encode())
    assert only.kid == "ec"
    assert read_keys(b"[]") == read_keys(b"{") == read_keys(b'{"keys":[5]}') == read_keys(b"[" * 60_000) == ()


def test_a_token_names_its_key_where_there_are_several() -> None:
    nameless = signed(header={"kid": None})
    assert check_jwt(nameless, PROVIDER, read_keys(key_set(RSA, EC)), NOW).subject, "the one of that kind"
    other = RSAKey.generate_key(2048, {"kid": "other"})
    with pytest.raises(TokenRefused, match="by which key"):
        check_jwt(nameless, PROVIDER, read_keys(key_set(RSA, other)), NOW)
    with pytest.raises(UnknownKey):
        check_jwt(signed(other), PROVIDER, KEYS, NOW)


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
def test_keys_that_a_token_brings_along_are_not_looked_at(name: str) -> None:
    other = RSAKey.generate_key(2048, {"kid": "rsa"})
    brought: Any = {"jwk": {"kty": "oct"}, "x5c": ["AA=="]}.get(name, "https://evil.example/keys")
    refused(signed(other, header={name: brought}))


def test_what_a_head_says_beside_is_no_fault_but_what_is_critical_is() -> None:
    assert check_jwt(signed(header={"extra": "x"}), PROVIDER, KEYS, NOW).subject
    first, middle, last = GOOD.split(".")
    head = json.loads(base64.urlsafe_b64decode(first + "=="))
    refused(".".join((part({**head, "crit": ["extra"], "extra": 1}), middle, last)))
    refused(signed(header={"long": "x" * 600}))


def test_what_is_under_way_ends_with_the_token_and_clocks_may_differ_when_it_is_shown() -> None:
    assert check_jwt(signed(exp=NOW + 5), PROVIDER, KEYS, NOW).expires_at == NOW + 5
    assert check_jwt(signed(exp=NOW - 5), PROVIDER, KEYS, NOW).expires_at == NOW - 5 + LEEWAY_S
    assert check_jwt(signed(exp=1e300), PROVIDER, KEYS, NOW).expires_at < NOW + 400 * 86_400


@given(st.data())
def test_no_changed_token_is_good(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD) - 1))
    other = data.draw(st.sampled_from("ABCabc019-_.=~ "))
    changed = GOOD[:at] + other + GOOD[at + 1 :]
    if other != GOOD[at]:
        try:
            grant = check_jwt(changed, PROVIDER, KEYS, NOW)
        except TokenRefused:
            return
        # The last character of a part may have bits that say nothing: then it says the same.
        assert at + 1 == len(GOOD) or GOOD[at + 1] == "."
        assert grant == check_jwt(GOOD, PROVIDER, KEYS, NOW)


@given(st.text(max_size=300) | st.from_regex(r"[\w-]{0,40}\.[\w-]{0,40}\.[\w-]{0,40}"))
def test_whatever_is_shown_is_refused_and_raises_nothing_else(text: str) -> None:
    refused(text)
    named_issuer(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["active", "aud", "sub", "exp", "iss", "scope", "scp", "token_type"]), JSON))
def test_whatever_a_provider_answers_is_a_grant_or_refused(answer: dict[str, Any]) -> None:
    asking = Issuer(issuer=ISSUER, introspection=Introspection(client_id="a", client_secret="b"))
    try:
        grant = read_introspection(json.dumps(answer).encode(), asking, NOW)
    except TokenRefused:
        return
    assert answer["active"] is True
    assert grant.subject == answer["sub"]
    assert grant.audiences
    assert answer.get("iss", ISSUER) in (ISSUER, None)


@pytest.mark.parametrize(
    "answer",
    [
        {"active": False},
        {"active": True, "sub": "a"},
        {"active": True, "sub": "a", "aud": []},
        {"active": True, "aud": DOOR},
        {"active": True, "sub": "a", "aud": DOOR, "iss": "https://evil.example"},
        {"active": True, "sub": "a", "aud": DOOR, "exp": NOW - LEEWAY_S - 1},
        {"active": True, "sub": "a", "aud": DOOR, "token_type": "DPoP"},
        {"active": "true", "sub": "a", "aud": DOOR},
        [],
    ],
)
def test_an_answer_that_leaves_something_open_is_no_yes(answer: Any) -> None:
    with pytest.raises(TokenRefused):
        read_introspection(json.dumps(answer).encode(), PROVIDER, NOW)


def test_a_jwt_says_whose_it_is_before_that_is_believed() -> None:
    assert named_issuer(GOOD) == ISSUER
    assert named_issuer(signed(iss=None)) == ""
    assert named_issuer("opaque") is None
    assert named_issuer("a.b.c") is None


def test_a_key_that_signs_nothing_is_none() -> None:
    exchange = {"kty": "OKP", "crv": "X25519", "x": "3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}
    assert read_keys(json.dumps({"keys": [exchange]}).encode()) == ()
