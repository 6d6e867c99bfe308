"""One server and who we are to it: finds out what a login takes, and has the tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from actors.protocol.agreement.versions import LATEST_LEGACY
from actors.protocol.wire.jsonrpc import encode, request
from actors.transport.http.remote import Remote
from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.discovery import Located, locate, wanted_scope
from supervisor.oauth.issuers.fetch import Fetcher
from supervisor.oauth.issuers.grant import Grant
from supervisor.oauth.issuers.issuer import AuthorizationServer
from supervisor.oauth.issuers.metadata import Challenge, challenge_of, check_login
from supervisor.oauth.issuers.registration import known_client
from supervisor.oauth.issuers.targets import check_scheme
from supervisor.oauth.issuers.trouble import OAuthTrouble
from supervisor.oauth.keeper import Keeper

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
