"""An identity provider in memory: its key, what it publishes, what it says of tokens, and how often it was asked."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import trio
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from supervisor.oauth.issuers.fetch import Fetched, Fetcher
from supervisor.oauth.issuers.metadata import Unreached

ISSUER = "https://id.example"
DOOR = "https://mcp.example/mcp"
NOW = 1_800_000_000.0
Key = RSAKey | ECKey | OKPKey | OctKey

RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
ED = OKPKey.generate_key("Ed25519", {"kid": "ed"})


def claims(**more: Any) -> dict[str, Any]:
    """The claims of a good token; a None takes one out."""
    whole = {"iss": ISSUER, "sub": "248289", "aud": DOOR, "exp": NOW + 600, "iat": NOW, "scope": "mcp:tools:execute"}
    return {name: value for name, value in (whole | more).items() if value is not None}


def signed(key: Key = RSA, alg: str = "RS256", header: Mapping[str, Any] | None = None, **more: Any) -> str:
    kid = {"kid": key.kid} if key.kid else {}
    head = {"alg": alg, "typ": "at+jwt", **kid, **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    registry = JWSRegistry(algorithms=[alg], strict_check_header=False)
    with warnings.catch_warnings(action="ignore"):  # joserfc has its opinion of some
        return jwt.encode(head, claims(**more), key, registry=registry)


def key_set(*keys: Key, **more: Any) -> bytes:
    return msgspec.json.encode({"keys": [{**key.as_dict(private=False), **more} for key in keys]})


class MemoryProvider(Fetcher):
    """Answers in place of the network. `down`: it cannot be reached; `slow_s`: how long it takes."""

    def __init__(self, *keys: Key) -> None:
        super().__init__(ISSUER)
        self.keys: tuple[Key, ...] = keys or (RSA,)
        self.asked: Counter[str] = Counter()
        self.down = False
        self.slow_s = 0.0
        self.jwks: bytes | None = None
        self.said: dict[str, dict[str, Any]] = {}
        self.headers: Mapping[str, str] = {}

    async def get(self, url: str) -> Fetched:
        path = url.removeprefix(ISSUER)
        await self._take_part(path)
        if path == "/.well-known/oauth-authorization-server":
            body = {
                "issuer": ISSUER,
                "token_endpoint": f"{ISSUER}/token",
                "jwks_uri": f"{ISSUER}/jwks",
                "introspection_endpoint": f"{ISSUER}/introspect",
            }
            return fetched(msgspec.json.encode(body))
        assert path == "/jwks", path
        return fetched(key_set(*self.keys) if self.jwks is None else self.jwks)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, limit: int = 0) -> Fetched:
        await self._take_part(url.removeprefix(ISSUER))
        self.headers = headers
        token = dict(part.split("=") for part in body.decode().split("&"))["token"]
        return fetched(msgspec.json.encode(self.said.get(token, {"active": False})))

    async def _take_part(self, path: str) -> None:
        self.asked[path] += 1
        await trio.sleep(self.slow_s)
        if self.down:
            raise Unreached("it is down")


def fetched(body: bytes, status: int = 200) -> Fetched:
    return Fetched(status=status, body=body, challenges=(), moved=None)
