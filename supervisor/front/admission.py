"""Who comes in: what a request shows, whether that is valid, what is under way by it, and what a challenge says.

The check of credentials is after the guard and before everything else. Rules of this file:
- Whoever shows nothing, or nothing that is valid, gets 401 before it is told of anything: not of doors, methods, media
  types, or whether its body can be read. (RFC 6750 3; claude.ai asks with GET, and takes anything else for an answer.)
- A credential is in the header `Authorization` (RFC 6750 2.1), or, at a personal address alone, in the parameter
  `token`, for clients that can be told an address and nothing else. A page cannot give the handshake of a WebSocket a
  header: there it is the subprotocol `mcp.auth.TOKEN`, or the parameter `ticket` with what `/api/tickets` gave. Whoever
  shows two credentials, or one in another form, has shown a wrong one: nobody guesses which was meant.
- A challenge is one line, with `Bearer` first, no blanks around `=`, and `scope=` nowhere else: clients search it with
  patterns. That of an insufficient scope is always the same: clients end a loop by that.
- While it is not known which tokens there are, nobody is told that theirs is none: clients would throw it away.
- A valid credential never waits. One that is not is answered at once a few times, then with 429.
- A token for one server is shown at the personal address of that server, in the query or in the header, and no other
  token is taken there: a URL that somebody finds opens nothing else.
- What a role does not allow is no business of this: it never costs anybody a login. 403 means one thing alone: the
  token of an identity provider was not issued for that, and another one can be had.
- A token of our own is never shown to an identity provider, whatever it looks like to others.

The daemon is a protected resource (RFC 9728), and so is every door; that of `/mcp` is the daemon's.
- A resource is called by the address that clients use, never by what a request says of that. On this machine alone,
  where none is configured, it is the loopback name that the client came by, as far as that is ours.
- The documents of all addresses below `/mcp` are made alike: they do not tell which servers there are.
- A personal address is none: no provider issues tokens for it.

What is under way is ended before it is done where its credential says so:

    credential            a call, a page                      a stream of changes, a WebSocket     ──────────
──────────────                      ────────────────────────────────     expires               is answered: it began in
time       ends     is revoked            ends                                ends     gives another right   ends, a
moment later                ends, a moment later

- What ends so is cut short: nothing that could be said then would be true. But a stream of events that is gone on with
  later ends as it does otherwise.
- Requests take connections, of which there are so many: nobody has more under way than are left for others.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec
import trio
from msgspec import Struct
from msgspec.structs import replace

from actors.errors import (
    InsufficientScope,
    NotAuthenticated,
    ProviderUnavailable,
    SupervisorError,
    TokensNotRead,
    TooManyAttempts,
    TooManyCalls,
)
from actors.kit import Latest, Shares
from supervisor.config.address import authority, base_url, is_loopback
from supervisor.front.edge.fields import Fields
from supervisor.front.edge.request import HttpRequest, Lines, NotAllowed
from supervisor.front.guard import is_from_here
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.operator_key import PREFIX as OPERATOR_PREFIX
from supervisor.identity.operator_key import OperatorKey
from supervisor.identity.people import OPERATOR, Person
from supervisor.identity.requester import (
    ANYBODY,
    EXECUTE,
    READ,
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
from supervisor.service.doors.addresses import ALL_PATH, CARD, MCP_PATH, door_of, has_card, personal_server
from supervisor.service.doors.cards import CATALOGUE_PATH
from supervisor.service.port import failure

MAX_BYTES: Final = 16 * 1024
"""A longer one is refused before anything is made of it."""
_NAME: Final = b"authorization"
_SCHEME: Final = b"bearer"
_PARAMETER: Final = "token"
TICKET: Final = "ticket"
_SUBPROTOCOLS: Final = b"sec-websocket-protocol"
_SUBPROTOCOL: Final = b"mcp.auth."
_MAX_FIELDS: Final = 20


class Credential(Struct, frozen=True):
    """`token` is empty where a credential was shown that is none; `missing`: none was shown at all."""

    token: str = ""
    missing: bool = False


def read_credential(fields: Fields, query: bytes = b"", *, is_websocket: bool = False) -> Credential:
    """Return what a request shows: its header fields, and the query of a personal address."""
    line = fields.lines.get(_NAME)
    if is_websocket and (offered := _tokens_among_subprotocols(fields)):
        alone = len(offered) == 1 and line is None and not (query and _given_in(query, _PARAMETER) != [])
        return Credential(_text(offered[0])) if alone else Credential()
    if query and (given := _given_in(query, _PARAMETER)) != []:
        return Credential(given[0]) if given is not None and len(given) == 1 and line is None else Credential()
    if line is None:
        return Credential(missing=True)
    scheme, _, token = line.partition(b" ")
    if _NAME in fields.doubled or scheme.lower() != _SCHEME:
        return Credential()
    return Credential(_text(token))


def read_ticket(target: bytes) -> str:
    """Return the ticket in the address of a handshake; empty if there is none, or more than one."""
    given = _given_in(target.partition(b"?")[2], TICKET)
    return given[0] if given is not None and len(given) == 1 else ""


def read_cookie(fields: Fields, name: str) -> str:
    """Return the cookie of this name; empty if there is none, or more than one (RFC 6265 5.4)."""
    pairs = (pair.strip().partition(b"=") for pair in fields.lines.get(b"cookie", b"")[:MAX_BYTES].split(b";"))
    values = [value for key, _, value in pairs if key == name.encode()]
    return values[0].decode("ascii") if len(values) == 1 and values[0].isascii() else ""


def _text(token: bytes) -> str:
    return token.strip().decode("ascii") if token.isascii() and len(token) <= MAX_BYTES else ""


def _tokens_among_subprotocols(fields: Fields) -> list[bytes]:
    offered = (each.strip() for each in fields.lines.get(_SUBPROTOCOLS, b"").split(b","))
    return [each.removeprefix(_SUBPROTOCOL) for each in offered if each.startswith(_SUBPROTOCOL)]


def _given_in(query: bytes, parameter: str) -> list[str] | None:
    """Return every value of a parameter of a query, None for one that cannot be read."""
    try:
        fields = parse_qs(query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        return None
    return [token if token.isascii() and len(token) <= MAX_BYTES else "" for token in fields.get(parameter, [])]


_WELL_KNOWN: Final = "/.well-known/"
METADATA: Final = f"{_WELL_KNOWN}oauth-protected-resource"
_NOT_HERE: Final = msgspec.json.encode(
    {"error": "not_found", "error_description": "there is no authorization server at this address"}
)
"""Clients that look for an authorization server here read `error` as a text (RFC 6749 5.2)."""
_OWN_CHALLENGE: Final = 'Bearer realm="mcpvisor"'
INVALID: Final = ', error="invalid_token", error_description="not valid here, expired or revoked"'
INSUFFICIENT: Final = ', error="insufficient_scope", error_description="the token was not issued for that"'
_PUBLIC_CORS: Final = ((b"access-control-allow-origin", b"*"),)
_MAX_PATH_CHARS: Final = 512
_KEPT: Final = "/~:@!$&'()*+,;="
"""What a path may have as it is (RFC 3986 3.3)."""


class ProtectedResource:
    """What one daemon is called, and who issues tokens for it."""

    def __init__(self, public_url: str, listen_host: str, ports: Collection[int], scheme: str = "http") -> None:
        self._public = public_url.rstrip("/")
        self._scheme = scheme
        self._ports = frozenset(ports)
        self._own = scheme + base_url(listen_host, min(ports, default=0)).removeprefix("http")

    def base(self, fields: Fields) -> str:
        """Return the address of the daemon for whoever sent these headers, which the guard has checked."""
        if self._public:
            return self._public
        host = authority(fields.lines.get(b"host", b"").decode("ascii", "replace"))
        ours = host is not None and is_loopback(host.name) and host.port in self._ports
        return f"{self._scheme}://{host}" if ours else self._own

    def name(self, fields: Fields, path: str) -> str:
        """Return how the resource at a path is called; what is no door belongs to that of `/mcp`."""
        return self.base(fields) + _door_path(path)

    def metadata(self, fields: Fields, path: str, issuers: Iterable[str]) -> bytes | None:
        """Return the document at a path (RFC 9728 3.1, 3.2); None if there is none."""
        below = path.removeprefix(METADATA)
        if below == path or personal_server(below) or (below and _door_path(below) != quote(below, safe=_KEPT)):
            return None
        document = {
            "resource": self.name(fields, below),
            "authorization_servers": list(issuers),
            "scopes_supported": SCOPES,
            "bearer_methods_supported": ("header",),
            "resource_name": "mcpvisor",
        }
        return msgspec.json.encode(document)

    def challenge(self, fields: Fields, path: str) -> str:
        """Return what a client that shows no valid token is told: where it finds out who issues one, and for what."""
        where = f"{self.base(fields)}{METADATA}{_door_path(path)}"
        return f'Bearer resource_metadata="{where}", scope="{" ".join(SCOPES)}"'

    def admits(self, grant: TokenGrant, fields: Fields, path: str, audience: Collection[str]) -> bool:
        """Say whether a token is for what is at a path (RFC 8707 2): the door, the daemon, or what is configured."""
        base = self.base(fields)
        ours = {_normal(f"{base}{_door_path(path)}"), _normal(f"{base}{MCP_PATH}")}
        return any(each in audience or _normal(each) in ours for each in grant.audiences)


def _door_path(path: str) -> str:
    """Return the path of a door, as an address has it, also for its card; that of `/mcp` for what is none."""
    path = path.removesuffix(CARD) if has_card(path) else path
    fits = door_of(path) is not None and len(path) <= _MAX_PATH_CHARS
    return quote(path, safe=_KEPT) if fits else MCP_PATH


@lru_cache(maxsize=1024)
def _normal(address: str) -> str:
    """Return an address in one form: what its letters may be otherwise, without another meaning (RFC 3986 6.2)."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return address
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = f"{(parts.hostname or '').lower()}{'' if port in (None, usual) else f':{port}'}"
    path = quote(unquote(parts.path), safe=_KEPT).rstrip("/")
    more = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{host}{path}{more}"


def needed_scope(path: str, method: str) -> str:
    """Return what a request needs before its body is read: pages that change something are as calls."""
    is_page = door_of(path) is None and path != "/ws"
    return EXECUTE if is_page and method not in ("GET", "HEAD") else READ


ANSWER_S: Final = 1.0
"""What is under way for somebody whose rights have changed ends after this time."""
LOOK_EVERY_S: Final = 1.0
"""So often is looked which providers are to be asked again about tokens of what is under way."""
_MAX_LOOKS: Final = 8


class Ongoing:
    """Ends it as long as it runs. `person_of` says who shows that by the newest configuration."""

    def __init__(
        self,
        person_of: Callable[[Requester], Person | None],
        deployment: Latest[Deployment],
        clock: Callable[[], float],
        bearer: Bearer | None,
        connections: int,
    ) -> None:
        """`clock` gives unix seconds."""
        self._person_of = person_of
        self._deployment = deployment
        self._clock = clock
        self._bearer = bearer
        self._scopes: dict[trio.CancelScope, Requester] = {}
        self._shares = Shares(connections)

    def refusal(self, request: HttpRequest) -> TooManyCalls | None:
        """Return the error for a request of somebody who has too many under way; None if it can be served."""
        principal = request.principal
        return None if self._shares.has_place(principal) else TooManyCalls(self._shares.why_not(principal, "requests"))

    @contextmanager
    def stay(self, request: HttpRequest) -> Iterator[None]:
        """Serve a request in the block, which may be ended before it is answered."""
        requester = request.requester
        with trio.CancelScope() as whole:
            scope = whole

            def end_with_credential(part: trio.CancelScope | None = None) -> None:
                nonlocal scope
                if part is not None:
                    del self._scopes[scope]
                    self._scopes[part] = requester
                    scope = part
                if requester.expires_at is not None:
                    left_s = max(0.0, requester.expires_at - self._clock())
                    scope.deadline = min(scope.deadline, trio.current_time() + left_s)

            request.end_with_credential = end_with_credential
            self._scopes[scope] = requester
            if request.is_websocket:
                end_with_credential()
            self._shares.add(request.principal)
            try:
                yield
            finally:
                self._shares.remove(request.principal)
                del self._scopes[scope]

    def revoke(self, digest: bytes) -> None:
        """End what is under way for whoever has shown this token of our own."""
        for scope, requester in [*self._scopes.items()]:
            if requester.token is not None and requester.token.digest == digest:
                scope.cancel()

    async def run(self) -> None:
        """End what is under way for those who are others since the configuration has changed, or are revoked."""
        async with trio.open_nursery() as nursery:
            if self._bearer is not None:
                nursery.start_soon(self._look_again, self._bearer)
            await self._follow()

    async def _follow(self) -> None:
        while True:
            await self._deployment.wait_newer(self._deployment.version)
            for scope, requester in [*self._scopes.items()]:
                if requester.is_proven and requester.person.user and self._person_of(requester) != requester.person:
                    # Not at once: it may be the very request that made the change, which has to be answered.
                    scope.deadline = min(scope.deadline, trio.current_time() + ANSWER_S)

    async def _look_again(self, bearer: Bearer) -> None:
        """Ask the providers that are asked about tokens whether those of what is under way are still good.

        Those that have expired are not: of them a provider says no more than that.
        """
        places = trio.CapacityLimiter(_MAX_LOOKS)

        async def look(token: str) -> None:
            async with places:
                revoked = await bearer.is_revoked(token)
            for scope, requester in [*self._scopes.items()] if revoked else ():
                if requester.shown == token and self._is_live(requester):
                    scope.cancel()

        while True:
            await trio.sleep(LOOK_EVERY_S)
            async with trio.open_nursery() as nursery:
                for token in {each.shown for each in self._scopes.values() if each.shown and self._is_live(each)}:
                    if bearer.is_due(token):
                        nursery.start_soon(look, token)

    def _is_live(self, requester: Requester) -> bool:
        return requester.expires_at is None or self._clock() < requester.expires_at


log = logging.getLogger(__name__)

_SIGN_IN: Final = b"/ui/sign-in"
PUBLIC: Final = frozenset(
    {"/", "/healthz", "/readyz", "/oauth/callback", _SIGN_IN.decode()}
    | {CATALOGUE_PATH, f"{MCP_PATH}{CARD}", f"{ALL_PATH}{CARD}"}
)
"""What is answered to anybody: a daemon that lives says so, and where it is reached, and a browser that comes back from
a login shows what it was sent with."""
STATIC: Final = "/ui/static/"
"""Style and script of the pages, the same for everybody."""
_RETRY_S: Final = 1.0
_TELL_EVERY_S: Final = 60.0
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
                return (204, b"", _PUBLIC_CORS) if method == "OPTIONS" else (200, document, _PUBLIC_CORS)
        if (path.startswith(_WELL_KNOWN) and path != CATALOGUE_PATH) or (path, method) == ("/register", "POST"):
            return 404, _NOT_HERE, _PUBLIC_CORS
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
            unread = TokensNotRead("the daemon has not read its tokens yet, try again", retry_after_s=_RETRY_S)
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
            return NotAllowed(303, b"", ((b"location", _SIGN_IN + b"?next=" + quote(request.path).encode()),))
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
            challenge = self._resource.challenge(request.fields, request.path) if asked else _OWN_CHALLENGE
            lines.append((b"www-authenticate", (challenge + more).encode()))
        if error.retry_after_s is not None:
            lines.append((b"retry-after", b"%d" % math.ceil(error.retry_after_s)))
        return NotAllowed(error.http_status, failure(b"null", error).body, tuple(lines))

    def _tell(self, address: str) -> None:
        """Log that somebody guesses, now and then: whoever does may come often, and from many addresses."""
        now = trio.current_time()
        if now >= self._tell_from:
            self._tell_from = now + _TELL_EVERY_S
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
