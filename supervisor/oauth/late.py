"""The logins of a daemon, opened when the first server is configured that may ask for one.

The libraries for that take a fifth of a second and megabytes, and are needed for nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import trio

from actors.kit import Latest
from supervisor.config.values import PROVIDER_TOKENS
from supervisor.host.loading import preload
from supervisor.host.workbench import beside
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.launches.names import AccountName
from supervisor.store import Store

if TYPE_CHECKING:  # as said above
    from actors.transport.http.authorization import Authorizer
    from supervisor.oauth.accounts import OAuthAccounts
    from supervisor.oauth.bearer.verifier import Verifier


async def open_verifier(
    deployment: Latest[Deployment], clock: Callable[[], float], nursery: trio.Nursery
) -> Verifier | None:
    """Return what knows of tokens of identity providers; None where none are taken."""
    if deployment.value.settings.auth not in PROVIDER_TOKENS:
        return None
    await beside(partial(preload, remote=True))
    from supervisor.oauth.bearer.verifier import Verifier

    return Verifier(deployment, clock, nursery)


class LateAccounts:
    """`open` takes what a newer deployment needs; until then nobody can log in."""

    def __init__(
        self,
        deployment: Latest[Deployment],
        store: Store,
        key: bytes,
        clock: Callable[[], float],
        callback_uri: str,
        woken: Callable[[AccountName], Awaitable[None]],
        audit: Audit = NO_AUDIT,
    ) -> None:
        self._make = (deployment, store, key, clock, callback_uri, woken, audit)
        self._accounts: OAuthAccounts | None = None
        self._opened = trio.Event()

    def now(self) -> OAuthAccounts | None:
        return self._accounts

    def authorizer(self, server: DeployedServer) -> Authorizer | None:
        return None if self._accounts is None else self._accounts.authorizer(server)

    async def open(self, nursery: trio.Nursery, wanted: Deployment) -> None:
        """Be able to reach the servers of a deployment, and to log in there, if that was not needed before."""
        enabled = [config for config in wanted.entries.values() if not config.disabled]
        if any(config.kind != "stdio" for config in enabled):
            await beside(partial(preload, remote=True))
        if self._accounts is None and any(config.logs_in for config in enabled):
            from supervisor.oauth.accounts import OAuthAccounts

            accounts = OAuthAccounts(*self._make)
            await nursery.start(accounts.run)
            self._accounts = accounts
            self._opened.set()

    async def wait_opened(self) -> OAuthAccounts:
        """Return the accounts when there are any."""
        await self._opened.wait()
        assert self._accounts is not None
        return self._accounts
