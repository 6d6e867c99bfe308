"""What the token of an identity provider says, and whether it may be believed. Pure.

- A JWT is checked by joserfc, with keys of the configured provider alone: what a token names (`jku`, `x5u`, `jwk`) is
  not looked at. Only asymmetric algorithms, each with a key of its own type (RFC 8725 3.1, 3.2; RFC 7515 4.1).
- An access token is one by its `typ` (RFC 9068 4). Where that is not asked for, what an ID token has is refused: it was
  made for a client, and says nothing of what that may do here (RFC 8725 3.11).
- Nothing is made of what is longer than a credential may be (`supervisor/front/admission.py`), nor of a head over
  512 bytes, which joserfc refuses.
- Everything that is wrong with a token is a `TokenRefused`, with a reason of ours.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from joserfc.errors import UnsupportedAlgorithmError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey, import_key
from joserfc.jws import JWSRegistry, deserialize_compact
from joserfc.jwt import JWTClaimsRegistry

from actors.protocol.wire import json
from supervisor.identity.people import Issuer
from supervisor.identity.requester import TokenGrant, TokenRefused, UnknownKey
from supervisor.oauth.issuers.metadata import words_of

LEEWAY_S: Final = 60
"""Clocks may differ by so much."""
MAX_LIFE_S: Final = 366 * 86_400.0
MAX_KEYS: Final = 64
MAX_AUDIENCES: Final = 32
_TYPES: Final = frozenset({"at+jwt", "application/at+jwt"})
_UNTYPED: Final = frozenset({"", "jwt", "application/jwt"})
_OF_ID_TOKENS: Final = ("nonce", "at_hash", "c_hash")
"""OpenID Connect Core 2, 3.3.2.11."""
_RSA_BITS: Final = range(2048, 8192 + 1)
_RSA_EXPONENT_BITS: Final = 32
"""A longer exponent takes a second to check one signature."""
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_EDWARDS: Final = frozenset({"EdDSA", "Ed25519"})


class _Head(msgspec.Struct):
    alg: str
    typ: str = ""
    kid: str | None = None


class _Claims(msgspec.Struct):
    """RFC 9068 2.2, RFC 7662 2.2. `scp` is what some providers write in place of `scope`."""

    iss: str
    sub: str
    exp: float
    aud: str | list[str]
    scope: str | None = None
    scp: str | list[str] | None = None


class _Introspected(msgspec.Struct):
    active: bool
    aud: str | list[str] | None = None
    sub: str | None = None
    exp: float | None = None
    iss: str | None = None
    scope: str | None = None
    scp: str | list[str] | None = None
    token_type: str | None = None


class _Named(msgspec.Struct):
    iss: str


class _KeyDocument(msgspec.Struct):
    keys: list[dict[str, Any]]


_head = msgspec.json.Decoder(_Head)
_claims = msgspec.json.Decoder(_Claims)
_named = msgspec.json.Decoder(_Named)
_members = msgspec.json.Decoder(dict[str, Any])
_introspected = msgspec.json.Decoder(_Introspected)
_key_document = msgspec.json.Decoder(_KeyDocument)


class _Algorithms(JWSRegistry):
    """Those that are configured and no others. The library has its own opinion of some, which it gives on stderr."""

    def get_alg(self, name: str) -> Any:
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError
        return self.algorithms[name]


class PublicKey(msgspec.Struct, frozen=True, eq=False):
    """A key that a provider signs by, and the algorithms that it may be for."""

    key: Key
    kid: str | None
    algorithms: frozenset[str]


def named_issuer(token: str) -> str | None:
    """Return the provider that a JWT says it is of, which is not yet believed; None for what is no JWT.

    The empty text for a JWT that names none.
    """
    parts = token.split(".")
    if len(parts) != 3 or _part(parts[0], _head) is None:
        return None
    named = _part(parts[1], _named)
    return "" if named is None else named.iss


def _part(text: str, decoder: msgspec.json.Decoder[Any]) -> Any:
    try:
        return json.read(decoder, urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (json.UnreadableJson, binascii.Error, ValueError):
        return None


def read_keys(document: bytes) -> tuple[PublicKey, ...]:
    """Return the keys of a JWK set that can be used (RFC 7517 5): one that cannot does not take the others with it.

    Takes a millisecond for each key.
    """
    written = json.read_or(_key_document, document, None)
    keys = [] if written is None else [_public_key(each) for each in written.keys[:MAX_KEYS]]
    return tuple(key for key in keys if key is not None)


def _public_key(members: dict[str, Any]) -> PublicKey | None:
    """Secrets, keys for encryption and what is of unusual size are none."""
    if members.get("use", "sig") != "sig" or members.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    try:
        key = import_key(members)
        algorithms = _algorithms(key)
    except Exception:  # noqa: BLE001  (whatever the libraries say of foreign bytes)
        return None
    said, kid = members.get("alg"), members.get("kid")
    if said is not None:
        algorithms &= {said} if said not in _EDWARDS else _EDWARDS
    usable = algorithms and not key.is_private and (kid is None or isinstance(kid, str))
    return PublicKey(key, kid, algorithms) if usable else None


def _algorithms(key: Key) -> frozenset[str]:
    if isinstance(key, RSAKey):
        numbers = key.public_key.public_numbers()
        usual = key.public_key.key_size in _RSA_BITS and numbers.e.bit_length() <= _RSA_EXPONENT_BITS
        return frozenset(f"{kind}{bits}" for kind in ("RS", "PS") for bits in (256, 384, 512)) if usual else frozenset()
    if isinstance(key, ECKey):
        return frozenset({_CURVES[key.curve_name]} if key.curve_name in _CURVES else ())
    if isinstance(key, OKPKey) and key.get("crv") == "Ed25519":
        return _EDWARDS
    return frozenset()


def check_jwt(token: str, issuer: Issuer, keys: Sequence[PublicKey], now: float) -> TokenGrant:
    """Return what a JWT of a provider grants, if it is signed by one of its keys. Raises `TokenRefused`."""
    head = _part(token.partition(".")[0], _head)
    if head is None or head.alg not in issuer.algorithms:
        raise TokenRefused("it is signed by an algorithm that is not configured")
    kind = head.typ.lower()
    if kind not in _TYPES and not (issuer.allow_untyped and kind in _UNTYPED):
        raise TokenRefused('it is not typed as an access token; see "allow_untyped"')
    payload = _verify(token, head, issuer, keys)
    written = json.read_or(_members, payload, None)
    if written is None or any(name in written for name in _OF_ID_TOKENS):
        raise TokenRefused("it is an ID token" if written else "it has no claims")
    _check_claims(written, issuer, now)
    claims = json.read_or(_claims, payload, None)
    if claims is None:
        raise TokenRefused("a claim has another type than it should")
    return _grant(claims.iss, claims.sub, claims.aud, _scopes(claims.scope, claims.scp), claims.exp, now)


def _verify(token: str, head: _Head, issuer: Issuer, keys: Sequence[PublicKey]) -> bytes:
    fitting = [key for key in keys if head.alg in key.algorithms and (head.kid is None or key.kid == head.kid)]
    if not fitting:
        raise UnknownKey("it is signed by a key that its provider does not publish")
    if len(fitting) > 1:
        raise TokenRefused("it does not say by which key of its provider it is signed")
    registry = _Algorithms(algorithms=issuer.algorithms, strict_check_header=False)
    try:
        return bytes(deserialize_compact(token, fitting[0].key, registry=registry).payload)
    except Exception as error:  # noqa: BLE001  (whatever the libraries say of foreign bytes)
        raise TokenRefused(f"its signature or its head is wrong ({type(error).__name__})") from None


def _check_claims(written: dict[str, Any], issuer: Issuer, now: float) -> None:
    rules = JWTClaimsRegistry(
        now=int(now),
        leeway=LEEWAY_S,
        iss={"essential": True, "value": issuer.issuer},
        sub={"essential": True},
        exp={"essential": True},
        aud={"essential": True},
    )
    try:
        rules.validate(written)
    except Exception as error:  # noqa: BLE001  (whatever the library says of foreign values)
        raise TokenRefused(f"its claims are not those of a valid token ({type(error).__name__})") from None


def read_introspection(body: bytes, issuer: Issuer, now: float) -> TokenGrant:
    """Return what a provider says that a token grants (RFC 7662 2.2). Raises `TokenRefused`.

    An answer that names no audience could be about a token for anybody: it is not taken.
    """
    answer = json.read_or(_introspected, body, None)
    if answer is None or not answer.active:
        raise TokenRefused(
            "its provider says that it is none" if answer else "its provider gave an answer that is none"
        )
    if answer.iss is not None and answer.iss != issuer.issuer:
        raise TokenRefused("its provider says that another one issued it")
    if answer.token_type is not None and answer.token_type.lower() not in ("bearer", "access_token"):
        raise TokenRefused("it is of a type that is not Bearer")
    if not answer.sub or not answer.aud:
        raise TokenRefused("its provider does not say whose it is, or for what")
    if answer.exp is not None and answer.exp + LEEWAY_S < now:
        raise TokenRefused("it has expired")
    return _grant(issuer.issuer, answer.sub, answer.aud, _scopes(answer.scope, answer.scp), answer.exp, now)


def _grant(
    issuer: str, subject: str, audience: str | list[str], scopes: frozenset[str], expires_at: float | None, now: float
) -> TokenGrant:
    audiences = (audience,) if isinstance(audience, str) else tuple(audience)
    if len(audiences) > MAX_AUDIENCES:
        raise TokenRefused("it is for more audiences than are looked at")
    until = most = now + MAX_LIFE_S
    if expires_at is not None:
        # What is under way ends with the token. Who comes while clocks may still differ has until they cannot.
        until = min(expires_at if now < expires_at else expires_at + LEEWAY_S, most)
    return TokenGrant(issuer=issuer, subject=subject, audiences=audiences, scopes=scopes, expires_at=until)


def _scopes(scope: str | None, scp: str | list[str] | None) -> frozenset[str]:
    written = scope if scope is not None else scp if isinstance(scp, str) else " ".join(scp or ())
    return frozenset(words_of(written))
