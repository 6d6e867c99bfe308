"""Who comes in: the check of credentials, after the guard and before everything else.

Rules of this file:
- Whoever shows nothing, or nothing that is valid, gets 401 before it is told of anything: not of doors, methods, media
  types, or whether its body can be read. (RFC 6750 3; claude.ai asks with GET, and takes anything else for an answer.)
- A challenge is one line, with `Bearer` first: clients search it with patterns.
- While it is not known which tokens there are, nobody is told that theirs is none: clients would throw it away.
- A valid credential never waits. One that is not is answered at once a few times, then with 429.
- A token for one server is shown at the personal address of that server, in the query or in the header, and no other
  token is taken there: a URL that somebody finds opens nothing else.
- What a role does not allow is no business of this: it never costs anybody a login. 403 means one thing alone: the
  token of an identity provider was not issued for that, and another one can be had.
- A token of our own is never shown to an identity provider, whatever it looks like to others.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import msgspec
import trio
from msgspec.structs import replace

from actors.errors import (
    InsufficientScope,
    NotAuthenticated,
    ProviderUnavailable,
    SupervisorError,
    TokensNotRead,
    TooManyAttempts,
)
from actors.kit import Latest
from supervisor.front.credentials import read_cookie, read_credential, read_ticket
from supervisor.front.edge.request import HttpRequest, Lines, NotAllowed
from supervisor.front.ongoing import Ongoing
from supervisor.front.proxies import is_from_here
from supervisor.front.resource import (
    INSUFFICIENT,
    INVALID,
    METADATA,
    NOT_HERE,
    OWN_CHALLENGE,
    PUBLIC_CORS,
    WELL_KNOWN,
    ProtectedResource,
    needed_scope,
)
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.operator_key import PREFIX as OPERATOR_PREFIX
from supervisor.identity.operator_key import OperatorKey
from supervisor.identity.people import OPERATOR, Person
from supervisor.identity.requester import (
    ANYBODY,
    SCOPES,
    Bearer,
    FailedAttempts,
    Requester,
    RequestOrigin,
    SignIns,
    Tickets,
    TokenGrant,
    TokenRefused,
    network_of,
)
from supervisor.identity.tokens import PREFIX, SavedToken, TokenTable, digest_of, id_of, id_of_text
from supervisor.servers.deployment import Deployment
from supervisor.service.doors.addresses import ALL_PATH, CARD, MCP_PATH, personal_server
from supervisor.service.doors.cards import CATALOGUE_PATH
from supervisor.service.port import failure

log = logging.getLogger(__name__)

SIGN_IN: Final = b"/ui/sign-in"
PUBLIC: Final = frozenset(
    {"/", "/healthz", "/readyz", "/oauth/callback", SIGN_IN.decode()}
    | {CATALOGUE_PATH, f"{MCP_PATH}{CARD}", f"{ALL_PATH}{CARD}"}
)
"""What is answered to anybody: a daemon that lives says so, and where it is reached, and a browser that comes back from
a login shows what it was sent with."""
STATIC: Final = "/ui/static/"
"""Style and script of the pages, the same for everybody."""
RETRY_S: Final = 1.0
TELL_EVERY_S: Final = 60.0
_MISSING: Final = "show who you are: this daemon takes requests with a token (Authorization: Bearer TOKEN)"
_WRONG: Final = "the token is not known here, has expired or was revoked; ask whoever runs this daemon for another one"
_NOT_FOR_THIS: Final = "the token was not issued for that: sign in again, and allow it"


class Unverified(msgspec.Struct, frozen=True):
    """What a request shows about which somebody has to be asked; `cookie` is what stands for it, if one does."""

    token: str
    cookie: str = ""


class Admission:
    """Lets requests in, and ends what is under way for whoever may not be in any more; `run` has to run for that.

    Without a `bearer` no tokens of identity providers are taken. `resource` is what these would be for.

    Whoever can read the `operator` key is the operator, and on this machine is given a challenge for that. `clock`
    gives unix seconds, `audit` is told of wrong tokens.
    """

    def __init__(
        self,
        tokens: TokenTable,
        deployment: Latest[Deployment],
        operator: OperatorKey,
        clock: Callable[[], float],
        bearer: Bearer | None = None,
        resource: ProtectedResource | None = None,
        audit: Audit = NO_AUDIT,
        tickets: Tickets | None = None,
        connections: int = 1000,
        sign_ins: SignIns | None = None,
    ) -> None:
        self._bearer = bearer
        self._resource = resource or ProtectedResource("", "", ())
        self._tokens = tokens
        self._deployment = deployment
        self._operator = operator
        self._clock = clock
        self._audit = audit
        self.attempts = FailedAttempts()
        self._tell_from = -math.inf
        self._tickets = tickets or Tickets()
        self._sign_ins = sign_ins or SignIns()
        self._sign_ins.check = self.check
        self.ongoing = Ongoing(self._person_of, deployment, clock, bearer, connections)
        tokens.revoked = self._end

    def _end(self, digest: bytes) -> None:
        self._tickets.revoke(digest)
        self._sign_ins.revoke(digest)
        self.ongoing.revoke(digest)

    def public_answer(self, request: HttpRequest) -> tuple[int, bytes, Lines] | None:
        """Return the answer to whoever looks for how to sign in, before anybody is asked who they are: status,
        body, lines.

        None for whatever else is asked.
        """
        path, method = request.path, request.method
        if path.startswith(METADATA) and self._bearer is not None and method in ("GET", "HEAD", "OPTIONS"):
            issuers = [each.issuer for each in self._deployment.value.settings.identity.issuers]
            document = self._resource.metadata(request.fields, path, issuers)
            if document is not None:
                return (204, b"", PUBLIC_CORS) if method == "OPTIONS" else (200, document, PUBLIC_CORS)
        if (path.startswith(WELL_KNOWN) and path != CATALOGUE_PATH) or (path, method) == ("/register", "POST"):
            return 404, NOT_HERE, PUBLIC_CORS
        return None

    def admit(self, request: HttpRequest) -> Requester | NotAllowed | Unverified:
        """Return who sends a request, how it is answered instead, or what has to be asked about: see `ask`."""
        credential = read_credential(request.fields, request.query, is_websocket=request.is_websocket)
        token = credential.token
        if token and (requester := self._requester(token, request)) is not None:
            return requester
        if credential.missing:
            if request.is_websocket and not personal_server(request.path) and (ticket := read_ticket(request.target)):
                holder = self._tickets.take(ticket, trio.current_time())
                return self._wrong(request) if holder is None else self._ask_again(holder, request)
            if request.path in PUBLIC or request.path.startswith(STATIC):
                return ANYBODY
            return self._visitor(request)
        if not self._tokens.read and digest_of(token) is not None:
            unread = TokensNotRead("the daemon has not read its tokens yet, try again", retry_after_s=RETRY_S)
            return self._refusal(request, unread)
        ours = token.startswith((PREFIX, OPERATOR_PREFIX)) or personal_server(request.path)
        if self._bearer is None or not token or ours:
            return self._wrong(request)
        verdict = self._bearer.recall(token)
        return Unverified(token) if verdict is None else self._judge(verdict, Unverified(token), request)

    def _visitor(self, request: HttpRequest) -> Requester | NotAllowed | Unverified:
        """Return who is signed in with a browser, for its pages and what they ask, and for nothing else.

        What changes something is a form with a token of its own: a cookie comes along with whatever a browser is told.
        """
        reads = request.method == "GET" and request.path.startswith("/api/")
        if not (reads or is_page(request.path)):
            return self._missing(request)
        cookie = read_cookie(request.fields, self._sign_ins.cookie)
        requester = self._sign_ins.find(cookie, trio.current_time())
        return self._missing(request) if requester is None else self._ask_again(requester, request, cookie)

    def _missing(self, request: HttpRequest) -> NotAllowed:
        """Return the answer to whoever shows nothing: a browser is led to where it signs in."""
        if is_page(request.path):
            return NotAllowed(303, b"", ((b"location", SIGN_IN + b"?next=" + quote(request.path).encode()),))
        here = is_from_here(request.address, request.ends[1][0], request.fields.lines)
        details = dict(self._operator.challenge(request.own_end)) if here else None
        return self._refusal(request, NotAuthenticated(_MISSING, details=details))

    def _ask_again(
        self, held: Requester, request: HttpRequest, cookie: str = ""
    ) -> Requester | NotAllowed | Unverified:
        """Return what a credential is worth now for which a ticket or a `cookie` stands: what it would be itself."""
        if held.grant is not None and self._bearer is not None:
            verdict = self._bearer.recall(held.shown)
            if verdict is None:
                return Unverified(held.shown, cookie)
            return self._judge(verdict, Unverified(held.shown, cookie), request)
        if not held.person.user:
            return held
        person = None if held.token is None else self._person(held.token)
        if held.token is None or person is None or not self._tokens.is_good(held.token, self._clock()):
            return self._signed_out(cookie, request)
        return replace(held, person=person)  # who may have another role or other servers by now

    def _signed_out(self, cookie: str, request: HttpRequest) -> NotAllowed:
        """Return the answer to what stands for a credential that is none any more."""
        if not cookie:
            return self._wrong(request)
        self._sign_ins.close(cookie)
        return self._missing(request)

    def check(self, text: str, address: str) -> Requester | SupervisorError:
        """Return whose a token is that somebody signs in with; what is wrong is counted."""
        token = self._tokens.find(text, self._clock(), "")
        person = None if token is None else self._person(token)
        if token is not None and person is not None:
            return Requester(person=person, credential=id_of(token.digest), token=token)
        return self._count_wrong(address)

    async def ask(self, unverified: Unverified, request: HttpRequest) -> Requester | NotAllowed:
        """Return the same once an identity provider has been asked about what a request shows."""
        assert self._bearer is not None
        verdict: TokenGrant | TokenRefused
        try:
            verdict = await self._bearer.ask(unverified.token, request.sender)
        except TokenRefused as refused:
            verdict = refused
        except ProviderUnavailable as unavailable:
            return self._refusal(request, unavailable)
        return self._judge(verdict, unverified, request)

    def _judge(
        self, verdict: TokenGrant | TokenRefused, asked: Unverified, request: HttpRequest
    ) -> Requester | NotAllowed:
        if isinstance(verdict, TokenRefused):
            log.debug("the token of an identity provider is refused: %s", verdict)
            return self._signed_out(asked.cookie, request)
        issuer = self._deployment.value.settings.identity.issuer(verdict.issuer)
        person = self._deployment.value.subject(verdict.issuer, verdict.subject)
        audience = () if issuer is None else issuer.audience
        for_this = self._resource.admits(verdict, request.fields, request.path, audience)
        if issuer is None or person is None or not for_this or verdict.expires_at <= self._clock():
            log.debug("the token of an identity provider is of a stranger" if for_this else "it is for somebody else")
            return self._signed_out(asked.cookie, request)
        requester = Requester(person=person, credential=id_of_text(asked.token), grant=verdict, shown=asked.token)
        if not requester.allows(needed_scope(request.path, request.method)):
            return self.insufficient(request)
        return requester

    def insufficient(self, request: HttpRequest, id_: bytes = b"null") -> NotAllowed:
        """Return the answer to a request whose token was not issued for that; `id_` is JSON text."""
        error = InsufficientScope(_NOT_FOR_THIS, details={"scope": " ".join(SCOPES)})
        line = self._resource.challenge(request.fields, request.path) + INSUFFICIENT
        return NotAllowed(error.http_status, failure(id_, error).body, ((b"www-authenticate", line.encode()),))

    def _wrong(self, request: HttpRequest) -> NotAllowed:
        """Return the answer to what is not valid, and count it."""
        error = self._count_wrong(request.sender)
        return self._refusal(request, error, INVALID if isinstance(error, NotAuthenticated) else "")

    def _count_wrong(self, address: str) -> SupervisorError:
        wait_s = self.attempts.fail(address, trio.current_time())
        stranger = RequestOrigin(address=network_of(address))
        self._audit.tally("credential.check", outcome="refused", detail="a wrong token", origin=stranger)
        if wait_s:
            self._tell(address)
            return TooManyAttempts("too many wrong tokens came from this address", retry_after_s=wait_s)
        return NotAuthenticated(_WRONG)

    def _refusal(self, request: HttpRequest, error: SupervisorError, more: str = "") -> NotAllowed:
        lines: list[tuple[bytes, bytes]] = []
        if isinstance(error, NotAuthenticated):
            asked = self._bearer is not None and not personal_server(request.path)
            challenge = self._resource.challenge(request.fields, request.path) if asked else OWN_CHALLENGE
            lines.append((b"www-authenticate", (challenge + more).encode()))
        if error.retry_after_s is not None:
            lines.append((b"retry-after", b"%d" % math.ceil(error.retry_after_s)))
        return NotAllowed(error.http_status, failure(b"null", error).body, tuple(lines))

    def _tell(self, address: str) -> None:
        """Log that somebody guesses, now and then: whoever does may come often, and from many addresses."""
        now = trio.current_time()
        if now >= self._tell_from:
            self._tell_from = now + TELL_EVERY_S
            log.warning("%s shows wrong tokens and is slowed down; %d were wrong so far", address, self.attempts.total)

    def _requester(self, text: str, request: HttpRequest) -> Requester | None:
        server = personal_server(request.path)
        token = self._tokens.find(text, self._clock(), server)
        if token is not None:
            person = self._person(token)
            return None if person is None else Requester(person=person, credential=id_of(token.digest), token=token)
        path = request.target.partition(b"?")[0].decode("ascii")
        if not server and self._operator.admits(text, request.own_end, request.method, path):
            return Requester(person=OPERATOR, credential="operator")
        return None

    def _person(self, token: SavedToken) -> Person | None:
        return self._deployment.value.person(token.user, role=token.role, team=token.team)

    def _person_of(self, requester: Requester) -> Person | None:
        """Return who shows what somebody showed, by the newest configuration."""
        if requester.token is not None:
            return self._person(requester.token)
        grant = requester.grant
        return None if grant is None else self._deployment.value.subject(grant.issuer, grant.subject)


def is_page(path: str) -> bool:
    """Say whether a path is one of those that people look at with a browser."""
    return path in ("/ui", "/questions") or path.startswith(("/ui/", "/questions/"))
