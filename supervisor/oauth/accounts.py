"""The logins of a daemon at its servers: begun by whoever may, finished by a browser, kept across restarts.

Each is of an account: of one user at one server, or of all who have it. Nothing of an account is used for another one.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final, Protocol

import msgspec
import trio
from msgspec.structs import replace

from actors.command_line import command
from actors.errors import LoginFailed
from actors.kit import Latest
from actors.launch import is_own, server_of
from actors.principal import LOCAL, Principal
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.people import Person, user_of
from supervisor.oauth.account import ALONE, Account, GrantSharing
from supervisor.oauth.issuers.issuer import Grant, authorization_url
from supervisor.oauth.issuers.metadata import Challenge, OAuthTrouble
from supervisor.oauth.logins import Login, Logins, check_answer
from supervisor.oauth.port import CallbackQuery, Confirmation, LoginStatus, check_asker, login_user, of_user
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.launches.names import AccountName, account_of
from supervisor.store import Rows, SavedGrant, Store
from supervisor.store.sealing import Sealing

# The logins that outlive the daemon, sealed in its store; in a fleet, all nodes have them.

KEEP_S: Final = 2.0


class Vault:
    """Seals and opens. `key` has 32 bytes.

    Whose it is, for which server, of which issuer and for which resource is sealed with it: a row that is put in
    another's place does not open.
    """

    def __init__(self, key: bytes) -> None:
        self._sealing = Sealing(key)

    def seal(self, principal: Principal, server: str, grant: Grant) -> SavedGrant:
        about = (principal, server, grant.issuer.issuer, grant.resource)
        text = self._sealing.seal(msgspec.json.encode(grant), about)
        return SavedGrant(
            principal=principal, server=server, issuer=grant.issuer.issuer, resource=grant.resource, sealed=text
        )

    def open(self, saved: SavedGrant) -> Grant | None:
        """Return what was sealed; None for what was sealed otherwise, or for something else."""
        return self._sealing.open(saved.sealed, (saved.principal, saved.server, saved.issuer, saved.resource), Grant)


class LoginSharing(Protocol):
    """The other nodes of a fleet, which have the same logins."""

    def tell(self, key: AccountName, value: Grant | None, /) -> None:
        """Let them have a login, or know that there is none."""

    def make_name(self) -> str:
        """Return a random name that says at which node it was made."""

    def of(self, name: AccountName) -> GrantSharing:
        """Return how the tokens of an account are renewed."""


class KeptLogins:
    """Those that are kept, by account. `key` has 32 bytes."""

    def __init__(self, store: Rows[SavedGrant], key: bytes) -> None:
        self.sharing: LoginSharing | None = None
        self._store = store
        self._vault = Vault(key)
        self._saved: dict[AccountName, SavedGrant] = {}

    async def load(self) -> None:
        """Know what was kept in earlier runs."""
        self._saved = {(row.principal, row.server): row for row in await self._store.load()}

    def __iter__(self) -> Iterator[AccountName]:
        return iter(self._saved)

    def find(self, name: AccountName) -> Grant | None:
        saved = self._saved.get(name)
        return None if saved is None else self._vault.open(saved)

    def renewal(self, name: AccountName) -> GrantSharing:
        """Return how the tokens of an account are renewed."""
        return ALONE if self.sharing is None else self.sharing.of(name)

    async def save(self, name: AccountName, grant: Grant | None) -> None:
        """Keep a login of this node, or that there is none."""
        if self.sharing is not None:
            self.sharing.tell(name, grant)
        self.hold(name, grant)
        with trio.move_on_after(KEEP_S):
            await self._store.keep()

    def hold(self, name: AccountName, grant: Grant | None) -> None:
        """Keep what the other nodes know: it need not be on the disk before it is used."""
        principal, server = name
        if grant is None:
            self._saved.pop(name, None)
            self._store.forget(principal, server)
        else:
            self._saved[name] = saved = self._vault.seal(principal, server, grant)
            self._store.put(saved)


class OAuthAccounts:
    """The logins of a daemon at servers, while it runs. `woken` is told of an account with a new login.

    Who asks for one has passed `check_asker`.
    """

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
        self._deployment = deployment
        self.kept = KeptLogins(store.grants, key)
        self._clock = clock
        self._callback_uri = callback_uri
        self._woken = woken
        self._logins = Logins(audit)
        self._audit = audit
        self._strangers: dict[AccountName, Grant] = {}
        self._accounts: dict[AccountName, Account] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read what is kept, and be there for what outlives whoever asks for it."""
        await self.kept.load()
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            while True:
                version = self._deployment.version
                await self._forget_strangers()
                self._welcome_strangers()
                await self._deployment.wait_newer(version)

    # In a fleet -----------------------------------------------------------------------------------------------------

    def share(self, sharing: LoginSharing) -> None:
        """Have other nodes know of all logins from now on."""
        self.kept.sharing = sharing
        for name, account in self._accounts.items():
            account.sharing = sharing.of(name)

    def hear(self, name: AccountName, grant: Grant | None) -> None:
        """Take a login, or a logout, of another node; one of somebody who is not known here yet waits for that."""
        self._strangers.pop(name, None)
        if grant is not None and self._is_stranger(name):
            self._strangers[name] = grant
            return
        account = self._accounts.get(name)
        waits = account is not None and account.tokens is None
        self.kept.hold(name, grant)
        if account is not None and (grant is None or account.fits(grant)):
            account.adopt(grant)
        if waits and grant is not None and grant.tokens is not None:
            self._start_soon(partial(self._woken, name))

    def _is_stranger(self, name: AccountName) -> bool:
        user = user_of(name[0])
        return bool(user) and self._deployment.value.settings.identity.person(user) is None

    def _welcome_strangers(self) -> None:
        for name, grant in [*self._strangers.items()]:
            if not self._is_stranger(name):
                self.hear(name, grant)

    # ----------------------------------------------------------------------------------------------------------------

    async def _forget_strangers(self) -> None:
        """Let go of logins of users who were taken out of the configuration: somebody else may get their name."""
        for name in {*self.kept, *self._accounts}:
            if not self._is_stranger(name):
                continue
            account = self._accounts.pop(name, None)
            if account is not None:
                await account.drop()  # also for a connection that is not closed yet
            else:
                await self.kept.save(name, None)
            self._audit.note("login.drop", name[1], detail=of_user(user_of(name[0])))

    def authorizer(self, server: DeployedServer) -> Account | None:
        """Return who has the tokens for a server; None where the configuration says who we are to it."""
        if not server.config.logs_in:
            return None
        name = account_of(server)
        account = self._accounts.get(name)
        if account is None or account.server.url != server.remote.url or account.config != server.config.oauth:
            account = self._accounts[name] = Account(
                name[1] if name[0] == LOCAL else server_of(name[1]),
                server.remote,
                server.config.oauth,
                self._clock,
                save=partial(self.kept.save, name),
                start_soon=self._start_soon,
            )
            account.sharing = self.kept.renewal(name)
            account.restore(self.kept.find(name))
        account.server = server.remote  # launches may differ in their headers
        return account

    def _start_soon(self, work: Callable[[], Awaitable[None]]) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(work)

    def _of(self, server: str, asker: Person) -> tuple[AccountName, Account]:
        """Return the account of somebody at a server: their own, or that of all. Raises `LoginFailed`."""
        deployed = self._find_server(server, asker)
        name = account_of(deployed) if deployed is not None else (LOCAL, server)  # of a launch
        account = self.authorizer(deployed) if deployed is not None else self._accounts.get(name)
        if account is None:
            raise LoginFailed(f"{server}: {self._why_not(server, deployed)}", server=server)
        return name, account

    def _why_not(self, server: str, deployed: DeployedServer | None) -> str:
        entry = self._deployment.value.entries.get(server_of(server))
        if is_own(server) and entry is not None and entry.logs_in_each:
            return f"each of its users logs in for themself: {command('login', server_of(server))}"
        if deployed is None:
            return "it does not run as configured: see mcpvisor status"
        if deployed.config.kind == "stdio":
            return "it is a local server, which has no login"
        return 'no login is possible: its "headers" hold an Authorization, or "oauth" is switched off'

    def _find_server(self, server: str, asker: Person) -> DeployedServer | None:
        deployment = self._deployment.value
        if not login_user(deployment, server, asker):
            return deployment.servers.get(server)
        known = deployment.settings.identity.person(asker.user)
        if known is None or server not in deployment.launched_for(asker):
            raise LoginFailed(f"{server}: it is none of your servers, so a login would be of no use", server=server)
        launch = deployment.launch_of(server, asker)
        if launch.deployed is None:
            raise LoginFailed(f"{server}: {launch.why}", server=server)
        return launch.deployed

    # Orders ---------------------------------------------------------------------------------------------------------

    async def login(self, server: str, asker: Person) -> LoginStatus:
        """Begin a login, or do it where no user is needed. Raises `LoginFailed`."""
        name, account = self._of(server, asker)
        try:
            if account.config.grant == "client_credentials":
                await account.take(await account.begin(account.grant, Challenge()))
                self._start_soon(partial(self._woken, name))
                self._audit.note("login.finish", server)
                return LoginStatus(server=server, state="done", message=f"{server}: logged in")
            return await self._begin(server, asker, name, account)
        except OAuthTrouble as trouble:
            raise LoginFailed(f"{server}: no login is possible: {trouble.reason}", server=server) from None

    async def _begin(self, server: str, asker: Person, name: AccountName, account: Account) -> LoginStatus:
        uri = account.config.redirect_uri or self._callback_uri
        endpoint, grant = await account.prepare_login(uri)
        people = self._deployment.value.settings.auth != "none"
        login = Login(server=server, account=name, asker=asker, grant=grant, confirms=people)
        if (sharing := self.kept.sharing) is not None:  # whoever comes back with one of these is sent here
            login.number, login.state = sharing.make_name(), sharing.make_name()
        self._logins.begin(login)
        login.url = authorization_url(endpoint, grant, state=login.state, verifier=login.verifier)
        return login.status()

    async def progress(self, login: str, wait_s: float, principal: Principal) -> LoginStatus | None:
        """Return how a login is doing, when it is over or after so long; None if that principal began none. A
        checkpoint.
        """
        known = self._logins.find(login, principal)
        if known is not None:
            left_s = known.expires_at - trio.current_time() if known.is_open else math.inf
            with trio.move_on_after(min(wait_s, left_s)):
                await known.over.wait()
            self._logins.find(login, principal)  # what is over by now is said to be
            return known.status()
        await trio.lowlevel.checkpoint()
        return None

    async def callback(self, query: CallbackQuery) -> LoginStatus | Confirmation | None:
        """Take what a browser brings back; None if nobody waits for it. A checkpoint."""
        await trio.lowlevel.checkpoint()
        login = self._logins.take(query.state)
        if login is None:
            return None
        try:
            code = check_answer(login, query)
        except OAuthTrouble as trouble:
            self._logins.fail(login, trouble.reason)
            return login.status()
        if login.confirms:
            return self._logins.ask_confirmation(login, code)
        login.finishing = True
        return await self._exchange(login, code)

    async def answer(self, login: str, asker: Person, text: str) -> LoginStatus | None:
        """Take the code that a browser showed, or the address that it ended at; None as for `progress`. A checkpoint.

        Raises `InvalidArguments` for a wrong one, as long as another one may be given.
        """
        await trio.lowlevel.checkpoint()
        known = self._logins.find(login, asker.principal)
        if known is None:
            return None
        check_asker(self._deployment.value, asker, known.server)
        if known.is_open:
            try:
                code = self._logins.redeem(known, text)
            except OAuthTrouble as trouble:
                self._logins.fail(known, trouble.reason)
            else:
                return await self._exchange(known, code)
        await known.over.wait()
        return known.status()

    async def _exchange(self, login: Login, code: str) -> LoginStatus:
        self._start_soon(partial(self._finish, login, code))  # whoever waits for it may go away meanwhile
        await login.over.wait()
        return login.status()

    async def _finish(self, login: Login, code: str) -> None:
        try:
            name, account = self._of(login.server, login.asker)
            if name != login.account or account.server.url != login.grant.server:
                raise OAuthTrouble("the server has another address now")
            tokens = await account.issuer.exchange(login.grant, code, login.verifier)
            await account.take(replace(login.grant, tokens=tokens))
        except OAuthTrouble as trouble:
            self._logins.fail(login, trouble.reason)
        except LoginFailed:
            self._logins.fail(login, "the server is not configured any more")
        else:
            self._logins.finish(login)
            await self._woken(login.account)

    async def logout(self, server: str, asker: Person) -> str:
        """Have the tokens of a server taken back, and forget them; return a sentence. Raises `LoginFailed`."""
        _, account = self._of(server, asker)
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
