"""The legacy sessions that are alive, and the ids under which clients may come back.

Rules of this file:
- A session id is a sealed token that carries everything a session needs, so a client survives a restart of the
  daemon: an unknown but valid token silently becomes a live session again.
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

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
import trio

from actors.principal import Principal
from supervisor.config import Settings
from supervisor.fleet.links.peers import Peers
from supervisor.front.http.session_ids import KnownSession, Sealer, SessionClaims, session_digest
from supervisor.front.mcp.envelope import Key
from supervisor.front.mcp.listen import NOTHING_TOLD
from supervisor.service.asking.exchange import QuestionTable, SessionState
from supervisor.service.client import Client, Updates
from supervisor.service.port import Revisions
from supervisor.store import ALL_UNTIL

NONCE_BYTES: Final = 16
MAX_REMEMBERED: Final = 20_000
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
                nonce=secrets.token_bytes(NONCE_BYTES),
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
        if len(self._ended) <= MAX_REMEMBERED:
            return
        now = self._now()
        kept = {digest: until for digest, until in self._ended.items() if until > now}
        if len(kept) > MAX_REMEMBERED // 2:
            moment = sorted(kept.values())[len(kept) - MAX_REMEMBERED // 2 - 1]
            kept = {digest: until for digest, until in kept.items() if until > moment}
            self._ended_until = max(self._ended_until, moment)
            self._memory.ended_until(self._ended_until)
        self._ended = kept
