"""Session ids that carry their own claims, sealed with the daemon's key. Pure: key, time and nonce are arguments.

- A token is `base64url(claims as JSON).base64url(MAC)`: visible ASCII as the specification asks of `Mcp-Session-Id`
  (MCP 2025-11-25, basic/transports, "Session Management"), at most 3 KiB, so that it fits any proxy's header limit.
- The MAC covers the encoded text, and is compared as text: no two tokens mean the same, so a digest names a session.
- It covers the door, too, which is not in the token: a token of one door is none of another.
- Nothing is decoded before the MAC holds, and there is one error for every kind of bad token.
- What a client says about itself is cut to fit; what we say (principal, version, nonce) is never changed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, Final, NamedTuple

import msgspec

from actors.codes import INVALID_REQUEST
from actors.errors import SupervisorError
from actors.principal import Principal
from supervisor.front.mcp.envelope import MAX_NAME_BYTES, fit_text, json_bytes

LABEL: Final = b"mcp-session"
KEY_BYTES: Final = 32
MAC_BYTES: Final = 24
MIN_NONCE_BYTES: Final = 16
MAX_NONCE_BYTES: Final = 32
MAX_TOKEN_CHARS: Final = 3072
MAX_CAPABILITIES_BYTES: Final = 1536
MAX_CAPABILITY_BRACKETS: Final = 64
# In bytes of JSON. Together with the capabilities and the name of the client these stay below MAX_TOKEN_CHARS.
MAX_CLIENT_VERSION_BYTES: Final = 48
MAX_VERSION_BYTES: Final = 32
MAX_PRINCIPAL_BYTES: Final = 256

# Every client capability of the legacy revisions (2025-11-25, schema.ts, ClientCapabilities).
_KNOWN_CAPABILITIES: Final[dict[str, Any]] = {
    "roots": {"listChanged": {}},
    "sampling": {"context": {}, "tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {
        "list": {},
        "cancel": {},
        "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
    },
}


class SealBroken(SupervisorError, code=INVALID_REQUEST, http_status=404, kind="not_found"):
    """The token is forged, malformed or expired; which of them is not told."""

    def __init__(self, message: str = "unknown or expired session; initialize again", **more: Any) -> None:
        super().__init__(message, **more)


class SessionClaims(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={
        "nonce": "n",
        "version": "v",
        "client_name": "cn",
        "client_version": "cv",
        "capabilities": "cap",
        "principal": "p",
        "issued_at": "iat",
        "expires_at": "exp",
        "life": "l",
    },
):
    """What a session id says.

    `nonce`: 16 to 32 random bytes. `version`: the negotiated protocol version. `capabilities`: the client's, a JSON
    object. `principal`: who opened the session; whoever presents the token must be the same. Times in unix seconds.
    `life`: names the process in a fleet whose memory has the session; see `supervisor.fleet.records.Node`.
    """

    nonce: bytes
    version: str
    client_name: str
    client_version: str
    capabilities: msgspec.Raw
    principal: Principal
    issued_at: float
    expires_at: float
    life: str = ""


_CLAIMS: Final = msgspec.json.Decoder(SessionClaims)


class KnownSession(NamedTuple):
    """What the id of a session says: its digest, the process that has opened it, until when it is good (unix s)."""

    claims: SessionClaims
    token: str
    digest: str
    life: str
    expires_at: float


class Sealer:
    """Seals session ids with one key, and unseals those of older ones, too, while a fleet changes its key."""

    def __init__(self, key: bytes, *older: bytes) -> None:
        """Derive the keys of session ids from the daemon's. Raises `ValueError` below 32 bytes."""
        if len(key) < KEY_BYTES:
            raise ValueError(f"the key must have at least {KEY_BYTES} bytes")
        self._keys = [hmac.digest(each, LABEL, hashlib.sha256) for each in (key, *older)]

    def seal(self, claims: SessionClaims, door: str = "") -> str:
        """Return the token of these claims at a door, with the client's part cut to fit.

        Raises `ValueError` if the nonce, the version or the principal is outside its limits.
        """
        _check(claims)
        fitted = msgspec.structs.replace(
            claims,
            client_name=fit_text(claims.client_name, MAX_NAME_BYTES),
            client_version=fit_text(claims.client_version, MAX_CLIENT_VERSION_BYTES),
            capabilities=_fit_capabilities(claims.capabilities),
        )
        body = _encode(msgspec.json.encode(fitted))
        return f"{body}.{_mac(self._keys[0], body, door)}"

    def read(self, token: bytes, now: float, door: str = "") -> KnownSession | None:
        """Return what `unseal` does with the names of the session; None where that raises."""
        try:
            text = token.decode("ascii")
            claims = self.unseal(text, now, door)
        except (UnicodeDecodeError, SealBroken):
            return None
        return KnownSession(claims, text, session_digest(text), claims.life, claims.expires_at)

    def unseal(self, token: str, now: float, door: str = "") -> SessionClaims:
        """Return the claims of a token that was sealed here for this door and has not expired at `now` (unix s).

        Raises `SealBroken` for every other string.
        """
        body, _, mac = token.rpartition(".")
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            raise SealBroken
        if not any(hmac.compare_digest(_mac(key, body, door), mac) for key in self._keys):
            raise SealBroken
        try:
            claims = _CLAIMS.decode(_decode(body))
        except ValueError:  # sealed by a version with other claims
            raise SealBroken from None
        if now >= claims.expires_at:
            raise SealBroken
        return claims


def _mac(key: bytes, body: str, door: str) -> str:
    covered = f"{body}/{door}" if door else body  # the encoded text has no slash
    return _encode(hmac.digest(key, covered.encode(), hashlib.sha256)[:MAC_BYTES])


def session_digest(token: str) -> str:
    """Return the name under which an ended session is remembered: blake2b-256 of the token, in hex."""
    return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _check(claims: SessionClaims) -> None:
    if not MIN_NONCE_BYTES <= len(claims.nonce) <= MAX_NONCE_BYTES:
        raise ValueError(f"the nonce must have {MIN_NONCE_BYTES} to {MAX_NONCE_BYTES} bytes")
    for name, text, limit in (
        ("version", claims.version, MAX_VERSION_BYTES),
        ("principal", claims.principal, MAX_PRINCIPAL_BYTES),
    ):
        if json_bytes(text) > limit:
            raise ValueError(f"the {name} is longer than {limit} bytes")


def _fit_capabilities(raw: msgspec.Raw) -> msgspec.Raw:
    """Return the capabilities as compact JSON; only the known ones if they are too many, none if not an object."""
    try:
        capabilities = msgspec.json.decode(raw, type=dict[str, Any])
        encoded = msgspec.json.encode(capabilities)
    except (ValueError, OverflowError, RecursionError):
        return msgspec.Raw(b"{}")
    # The brackets bound the depth, so that no later reader runs into a recursion limit.
    if len(encoded) > MAX_CAPABILITIES_BYTES or encoded.count(b"{") + encoded.count(b"[") > MAX_CAPABILITY_BRACKETS:
        encoded = msgspec.json.encode(_cut_down(capabilities, _KNOWN_CAPABILITIES))
    return msgspec.Raw(encoded)


def _cut_down(value: Any, shape: dict[str, Any]) -> Any:
    if isinstance(value, bool):
        return value
    if not isinstance(value, dict):
        return {}
    return {key: _cut_down(value[key], inner) for key, inner in shape.items() if key in value}


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
