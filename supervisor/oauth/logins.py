"""Logins that are under way: their secrets, how long they may take, and what becomes of them. No I/O.

- Each is found by its `state` once and never again (RFC 6749 10.12), by its number as often as whoever began it asks.
- Where several people use the daemon, whoever's browser comes back may be another one than who began the login, whose
  tokens these would then be. So the browser is shown a code, and the login goes on when whoever began it gives that.
- A browser that cannot reach the daemon ends at an address with the same in it. That is as good as the code: nobody
  has both but who began the login, unless they were given it.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final, Literal

import msgspec
import trio

from actors.errors import InvalidArguments
from actors.principal import Principal
from actors.transport.redaction import Confidential
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.people import Person, user_of
from supervisor.identity.requester import ORIGIN, RequestOrigin
from supervisor.oauth.issuers.issuer import Grant, code_of
from supervisor.oauth.issuers.metadata import IssuerRefused, OAuthTrouble
from supervisor.oauth.port import CallbackQuery, Confirmation, LoginState, LoginStatus, of_user, query_in
from supervisor.servers.launches.names import AccountName

EXPIRY_S: Final = 600.0
MAX_OPEN: Final = 64
MAX_KEPT: Final = 128
ALPHABET: Final = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
"""Of the codes that are shown, without letters and digits that look like each other."""
CODE_CHARS: Final = 8
MAX_TRIES: Final = 5
"""So often somebody may be wrong about one login."""


class Login(Confidential, msgspec.Struct, kw_only=True, eq=False):
    """A login that leads to `grant`, yet without tokens. `verifier` is for PKCE, `expires_at` of the trio clock.

    `asker` began it, for an `account`; `origin` is of the request that did. `returned`: a browser came back with its
    `state`. If it `confirms`, what that brought is the `code`, which waits until the `confirmation` is given, in so
    many `tries`. `finishing`: it goes on to its tokens.
    """

    server: str
    account: AccountName
    asker: Person
    grant: Grant
    confirms: bool = False
    number: str = msgspec.field(default_factory=secrets.token_urlsafe)
    state: str = msgspec.field(default_factory=secrets.token_urlsafe)
    verifier: str = msgspec.field(default_factory=secrets.token_urlsafe)
    expires_at: float = msgspec.field(default_factory=lambda: trio.current_time() + EXPIRY_S)
    url: str = ""
    returned: bool = False
    code: str = ""
    confirmation: str = ""
    tries: int = MAX_TRIES
    finishing: bool = False
    outcome: LoginState = "pending"
    message: str = ""
    origin: RequestOrigin | None = msgspec.field(default_factory=ORIGIN.get)
    over: trio.Event = msgspec.field(default_factory=trio.Event)

    @property
    def is_open(self) -> bool:
        """Whether it waits for a browser, or for whoever began it."""
        return self.outcome == "pending" and not self.finishing

    def end(self, outcome: LoginState, message: str) -> None:
        if self.outcome == "pending":
            self.outcome, self.message, self.finishing = outcome, message, False
            self.url = self.state = self.verifier = self.code = self.confirmation = ""
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
            confirms=pending and self.confirms,
        )


class Logins:
    """All logins, by number."""

    def __init__(self, audit: Audit = NO_AUDIT) -> None:
        self._audit = audit
        self._logins: dict[str, Login] = {}

    def begin(self, login: Login) -> Login:
        """Take a login; one of the same account that is under way ends. Raises `OAuthTrouble` if there are too many.

        One who has many under way leaves as many places free.
        """
        for other in self._open():
            if other.account == login.account:
                self.fail(other, "another login was begun")
        under_way = [other for other in self._logins.values() if other.outcome == "pending"]
        own = sum(other.asker.principal == login.asker.principal for other in under_way)
        if own >= MAX_OPEN - len(under_way):
            raise OAuthTrouble("too many logins are under way: finish one, or wait ten minutes")
        login.message = f"{login.server}: waiting for you to say yes"
        self._logins[login.number] = login
        if len(self._logins) > MAX_KEPT:
            del self._logins[self._oldest_over(login.asker.principal)]
        return login

    def _oldest_over(self, principal: Principal) -> str:
        """Return the oldest that is over, of whoever begins another one if there is any of theirs."""
        over = [login for login in self._logins.values() if login.outcome != "pending"]
        return min(over, key=lambda login: login.asker.principal != principal).number

    def find(self, number: str, principal: Principal) -> Login | None:
        """Return a login that this principal began."""
        self._expire()
        login = self._logins.get(number)
        return login if login is not None and login.asker.principal == principal else None

    def take(self, state: str) -> Login | None:
        """Return the login that a browser comes back for, once; None if there is none."""
        for login in self._open():
            if not login.returned and _same(login.state, state):
                login.returned = True
                return login
        return None

    def ask_confirmation(self, login: Login, code: str) -> Confirmation:
        """Keep what a browser brought until whoever began the login gives the code that the browser shows."""
        login.code, login.confirmation = code, "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
        login.message = f"{login.server}: waiting for the code that the browser shows"
        half = CODE_CHARS // 2
        shown = f"{login.confirmation[:half]}-{login.confirmation[half:]}"
        return Confirmation(server=login.server, user=login.asker.user, code=shown)

    def redeem(self, login: Login, answer: str) -> str:
        """Return what the authorization server gave, for what whoever began a login that is open says of its browser.

        That is the code that it shows, or the address that it ended at. Raises `InvalidArguments` if it is wrong,
        `OAuthTrouble` if it was wrong too often, or says that there is no login.
        """
        if any(each in answer for each in ":?="):
            query = query_in(answer)
            if query is None or not _same(login.state, query.state):
                raise self._wrong(login, "that is not the address that this login ends at")
            code = check_answer(login, query)
        elif not login.confirms:
            raise InvalidArguments("paste the whole address that the browser ended at, with what stands behind the ?")
        elif not login.confirmation:
            raise InvalidArguments("no browser has come back yet: say yes there, then give the code that it shows")
        else:
            given = "".join(each for each in answer.upper() if each.isalnum())
            if not _same(login.confirmation, given):
                raise self._wrong(login, "that is not the code that the browser shows")
            code = login.code
        login.finishing = True
        return code

    def _wrong(self, login: Login, text: str) -> InvalidArguments | OAuthTrouble:
        login.tries -= 1
        whose = of_user(user_of(login.account[0]))
        self._audit.tally("login.answer", login.server, outcome="refused", detail=whose)
        if not login.tries:
            return OAuthTrouble(f"what was given for it was wrong {MAX_TRIES} times")
        left = "once more" if login.tries == 1 else f"{login.tries} times more"
        return InvalidArguments(f"{text}; you may try {left}")

    def fail(self, login: Login, why: str) -> None:
        self._end(login, "failed", f"{login.server}: the login failed: {why}")

    def finish(self, login: Login) -> None:
        self._end(login, "done", f"{login.server}: logged in")

    def _end(self, login: Login, outcome: Literal["done", "failed"], message: str) -> None:
        if login.outcome == "pending":
            whose = of_user(user_of(login.account[0]))
            self._audit.note("login.finish", login.server, outcome=outcome, detail=whose, origin=login.origin)
            login.end(outcome, message)

    def _open(self) -> list[Login]:
        self._expire()
        return [login for login in self._logins.values() if login.is_open]

    def _expire(self) -> None:
        for login in self._logins.values():
            if login.is_open and login.expires_at <= trio.current_time():
                self.fail(login, "nobody finished it in ten minutes")


def _same(ours: str, given: str) -> bool:
    return hmac.compare_digest(ours.encode(), given.encode(errors="surrogatepass"))


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
