"""Logins that are under way: their secrets, how long they may take, and what becomes of them. No I/O.

Each is found by its `state` once and never again (RFC 6749 10.12), or by its number as often as its operator asks.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import Final

import msgspec
import trio

from actors.transport.redaction import Confidential
from supervisor.oauth.issuers.grant import Grant
from supervisor.oauth.issuers.issuer import code_of
from supervisor.oauth.issuers.trouble import IssuerRefused, OAuthTrouble
from supervisor.oauth.port import CallbackQuery, LoginState, LoginStatus

EXPIRY_S: Final = 600.0
MAX_OPEN: Final = 32
MAX_KEPT: Final = 64
_BYTES: Final = 32


class Login(Confidential, msgspec.Struct, kw_only=True, eq=False):
    """A login that leads to `grant`, yet without tokens. `verifier` is for PKCE, `expires_at` of the trio clock."""

    server: str
    grant: Grant
    number: str
    state: str
    verifier: str
    expires_at: float
    url: str = ""
    outcome: LoginState = "pending"
    message: str = ""
    over: trio.Event = msgspec.field(default_factory=trio.Event)

    def end(self, outcome: LoginState, message: str) -> None:
        if self.outcome == "pending":
            self.outcome, self.message, self.url, self.verifier = outcome, message, "", ""
            self.over.set()

    def status(self, now: float) -> LoginStatus:
        left = max(0.0, self.expires_at - now)
        pending = self.outcome == "pending"
        return LoginStatus(
            server=self.server,
            state=self.outcome,
            message=self.message,
            login=self.number,
            url=self.url,
            expires_s=round(left, 1) if pending else 0.0,
        )


class Logins:
    """All logins. `now` gives seconds of the trio clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_number: dict[str, Login] = {}
        self._by_state: dict[bytes, Login] = {}

    def begin(self, server: str, grant: Grant) -> Login:
        """Make a login; one of the same server that is under way ends. Raises `OAuthTrouble` if there are too many."""
        self._expire()
        for other in self._by_state.copy().values():
            if other.server == server:
                self.fail(other, "another login was begun")
        if len(self._by_state) >= MAX_OPEN:
            raise OAuthTrouble("too many logins are under way: finish one, or wait ten minutes")
        number, state, verifier = (secrets.token_urlsafe(_BYTES) for _ in range(3))
        expires_at = self._now() + EXPIRY_S
        login = Login(server=server, grant=grant, number=number, state=state, verifier=verifier, expires_at=expires_at)
        self._by_number[number] = self._by_state[_key(state)] = login
        while len(self._by_number) > MAX_KEPT:
            oldest = next(iter(self._by_number.values()))
            self.fail(oldest, "it was begun too long ago")
            del self._by_number[oldest.number]
        return login

    def find(self, number: str) -> Login | None:
        self._expire()
        return self._by_number.get(number)

    def take(self, state: str) -> Login | None:
        """Return the login that a browser comes back for, once; None if there is none."""
        self._expire()
        return self._by_state.pop(_key(state), None)

    def fail(self, login: Login, why: str) -> None:
        self._by_state.pop(_key(login.state), None)
        login.end("failed", f"{login.server}: the login failed: {why}")

    def _expire(self) -> None:
        for login in self._by_number.copy().values():
            if login.expires_at <= self._now():
                self.fail(login, "nobody finished it in ten minutes")


def _key(state: str) -> bytes:
    """Return what a login is looked up by: how long that takes tells nothing of its secret."""
    return hashlib.sha256(state.encode(errors="surrogatepass")).digest()


def check_answer(login: Login, query: CallbackQuery) -> str:
    """Return the code of what a browser brought back. Raises `OAuthTrouble`.

    Who does not come from the issuer has nothing to say, not even what went wrong (RFC 9207 2.4).
    """
    issuer = login.grant.issuer
    if query.iss is None and issuer.authorization_response_iss_parameter_supported:
        raise OAuthTrouble("the answer does not say which authorization server it comes from")
    if query.iss is not None and query.iss != issuer.issuer:
        raise OAuthTrouble("the answer comes from another authorization server")
    if query.error:
        code = code_of(query.error)
        raise IssuerRefused(f"its authorization server refused ({code or 'an error of its own'})", code)
    if not query.code:
        raise OAuthTrouble("the answer holds no code")
    return query.code
