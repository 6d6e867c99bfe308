"""Who comes in: the check of credentials, after the guard and before everything else.

Rules of this file:
- Whoever shows nothing, or nothing that is valid, gets 401 before it is told of anything: not of doors, methods, media
  types, or whether its body can be read. (RFC 6750 3; claude.ai asks with GET, and takes anything else for an answer.)
- A challenge is one line, with `Bearer` first: clients search it with patterns.
- While it is not known which tokens there are, nobody is told that theirs is none: clients would throw it away.
- A valid credential never waits. One that is not is answered at once a few times, then with 429.
- A token for one server is shown at the personal address of that server, in the query or in the header, and no other
  token is taken there: a URL that somebody finds opens nothing else.
- What a role does not allow is no business of this: it never costs anybody a login.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
import trio

from actors.errors import NotAuthenticated, SupervisorError, TokensNotRead, TooManyAttempts
from actors.kit import Latest
from supervisor.config.syntax.address import is_loopback
from supervisor.front.credentials import read_credential
from supervisor.front.edge.request import HttpRequest, Lines
from supervisor.identity.attempts import FailedAttempts, network_of
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.people import OPERATOR, Person
from supervisor.identity.requester import ANYBODY, Requester, RequestOrigin
from supervisor.identity.secrets import digest_of, id_of, is_key
from supervisor.identity.tokens import SavedToken, TokenTable
from supervisor.servers.deployment import Deployment
from supervisor.service.doors.addresses import personal_server
from supervisor.service.port import failure

log = logging.getLogger(__name__)

CHALLENGE: Final = b'Bearer realm="mcpvisor"'
_INVALID: Final = b', error="invalid_token", error_description="not known here, expired or revoked"'
PUBLIC: Final = frozenset({"/", "/healthz", "/readyz", "/oauth/callback"})
"""What is answered to anybody: a daemon that lives says so, and a browser that comes back from a login shows what it
was sent with."""
RETRY_S: Final = 1.0
TELL_EVERY_S: Final = 60.0
ANSWER_S: Final = 1.0
"""What is under way for somebody whose rights have changed ends after this time."""
_MISSING: Final = "show who you are: this daemon takes requests with a token (Authorization: Bearer TOKEN)"
_WRONG: Final = "the token is not known here, has expired or was revoked; ask whoever runs this daemon for another one"


class NotAdmitted(msgspec.Struct, frozen=True):
    """What a request that is not let in is answered with."""

    status: int
    body: bytes
    lines: Lines


class Admission:
    """Lets requests in, and ends what is under way for whoever may not be in any more; `run` has to run for that.

    `operator_key` is that in the `key_file` of the daemon: whoever can read it is its operator, and on this machine is
    told where it is. `clock` gives unix seconds, `audit` is told of wrong tokens.
    """

    def __init__(
        self,
        tokens: TokenTable,
        deployment: Latest[Deployment],
        operator_key: bytes,
        key_file: str,
        clock: Callable[[], float],
        audit: Audit = NO_AUDIT,
    ) -> None:
        self._tokens = tokens
        self._deployment = deployment
        self._operator_key = operator_key
        self._key_file = key_file
        self._clock = clock
        self._audit = audit
        self.attempts = FailedAttempts()
        self._tell_from = -math.inf
        self._inside: dict[trio.CancelScope, Requester] = {}
        tokens.revoked = self._end

    @contextmanager
    def stay(self, requester: Requester) -> Iterator[None]:
        """End the block, cut short, when the credential expires or is revoked, or gives another right."""
        expires_at = requester.expires_at
        left_s = math.inf if expires_at is None else max(0.0, expires_at - self._clock())
        with trio.move_on_after(left_s) as scope:
            self._inside[scope] = requester
            try:
                yield
            finally:
                del self._inside[scope]

    async def run(self) -> None:
        """End what is under way for those who are others since the configuration has changed."""
        while True:
            await self._deployment.wait_newer(self._deployment.version)
            for scope, requester in [*self._inside.items()]:
                token = requester.token
                if token is not None and self._person(token) != requester.person:
                    # Not at once: it may be the very request that made the change, which has to be answered.
                    scope.deadline = min(scope.deadline, trio.current_time() + ANSWER_S)

    def _end(self, digest: bytes) -> None:
        for scope, requester in [*self._inside.items()]:
            if requester.token is not None and requester.token.digest == digest:
                scope.cancel()

    def admit(self, request: HttpRequest) -> Requester | NotAdmitted:
        """Return who sends a request, or how it is answered instead."""
        credential = read_credential(request.fields, request.query)
        if credential.token and (requester := self._requester(credential.token, request)) is not None:
            return requester
        if credential.missing:
            if request.path in PUBLIC:
                return ANYBODY
            here = is_loopback(request.address)
            return _refusal(NotAuthenticated(_MISSING, details={"key_file": self._key_file} if here else None))
        if not self._tokens.read and digest_of(credential.token) is not None:
            return _refusal(TokensNotRead("the daemon has not read its tokens yet, try again", retry_after_s=RETRY_S))
        wait_s = self.attempts.fail(request.address, trio.current_time())
        stranger = RequestOrigin(address=network_of(request.address))
        self._audit.tally("credential.check", outcome="refused", detail="a wrong token", origin=stranger)
        if wait_s:
            self._tell(request.address)
            return _refusal(TooManyAttempts("too many wrong tokens came from this address", retry_after_s=wait_s))
        return _refusal(NotAuthenticated(_WRONG), _INVALID)

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
        if not server and is_key(text, self._operator_key, request.own_end, self._clock()):
            return Requester(person=OPERATOR, credential="operator")
        return None

    def _person(self, token: SavedToken) -> Person | None:
        return self._deployment.value.person(token.user, role=token.role, team=token.team)


def _refusal(error: SupervisorError, more: bytes = b"") -> NotAdmitted:
    lines: list[tuple[bytes, bytes]] = []
    if isinstance(error, NotAuthenticated):
        lines.append((b"www-authenticate", CHALLENGE + more))
    if error.retry_after_s is not None:
        lines.append((b"retry-after", b"%d" % math.ceil(error.retry_after_s)))
    return NotAdmitted(error.http_status, failure(b"null", error).body, tuple(lines))
