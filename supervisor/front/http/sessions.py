"""The legacy sessions that are alive, and the sealed ids under which clients may come back.

Rules of this file:
- A session id is a sealed token that carries everything a session needs, so a client survives a restart of the daemon:
  an unknown but valid token silently becomes a live session again.
- A token is `base64url(claims as JSON).base64url(MAC)`: visible ASCII as the specification asks of `Mcp-Session-Id`
  (MCP 2025-11-25, basic/transports, "Session Management"), at most 3 KiB, so that it fits any proxy's header limit.
- The MAC covers the encoded text, and is compared as text: no two tokens mean the same, so a digest names a session. It
  covers the door, too, which is not in the token: a token of one door is none of another.
- Nothing is decoded before the MAC holds, and there is one error for every kind of bad token.
- What a client says about itself is cut to fit; what we say (principal, version, nonce) is never changed.
- Unknown, forged, expired, idle, deleted, somebody else's, of another door: all are "no such session", without a
  difference (MCP 2025-11-25, basic/transports, "Session Management").
- What was deleted or fell idle stays dead: its digest is remembered here, and by `ended` beyond our life. Too many of
  them are remembered as one moment: whatever expires by then and is not alive now is over. Nothing revives by that; a
  client that comes back after a restart opens a new session. What is of another node may go on there.
- One that was subscribed to resources ends with the daemon: what it was subscribed to is not kept, and its client could
  not be told so. Hence `ended` hears of it at once, and it ends rather than being forgotten.
- Too many sessions: of whoever has most of them the longest idle is forgotten, not ended; its client comes back by its
  token, at its own cost.
- Sessions are looked through, oldest use first, when one is opened or asked for, and every `SWEEP_S`: servers are kept
  awake for what they are subscribed to.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import trio

from actors.codes import INVALID_REQUEST
from actors.errors import SupervisorError
from actors.principal import Principal
from supervisor.config import Settings
from supervisor.fleet.peers import Peers
from supervisor.front.listen import NOTHING_TOLD
from supervisor.front.messages import MAX_NAME_BYTES, Key, fit_text, json_bytes
from supervisor.service.asking.exchange import QuestionTable, SessionState
from supervisor.service.client import Client, Updates
from supervisor.service.port import Revisions
from supervisor.store import ALL_UNTIL

_LABEL: Final = b"mcp-session"
_KEY_BYTES: Final = 32
_MAC_BYTES: Final = 24
_MIN_NONCE_BYTES: Final = 16
_MAX_NONCE_BYTES: Final = 32
MAX_TOKEN_CHARS: Final = 3072
MAX_CAPABILITIES_BYTES: Final = 1536
_MAX_CAPABILITY_BRACKETS: Final = 64
# In bytes of JSON. Together with the capabilities and the name of the client these stay below MAX_TOKEN_CHARS.
_MAX_CLIENT_VERSION_BYTES: Final = 48
_MAX_VERSION_BYTES: Final = 32
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
    `life`: names the process in a fleet whose memory has the session; see `supervisor.fleet.engine.Node`.
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
        if len(key) < _KEY_BYTES:
            raise ValueError(f"the key must have at least {_KEY_BYTES} bytes")
        self._keys = [hmac.digest(each, _LABEL, hashlib.sha256) for each in (key, *older)]

    def seal(self, claims: SessionClaims, door: str = "") -> str:
        """Return the token of these claims at a door, with the client's part cut to fit.

        Raises `ValueError` if the nonce, the version or the principal is outside its limits.
        """
        _check(claims)
        fitted = msgspec.structs.replace(
            claims,
            client_name=fit_text(claims.client_name, MAX_NAME_BYTES),
            client_version=fit_text(claims.client_version, _MAX_CLIENT_VERSION_BYTES),
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
    return _encode(hmac.digest(key, covered.encode(), hashlib.sha256)[:_MAC_BYTES])


def session_digest(token: str) -> str:
    """Return the name under which an ended session is remembered: blake2b-256 of the token, in hex."""
    return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _check(claims: SessionClaims) -> None:
    if not _MIN_NONCE_BYTES <= len(claims.nonce) <= _MAX_NONCE_BYTES:
        raise ValueError(f"the nonce must have {_MIN_NONCE_BYTES} to {_MAX_NONCE_BYTES} bytes")
    for name, text, limit in (
        ("version", claims.version, _MAX_VERSION_BYTES),
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
    if len(encoded) > MAX_CAPABILITIES_BYTES or encoded.count(b"{") + encoded.count(b"[") > _MAX_CAPABILITY_BRACKETS:
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


_NONCE_BYTES: Final = 16
_MAX_REMEMBERED: Final = 20_000
SWEEP_S: Final = 60.0


class HttpSession:
    """One live legacy session.

    `told` is what its client knows of the lists for sure; `stream` is the scope of its one event stream. `state` is
    what its exchanges know of it; `updates` are of the resources that it is subscribed to. `kept`: it survives
    the daemon.
    """

    __slots__ = (
        *("client", "digest", "door", "ends_at", "expires_at", "in_flight", "kept", "last_used", "life"),
        *("questions", "state", "stream", "token", "told", "updates"),
    )

    def __init__(self, token: bytes, digest: str, claims: SessionClaims, told: Revisions, door: str) -> None:
        self.token = token
        self.digest = digest
        self.door = door
        self.expires_at = claims.expires_at
        self.life = claims.life
        self.client = Client(
            principal=claims.principal,
            version=claims.version,
            name=claims.client_name,
            capabilities=claims.capabilities,
            session=digest,
        )
        self.told = told
        self.last_used = self.ends_at = 0.0
        self.stream: trio.CancelScope | None = None
        self.in_flight: dict[Key, trio.CancelScope] = {}
        self.questions, self.updates = QuestionTable(), Updates()
        self.state = SessionState(self.questions, "", self.updates)
        self.kept = True

    @property
    def busy(self) -> bool:
        """True while a stream is open or a request is in flight: such a session is not idle."""
        return self.stream is not None or bool(self.in_flight)

    def cancel(self, key: Key, reason: str) -> bool:
        """Cancel the request with this id; False if none is in flight in this session."""
        scope = self.in_flight.get(key)
        if scope is not None:
            scope.cancel(reason=reason)
        return scope is not None


class SessionMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions have ended for good: what must outlive us, as their ids do."""

    ended: Callable[[str, float], None] = lambda digest, expires_at: None
    """Remembers one until it expires anyhow."""
    ended_until: Callable[[float], None] = lambda moment: None
    """Remembers that all are ended which expire by then."""
    kept: Callable[[], Awaitable[object]] = trio.lowlevel.checkpoint
    """Waits until that would survive us, or for as long as is sensible."""
    already_ended: Mapping[str, float] = {}
    """What was remembered, the moment for all of them under `ALL_UNTIL`."""
    peers: Peers | None = None
    """The other nodes of a fleet, which have sessions of their own."""


class Sessions:
    """All live sessions of the HTTP front, in the order of their last use."""

    def __init__(
        self,
        sealer: Sealer,
        settings: Settings,
        memory: SessionMemory,
        *,
        now: Callable[[], float],
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        """`now` is wall time (unix s), `clock` measures idleness (s)."""
        self._life = "" if memory.peers is None else memory.peers.life
        self.kept = memory.kept
        self._sealer = sealer
        self._settings = settings
        self._memory = memory
        self._now = now
        self._clock = clock
        self._ended: dict[str, float] = {}
        self._ended_until = 0.0
        self._live: dict[bytes, HttpSession] = {}
        self._owned: Counter[Principal] = Counter()
        self.take_ended(memory.already_ended)

    def __len__(self) -> int:
        return len(self._live)

    def open(
        self,
        *,
        principal: Principal,
        version: str,
        client_name: str,
        client_version: str,
        capabilities: msgspec.Raw,
        told: Revisions,
        door: str = "",
    ) -> HttpSession:
        """Return a new session at the door of this name; its id is `session.token`."""
        now = self._now()
        token = self._sealer.seal(
            SessionClaims(
                nonce=secrets.token_bytes(_NONCE_BYTES),
                version=version,
                client_name=client_name,
                client_version=client_version,
                capabilities=capabilities,
                principal=principal,
                issued_at=now,
                expires_at=now + self._settings.session_max_age_s,
                life=self._life,
            ),
            door,
        )
        # Unsealed again: a session has the same (fitted) claims before and after a restart.
        return self._admit(token, session_digest(token), self._sealer.unseal(token, now, door), told, door)

    def find(self, token: bytes, principal: Principal, door: str = "") -> HttpSession | None:
        """Return the live session with this id, made alive if it has to be; None if `principal` has none here."""
        session = self._live.get(token)
        if session is None or session.client.principal != principal or session.door != door:
            return self._revive(token, principal, door)  # so that the time does not tell of one of somebody else
        moment = self._clock()
        if moment - session.last_used > self._settings.session_idle_s and not session.busy:
            self._end_idle(session)
            return None
        if moment >= session.ends_at:
            self._forget(session)
            return None
        del self._live[token]  # and in again at the end: the order of the dict is the order of last use
        self._live[token] = session
        session.last_used = moment
        return session

    def live(self, token: bytes) -> HttpSession | None:
        """Return what is alive here of a session, whoever asks for it."""
        return self._live.get(token)

    def read(self, token: bytes, door: str = "") -> KnownSession | None:
        """Return what an id says that is good here, also of a session that may be over."""
        return self._sealer.read(token, self._now(), door)

    def end(self, session: HttpSession) -> None:
        """End a session for good; its stream ends, its requests in flight are cancelled."""
        self._forget(session)
        for scope in list(session.in_flight.values()):
            scope.cancel()
        self._remember(session.digest, session.expires_at)
        self._memory.ended(session.digest, session.expires_at)

    def touch(self, session: HttpSession) -> bool:
        """Count the open stream of a session as use; False if the session is over."""
        if self._live.get(session.token) is not session or self._clock() >= session.ends_at:
            return False
        del self._live[session.token]
        self._live[session.token] = session
        session.last_used = self._clock()
        if session.updates.used and session.kept:
            session.kept = False
            self._memory.ended(session.digest, session.expires_at)
        return True

    def _revive(self, token: bytes, principal: Principal, door: str) -> HttpSession | None:
        if (known := self.read(token, door)) is None:
            return None
        claims, digest = known.claims, known.digest
        if claims.principal != principal or digest in self._ended or claims.expires_at <= self._ended_until:
            return None
        # What its client was told is not known any more, so it is told once that everything may have changed.
        return self._admit(known.token, digest, claims, NOTHING_TOLD, door)

    def _admit(self, token: str, digest: str, claims: SessionClaims, told: Revisions, door: str) -> HttpSession:
        self.sweep()
        while len(self._live) >= self._settings.max_sessions:
            oldest = self._surplus()
            self._forget(oldest) if oldest.kept else self.end(oldest)
        session = HttpSession(token.encode("ascii"), digest, claims, told, door)
        session.last_used = self._clock()
        # The clock of the wall may be set: it says when one ends that comes back, and of those that are alive nothing.
        session.ends_at = session.last_used + min(claims.expires_at - self._now(), self._settings.session_max_age_s)
        self._live[session.token] = session
        self._owned[session.client.principal] += 1
        return session

    def _surplus(self) -> HttpSession:
        """Return the one that makes room: of whoever has most, the longest unused."""
        ((most, _),) = self._owned.most_common(1)
        return next(session for session in self._live.values() if session.client.principal == most)

    def sweep(self) -> None:
        """End what is idle; each session is looked at when it is the longest unused."""
        moment = self._clock()
        while self._live:
            oldest = next(iter(self._live.values()))
            if moment - oldest.last_used <= self._settings.session_idle_s:
                return
            if not oldest.busy:
                self._end_idle(oldest)
            elif not self.touch(oldest):
                self._forget(oldest)

    def _end_idle(self, session: HttpSession) -> None:
        """End a session that nobody uses. One of another node may be used there, or at whichever took it over."""
        self.end(session) if session.life == self._life else self._forget(session)

    def _forget(self, session: HttpSession) -> None:
        if self._live.pop(session.token, None) is not None:
            owner = session.client.principal
            self._owned[owner] -= 1
            if not self._owned[owner]:
                del self._owned[owner]
        session.questions.close()
        session.updates.end()
        if session.stream is not None:
            session.stream.cancel()

    def take_ended(self, ended: Mapping[str, float]) -> None:
        """Take what was remembered of ended sessions by earlier lives: those that are alive end."""
        self._ended_until = max(self._ended_until, ended.get(ALL_UNTIL, 0.0))
        self._ended |= {digest: until for digest, until in ended.items() if digest != ALL_UNTIL}
        for session in [session for session in self._live.values() if session.digest in self._ended]:
            self._forget(session)
        self._bound()

    def _remember(self, digest: str, expires_at: float) -> None:
        self._ended[digest] = expires_at
        self._bound()

    def _bound(self) -> None:
        """Forget the names of the half that expires first, for one moment that covers them all."""
        if len(self._ended) <= _MAX_REMEMBERED:
            return
        now = self._now()
        kept = {digest: until for digest, until in self._ended.items() if until > now}
        if len(kept) > _MAX_REMEMBERED // 2:
            moment = sorted(kept.values())[len(kept) - _MAX_REMEMBERED // 2 - 1]
            kept = {digest: until for digest, until in kept.items() if until > moment}
            self._ended_until = max(self._ended_until, moment)
            self._memory.ended_until(self._ended_until)
        self._ended = kept
