"""The logins of a daemon at its servers: begun by an operator, finished by a browser, kept across restarts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio
from msgspec.structs import replace

from actors.errors import LoginFailed
from actors.kit import Latest
from actors.principal import LOCAL, Principal
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.oauth.account import Account
from supervisor.oauth.issuers.grant import Grant
from supervisor.oauth.issuers.issuer import authorization_url
from supervisor.oauth.issuers.metadata import Challenge
from supervisor.oauth.issuers.trouble import OAuthTrouble
from supervisor.oauth.logins import Login, Logins, check_answer
from supervisor.oauth.port import CallbackQuery, LoginStatus
from supervisor.oauth.vault import Vault
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.store import SavedGrant, Store

KEEP_S: Final = 2.0


class OAuthAccounts:
    """Implements `supervisor.oauth.port.Accounts` while it runs. `woken` is told of a server that has a new login."""

    def __init__(
        self,
        deployment: Latest[Deployment],
        store: Store,
        key: bytes,
        clock: Callable[[], float],
        callback_uri: str,
        woken: Callable[[str], Awaitable[None]],
        audit: Audit = NO_AUDIT,
    ) -> None:
        self._deployment = deployment
        self._store = store
        self._vault = Vault(key)
        self._clock = clock
        self._callback_uri = callback_uri
        self._woken = woken
        self._logins = Logins(audit)
        self._audit = audit
        self._saved: dict[str, SavedGrant] = {}
        self._accounts: dict[str, Account] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read what is kept, and be there for what outlives whoever asks for it."""
        rows = await self._store.load_grants()
        self._saved = {row.server: row for row in rows if row.principal == LOCAL}
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    def authorizer(self, server: DeployedServer) -> Account | None:
        """Return who has the tokens for a server; None where the configuration says who we are to it."""
        if not server.config.logs_in:
            return None
        account = self._accounts.get(server.name)
        if account is None or account.server != server.remote or account.config != server.config.oauth:
            account = self._accounts[server.name] = Account(
                server.name,
                server.remote,
                server.config.oauth,
                self._clock,
                save=partial(self._save, server.name),
                start_soon=self._start_soon,
            )
            saved = self._saved.get(server.name)
            account.restore(self._vault.open(saved) if saved is not None else None)
        return account

    def _start_soon(self, work: Callable[[], Awaitable[None]]) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(work)

    async def _save(self, server: str, grant: Grant | None) -> None:
        if grant is None:
            self._saved.pop(server, None)
            self._store.forget_grant(LOCAL, server)
        else:
            self._saved[server] = saved = self._vault.seal(LOCAL, server, grant)
            self._store.save_grant(saved)
        with trio.move_on_after(KEEP_S):
            await self._store.keep()

    def _of(self, server: str) -> Account:
        deployed = self._deployment.value.servers.get(server)
        account = self.authorizer(deployed) if deployed is not None else self._accounts.get(server)  # of a launch
        if account is None:
            raise LoginFailed(f"{server}: {_why_not(deployed)}", server=server)
        return account

    # Orders ---------------------------------------------------------------------------------------------------------

    async def login(self, server: str, principal: Principal) -> LoginStatus:
        del principal  # there is one
        account = self._of(server)
        try:
            if account.config.grant == "client_credentials":
                await account.take(await account.begin(account.grant, Challenge()))
                self._start_soon(partial(self._woken, server))
                self._audit.note("login.finish", server)
                return LoginStatus(server=server, state="done", message=f"{server}: logged in")
            return await self._begin(server, account)
        except OAuthTrouble as trouble:
            raise LoginFailed(f"{server}: no login is possible: {trouble.reason}", server=server) from None

    async def _begin(self, server: str, account: Account) -> LoginStatus:
        uri = account.config.redirect_uri or self._callback_uri
        endpoint, grant = await account.prepare_login(uri)
        login = self._logins.begin(server, grant)
        login.message = f"{server}: waiting for you to say yes"
        login.url = authorization_url(endpoint, grant, state=login.state, verifier=login.verifier)
        return login.status()

    async def progress(self, login: str, wait_s: float) -> LoginStatus | None:
        known = self._logins.find(login)
        if known is not None:
            until = min(trio.current_time() + wait_s, known.expires_at)
            with trio.CancelScope(deadline=until):
                await known.over.wait()
            self._logins.find(login)  # what is over by now is said to be
            return known.status()
        await trio.lowlevel.checkpoint()
        return None

    async def callback(self, query: CallbackQuery) -> LoginStatus | None:
        login = self._logins.take(query.state)
        if login is None:
            await trio.lowlevel.checkpoint()
            return None
        self._start_soon(partial(self._finish, login, query))  # the browser may go away meanwhile
        await login.over.wait()
        return login.status()

    async def _finish(self, login: Login, query: CallbackQuery) -> None:
        try:
            code = check_answer(login, query)
            account = self._of(login.server)
            tokens = await account.issuer.exchange(login.grant, code, login.verifier)
            await account.take(replace(login.grant, tokens=tokens))
        except OAuthTrouble as trouble:
            self._logins.fail(login, trouble.reason)
        except LoginFailed:
            self._logins.fail(login, "the server is not configured any more")
        else:
            self._logins.finish(login)
            await self._woken(login.server)

    async def logout(self, server: str, principal: Principal) -> str:
        del principal  # there is one
        account = self._of(server)
        grant = account.grant
        if grant is None or grant.tokens is None:
            await account.drop()
            return f"{server}: there was no login"
        await account.drop()
        try:
            revoked = await account.issuer.revoke(grant)
        except OAuthTrouble as trouble:
            return f"{server}: logged out here, but its tokens could not be revoked: {trouble.reason}"
        there = "" if revoked else "; its authorization server cannot revoke tokens: they end by themselves"
        return f"{server}: logged out{there}"


def _why_not(server: DeployedServer | None) -> str:
    if server is None:
        return "it does not run as configured: see mcpvisor status"
    if server.config.kind == "stdio":
        return "it is a local server, which has no login"
    return 'no login is possible: its "headers" hold an Authorization, or "oauth" is switched off'
