"""One server and who we are to it: finds out what a login takes, and has the tokens."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import trio
from msgspec.structs import replace

from actors.command_line import command
from actors.protocol.agreement.versions import LATEST_LEGACY
from actors.protocol.wire.jsonrpc import encode, request
from actors.transport.http.authorization import Denial, NoToken
from actors.transport.http.remote import Remote
from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.fetch import Fetcher, Located, locate, wanted_scope
from supervisor.oauth.issuers.issuer import AuthorizationServer, Grant, Tokens, known_client
from supervisor.oauth.issuers.metadata import (
    Challenge,
    IssuerRefused,
    OAuthTrouble,
    Unreached,
    challenge_of,
    check_login,
    check_scheme,
)

# Keeps the tokens of one server: gives them out, has them renewed ahead of their end, and once for all who wait.
#
# - A renewal is a task of its own: whoever waits for it may go away, and what it brings is kept before it is used.
# - Trouble on the way to the authorization server says nothing about the tokens; a refusal ends them.
# - A token that is new and refused all the same is not renewed again: the server does not want what we get.
# - The clock on the wall may be set while we run. It counts once, for the seconds that a grant has left when it is
#   taken; from then on they are those of the trio clock.

AGAIN_S: Final = 5.0
"""After a renewal that nobody answered, nobody is asked for so long."""
NEWS_S: Final = 2.0
"""Where others renew the same tokens, what is refused may be what they have renewed: so long they are waited for."""
LOGGED_OUT: Final = "there is no login for it"
ENDED: Final = "its login has ended"
USELESS: Final = "it does not take the token of its login"
MORE: Final = "its login does not allow this"


class GrantSharing(NamedTuple):
    """How tokens are renewed that others have, too: `haste` is how much of the time that is left for it is taken, so
    that not all do it at one moment, and `news_s` how long it takes to hear of theirs.
    """

    haste: float
    news_s: float


ALONE: Final = GrantSharing(1.0, 0.0)


class _Renewal:
    def __init__(self) -> None:
        self.done = trio.Event()
        self.trouble: OAuthTrouble | None = None


class Keeper:
    """The tokens of the server of that name; see `Authorizer`. `save` keeps a grant, or that there is none.

    `clock` gives the unix time in seconds, as in the times of `Tokens`. Where other nodes of a fleet may renew the same
    tokens, `sharing` keeps all from doing it at once.
    `start_soon` starts a task that outlives whoever wants a token.
    """

    def __init__(
        self,
        name: str,
        config: OAuthConfig,
        issuer: AuthorizationServer,
        clock: Callable[[], float],
        *,
        save: Callable[[Grant | None], Awaitable[None]],
        start_soon: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self._name = name
        self.config = config
        self.grant: Grant | None = None
        self._ends_at = math.inf
        self.challenge = Challenge()
        self._machine = config.grant == "client_credentials"
        self.issuer = issuer
        self._clock = clock
        self._save = save
        self._start_soon = start_soon
        self._renewal: _Renewal | None = None
        self._again_at = -math.inf
        self._doubted = ""
        self._why = LOGGED_OUT
        self.sharing = ALONE

    @property
    def tokens(self) -> Tokens | None:
        return self.grant.tokens if self.grant is not None else None

    async def begin(self, kept: Grant | None, challenge: Challenge) -> Grant:
        """Return a client's own grant, with tokens; an empty `challenge` is asked for anew. Raises `OAuthTrouble`."""
        raise NotImplementedError

    def use(self, grant: Grant) -> None:
        self.grant = grant
        left_s = grant.tokens.left_s(self._clock()) if grant.tokens is not None else math.inf
        self._ends_at = trio.current_time() + left_s

    async def take(self, grant: Grant) -> None:
        self.adopt(grant)
        await self._save(grant)

    def adopt(self, grant: Grant | None) -> None:
        """Take a login that is kept already, or that there is none any more."""
        if grant is None:
            self.grant, self._why = None, LOGGED_OUT
            return
        self.use(grant)
        self._why, self._doubted, self._again_at = ENDED, "", -math.inf
        self.challenge = Challenge()

    async def drop(self) -> None:
        self.adopt(None)
        await self._save(None)

    async def token(self) -> str:
        tokens = self.tokens
        if tokens is None:
            return ""
        now = trio.current_time()
        if now >= self._ends_at - tokens.ahead_s * self.sharing.haste and self._renewable(tokens):
            if now >= self._ends_at:
                return await self._wait_renewal(tokens.access)
            if now >= self._again_at:
                self._renew_soon()
        return tokens.access

    def on_accepted(self, token: str) -> None:
        if token == self._doubted:
            self._doubted = ""

    async def on_refused(self, token: str, status: int, challenges: Sequence[str]) -> Denial:
        """Take that the server refused a token, or none; see `Authorizer.on_refused`."""
        challenge = challenge_of(challenges)
        if status == 403:
            return await self._more(token, challenge)
        self.challenge = challenge
        tokens = self.tokens
        if tokens is not None and tokens.access != token:
            return self._another(tokens.access)  # a renewal, or a login, was faster
        if token and token == self._doubted:
            return self._no(USELESS)
        if tokens is None and not self._machine:
            return self._no(self._why)
        if tokens is not None and not self._renewable(tokens):
            await self._end(ENDED)
            return self._no(ENDED)
        return self._another(await self._wait_renewal(token))

    async def _more(self, token: str, challenge: Challenge) -> Denial:
        """What is refused wants more rights: a machine asks for them once, a user is asked."""
        if not challenge.insufficient:
            return Denial()
        self.challenge = challenge
        asked = self.grant.scope if self.grant is not None else ()
        if self._machine and set(challenge.scope) - set(asked):
            return self._another(await self._wait_renewal(token))
        return self._no(MORE)

    def _another(self, token: str) -> Denial:
        return Denial(token=token) if token else self._no(self._why)

    def _no(self, why: str) -> Denial:
        return Denial(login=True, reason=f"{why}; its user has to run `{command('login', self._name)}`")

    def _renewable(self, tokens: Tokens) -> bool:
        return self._machine or bool(tokens.refresh)

    # Renewal --------------------------------------------------------------------------------------------------------

    async def _wait_renewal(self, stale: str) -> str:
        """Return a token in the place of one that is of no use any more; empty if there is none. Raises `NoToken`."""
        if self._renewal is None and (wait_s := self._again_at - trio.current_time()) > 0:
            raise NoToken(f"its login cannot be renewed now; it is tried again in {math.ceil(wait_s)} s")
        renewal = self._renewal or self._renew_soon()
        await renewal.done.wait()
        if isinstance(renewal.trouble, Unreached):
            raise NoToken(f"its login cannot be renewed now: {renewal.trouble.reason}")
        tokens = self.tokens
        if tokens is None or tokens.access == stale:
            return ""
        self._doubted = tokens.access
        return tokens.access

    def _renew_soon(self) -> _Renewal:
        if self._renewal is None:
            self._renewal = _Renewal()
            self._start_soon(self._renew)
        return self._renewal

    async def _renew(self) -> None:
        renewal, grant = self._renewal, self.grant
        assert renewal is not None
        try:
            following = await self._next_grant(grant)
            if self.grant is grant:  # else there was a login, or a logout, meanwhile
                await self._save(following)
                self.use(following)
        except IssuerRefused as refused:
            await trio.sleep(self.sharing.news_s)
            if self.grant is grant:
                renewal.trouble = refused
                await self._end(f"{ENDED}: {refused.reason}", forget=refused.code == "invalid_client")
        except OAuthTrouble as trouble:
            renewal.trouble = trouble
            self._again_at = trio.current_time() + AGAIN_S
            if self._machine:  # what it wanted may be what is wrong: it is asked anew
                self.challenge = Challenge()
            self._why = trouble.reason
        finally:
            self._renewal = None
            renewal.done.set()

    async def _next_grant(self, grant: Grant | None) -> Grant:
        if self._machine:
            return await self.begin(grant, self.challenge)
        assert grant is not None
        return replace(grant, tokens=await self.issuer.refresh(grant))

    async def _end(self, why: str, *, forget: bool = False) -> None:
        """Let go of tokens that are of no use; who we are to the issuer stays, unless it does not know us either."""
        self._why = why
        if self.grant is not None:
            self.grant = None if forget else replace(self.grant, tokens=None)
            await self._save(self.grant)


_CLIENT: Final = {"name": "mcpvisor", "version": "0"}
_PARAMS: Final = {"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
_HELLO: Final = request(b"0", "initialize", encode(_PARAMS))
_HEAD: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class Account(Keeper):
    """`server` is where it is; the rest is as for `Keeper`."""

    def __init__(
        self,
        name: str,
        server: Remote,
        config: OAuthConfig,
        clock: Callable[[], float],
        *,
        save: Callable[[Grant | None], Awaitable[None]],
        start_soon: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self.server = server
        self._fetcher = Fetcher(server.url)
        issuer = AuthorizationServer(config, self._fetcher, clock)
        self._preparing = False
        super().__init__(name, config, issuer, clock, save=save, start_soon=start_soon)

    def restore(self, grant: Grant | None) -> None:
        """Use a grant of an earlier run, if it `fits`."""
        if grant is not None and self.fits(grant):
            self.use(grant)

    def fits(self, grant: Grant) -> bool:
        """Say whether a grant is for this server at this address, and as the client configured."""
        ours = self.config.client_id or (not grant.client.registered and self.config.client_metadata_url)
        known = grant.client.id == ours if ours else grant.client.registered
        return known and grant.server == self.server.url

    async def prepare_login(self, redirect_uri: str) -> tuple[str, Grant]:
        """Return where a user says yes, and the grant that it leads to, without tokens. Raises `OAuthTrouble`.

        One at a time: each may be a registration there.
        """
        if self._preparing:
            raise OAuthTrouble("another login at it is being begun at this moment: try again")
        self._preparing = True
        try:
            located = await self._locate()
            endpoint = check_login(located.issuer)
            check_scheme(endpoint, self.server.url)
            return endpoint, await self._grant(located, redirect_uri, self.grant)
        finally:
            self._preparing = False

    async def begin(self, kept: Grant | None, challenge: Challenge) -> Grant:
        if challenge == Challenge():
            located = await self._locate()
        else:
            located = await locate(self._fetcher, self.server.url, challenge, self.config)
        grant = await self._grant(located, "", kept)
        return replace(grant, tokens=await self.issuer.machine(grant))

    async def _locate(self) -> Located:
        """Ask the server what it wants now. What it wanted before counts where it takes requests without a token now,
        and for rights that a call lacked.
        """
        known = self.challenge
        challenge, wanted = await self._ask_challenge()
        if not wanted:
            challenge, wanted = known, known != Challenge()
        elif known.insufficient:
            challenge = replace(challenge, scope=tuple(dict.fromkeys((*challenge.scope, *known.scope))))
        return await locate(self._fetcher, self.server.url, challenge, self.config, wanted=wanted)

    async def _ask_challenge(self) -> tuple[Challenge, bool]:
        """Ask the server without a token, to be told what it wants, and whether it wants a login at all."""
        head = {**self.server.headers, **_HEAD}
        refused = await self._fetcher.post(self.server.url, head, _HELLO, limit=0)
        return challenge_of(refused.challenges), refused.status == 401

    async def _grant(self, located: Located, redirect_uri: str, kept: Grant | None) -> Grant:
        scope = wanted_scope(self.config, located, _before(kept, located))
        client = known_client(self.config, located.issuer, redirect_uri, kept, self._clock())
        if client is None:
            client = await self.issuer.register(located.issuer, redirect_uri, scope)
        return Grant(
            server=self.server.url, issuer=located.issuer, resource=located.resource, client=client, scope=scope
        )


def _before(kept: Grant | None, located: Located) -> tuple[str, ...]:
    """What was asked for so far, by the same issuer for the same resource."""
    if kept is None or kept.tokens is None:
        return ()
    same = kept.issuer.issuer == located.issuer.issuer and kept.resource == located.resource
    return kept.scope if same else ()
