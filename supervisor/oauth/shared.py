"""Logins of a fleet at its servers: who logs in at one node is logged in at all, and tokens are renewed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec
import trio

from supervisor.fleet.lives import DaemonLife
from supervisor.oauth.late import LateAccounts
from supervisor.servers.launches.names import AccountName

if TYPE_CHECKING:  # they need cryptography, which takes megabytes
    from supervisor.oauth.account import GrantSharing
    from supervisor.oauth.issuers.issuer import Grant
    from supervisor.servers.fleet.records import SharedRecords

KIND: Final = "login"
NAME_BYTES: Final = 32
AT_ONCE: Final = 50
"""So many are read before others get their turn."""
_NAME: Final = msgspec.json.Decoder(AccountName)


class SharedLogins:
    """Implements `LoginSharing`. `life` names the process of this node. `run` has to run."""

    def __init__(self, records: SharedRecords, accounts: LateAccounts, life: str) -> None:
        self._records = records
        self._accounts = accounts
        self._life = life
        self._heard = records.hear(KIND, _read)

    def tell(self, name: AccountName, grant: Grant | None) -> None:
        self._records.put(KIND, _key(name), None if grant is None else msgspec.json.encode(grant))

    def make_name(self) -> str:
        return DaemonLife(bytes.fromhex(self._life)).make_name(NAME_BYTES)

    def of(self, name: AccountName) -> GrantSharing:
        from supervisor.oauth.account import NEWS_S, GrantSharing

        share = crc32(f"{self._life} {_key(name)}".encode()) / 2**32
        return GrantSharing(haste=(1 + share) / 2, news_s=NEWS_S)

    async def run(self) -> None:
        """Say which logins are kept here, and take those of other nodes, for ever, once there can be any."""
        accounts = await self._accounts.wait_opened()
        accounts.share(self)
        for number, name in enumerate([*accounts.kept], 1):
            if (grant := accounts.kept.find(name)) is not None:
                self._records.know(KIND, _key(name), msgspec.json.encode(grant))
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        self._records.want_everything()
        while True:
            for name, grant in (await self._heard.wait(1)).items():
                accounts.hear(name, grant)
            await trio.lowlevel.checkpoint()


def _read(name: str, payload: bytes | None) -> tuple[AccountName, Grant | None]:
    from supervisor.oauth.issuers.issuer import Grant

    return _NAME.decode(name), None if payload is None else msgspec.json.decode(payload, type=Grant)


def _key(name: AccountName) -> str:
    return msgspec.json.encode(name).decode()
