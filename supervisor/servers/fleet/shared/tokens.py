"""Tokens of a fleet: what is made or revoked at one node is so at all."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from supervisor.identity.tokens import SavedToken, TokenStore, TokenTable

if TYPE_CHECKING:  # it needs cryptography, which takes megabytes
    from supervisor.servers.fleet.shared.records import SharedRecords

KIND: Final = "token"
_TOKEN: Final = msgspec.msgpack.Decoder(SavedToken)


class SharedTokens:
    """Implements `TokenStore`: the store of this node, and the records of the fleet. When one was used each node notes
    for itself."""

    def __init__(self, store: TokenStore, records: SharedRecords) -> None:
        self._store = store
        self._records = records
        self._table: TokenTable

    def attach(self, table: TokenTable) -> None:
        """Have a table hear of what other nodes do."""
        self._table = table
        table.taken = self._know
        self._records.follow(KIND, self._hear)

    def _know(self, saved: Collection[SavedToken]) -> None:
        for token in saved:
            self._records.know(KIND, token.digest.hex(), _encode(token))

    def save_token(self, token: SavedToken) -> None:
        self._store.save_token(token)
        self._records.put(KIND, token.digest.hex(), _encode(token))

    def forget_token(self, digest: bytes) -> None:
        self._store.forget_token(digest)
        self._records.put(KIND, digest.hex(), None)

    async def secure(self) -> bool:
        return await self._store.secure() and await self._records.flush()

    def _hear(self, name: str, payload: bytes | None) -> None:
        if payload is None:
            self._table.hear_revocation(bytes.fromhex(name))
        else:
            token = _TOKEN.decode(payload)
            self._store.save_token(token)
            self._table.take([token])


def _encode(token: SavedToken) -> bytes:
    return msgspec.msgpack.encode(replace(token, used_at=None))
