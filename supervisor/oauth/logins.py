"""Logins that are under way: their secrets, how long they may take, and what becomes of them. No I/O.

Each is found by its `state` once and never again (RFC 6749 10.12), or by its number as often as its operator asks.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final, Literal

import msgspec
import trio

from actors.transport.redaction import Confidential
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.requester import ORIGIN, RequestOrigin
from supervisor.oauth.issuers.grant import Grant
from supervisor.oauth.issuers.issuer import code_of
from supervisor.oauth.issuers.trouble import IssuerRefused, OAuthTrouble
from supervisor.oauth.port import CallbackQuery, LoginState, LoginStatus

EXPIRY_S: Final = 600.0
MAX_OPEN: Final = 32
MAX_KEPT: Final = 64


class Login(Confidential, msgspec.Struct, kw_only=True, eq=False):
    """A login that leads to `grant`, yet without tokens. `verifier` is for PKCE, `expires_at` of the trio clock.

    `state` is empty once nobody can come back with it; `origin` is who began it.
    """

    server: str
    grant: Grant
    number: str = msgspec.field(default_factory=secrets.token_urlsafe)
    state: str = msgspec.field(default_factory=secrets.token_urlsafe)
    verifier: str = msgspec.field(default_factory=secrets.token_urlsafe)
    expires_at: float = msgspec.field(default_factory=lambda: trio.current_time() + EXPIRY_S)
    url: str = ""
    outcome: LoginState = "pending"
    message: str = ""
    origin: RequestOrigin | None = msgspec.field(default_factory=ORIGIN.get)
    over: trio.Event = msgspec.field(default_factory=trio.Event)

    def end(self, outcome: LoginState, message: str) -> None:
        if self.outcome == "pending":
            self.outcome, self.message, self.url, self.verifier = outcome, message, "", ""
            self.over.set()

    def status(self) -> LoginStatus:
        left = max(0.0, self.expires_at - trio.current_time())
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
    """All logins, by number."""

    def __init__(self, audit: Audit = NO_AUDIT) -> None:
        self._audit = audit
        self._logins: dict[str, Login] = {}

    def begin(self, server: str, grant: Grant) -> Login:
        """Make a login; one of the same server that is under way ends. Raises `OAuthTrouble` if there are too many."""
        for other in self._open():
            if other.server == server:
                self.fail(other, "another login was begun")
        if len(self._open()) >= MAX_OPEN:
            raise OAuthTrouble("too many logins are under way: finish one, or wait ten minutes")
        login = Login(server=server, grant=grant)
        self._logins[login.number] = login
        while len(self._logins) > MAX_KEPT:
            oldest = next(iter(self._logins.values()))
            self.fail(oldest, "it was begun too long ago")
            del self._logins[oldest.number]
        return login

    def find(self, number: str) -> Login | None:
        self._expire()
        return self._logins.get(number)

    def take(self, state: str) -> Login | None:
        """Return the login that a browser comes back for, once; None if there is none."""
        given = state.encode(errors="surrogatepass")
        for login in self._open():
            if hmac.compare_digest(login.state.encode(), given):
                login.state = ""
                return login
        return None

    def fail(self, login: Login, why: str) -> None:
        login.state = ""
        self._end(login, "failed", f"{login.server}: the login failed: {why}")

    def finish(self, login: Login) -> None:
        self._end(login, "done", f"{login.server}: logged in")

    def _end(self, login: Login, outcome: Literal["done", "failed"], message: str) -> None:
        if login.outcome == "pending":
            self._audit.note("login.finish", login.server, outcome=outcome, origin=login.origin)
            login.end(outcome, message)

    def _open(self) -> list[Login]:
        self._expire()
        return [login for login in self._logins.values() if login.state]

    def _expire(self) -> None:
        for login in self._logins.values():
            if login.expires_at <= trio.current_time():
                self.fail(login, "nobody finished it in ten minutes")


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
