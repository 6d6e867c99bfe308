"""Logins of a fleet at its servers: who logs in at one node is logged in at all, and tokens are renewed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import msgspec
import trio

from supervisor.fleet.peers import DaemonLife
from supervisor.oauth.late import LateAccounts
from supervisor.servers.fleet.records import Shared, SharedRecords
from supervisor.servers.launches.names import AccountName

if TYPE_CHECKING:  # they need cryptography, which takes megabytes
    from supervisor.oauth.account import GrantSharing

NAME_BYTES: Final = 32
AT_ONCE: Final = 50
"""So many are read before others get their turn."""


class SharedLogins(Shared[AccountName, Any]):
    """Implements `LoginSharing`; each is a `Grant`, which is imported late.

    `life` names the process of this node. `run` has to run.
    """

    def __init__(self, records: SharedRecords, accounts: LateAccounts, life: str) -> None:
        super().__init__(records, "login", AccountName, None, msgspec.json)
        self._accounts = accounts
        self._life = life

    def value_type(self) -> Any:
        from supervisor.oauth.issuers.issuer import Grant

        return Grant

    def make_name(self) -> str:
        return DaemonLife(bytes.fromhex(self._life)).make_name(NAME_BYTES)

    def of(self, name: AccountName) -> GrantSharing:
        from supervisor.oauth.account import NEWS_S, GrantSharing

        share = crc32(f"{self._life} {self.name_of(name)}".encode()) / 2**32
        return GrantSharing(haste=(1 + share) / 2, news_s=NEWS_S)

    async def run(self) -> None:
        """Say which logins are kept here, and take those of other nodes, for ever, once there can be any."""
        accounts = await self._accounts.wait_opened()
        accounts.share(self)
        for number, name in enumerate([*accounts.kept], 1):
            if (grant := accounts.kept.find(name)) is not None:
                self.know(name, grant)
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        self.records.want_everything()
        while True:
            for name, heard in (await self.wait(1)).items():
                accounts.hear(name, heard)
            await trio.lowlevel.checkpoint()
