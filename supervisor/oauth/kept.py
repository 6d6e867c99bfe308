"""The logins that outlive the daemon, sealed in its store; in a fleet, all nodes have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import msgspec
import trio

from actors.principal import Principal
from supervisor.oauth.issuers.grant import Grant
from supervisor.oauth.keeper import ALONE, GrantSharing
from supervisor.servers.launches.names import AccountName
from supervisor.store import SavedGrant, Store
from supervisor.store.sealing import Sealing

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

    def tell(self, name: AccountName, grant: Grant | None) -> None:
        """Let them have a login, or know that there is none."""

    def make_name(self) -> str:
        """Return a random name that says at which node it was made."""

    def of(self, name: AccountName) -> GrantSharing:
        """Return how the tokens of an account are renewed."""


class KeptLogins:
    """Those that are kept, by account. `key` has 32 bytes."""

    def __init__(self, store: Store, key: bytes) -> None:
        self.sharing: LoginSharing | None = None
        self._store = store
        self._vault = Vault(key)
        self._saved: dict[AccountName, SavedGrant] = {}

    async def load(self) -> None:
        """Know what was kept in earlier runs."""
        self._saved = {(row.principal, row.server): row for row in await self._store.load_grants()}

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
            self._store.forget_grant(principal, server)
        else:
            self._saved[name] = saved = self._vault.seal(principal, server, grant)
            self._store.save_grant(saved)
