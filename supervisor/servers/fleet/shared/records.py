"""What all nodes of a fleet keep alike: small records by key, of which the newest counts, in the order of the engine.

They are under a seal of the fleet's key: whoever may write to the engine can take records away or bring an old one
back, but makes none. A record that is gone stays as such, so that a node that was away hears of it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio

from actors.errors import SupervisorError
from actors.kit import Pauses
from supervisor.fleet.engine import Engine
from supervisor.fleet.records import RecordPut

MAX_BYTES: Final = 4096
MAX_RECORDS: Final = 50_000
"""That are known; more are not taken."""
WRITTEN_S: Final = 2.0
"""For so long whoever puts a record waits for the engine."""
_LABEL: Final = b"mcpvisor fleet record"
_MAC_BYTES: Final = 32

TakeRecord = Callable[[str, bytes | None], None]
"""Takes what another node has put: the name of a record of one kind, and None if it is gone."""


class SharedRecords:
    """Those that this node knows. `keys` are those of the fleet, the newest first. `run` has to run."""

    def __init__(self, engine: Engine, keys: Sequence[bytes]) -> None:
        self._engine = engine
        self._keys = [hmac.digest(key, _LABEL, hashlib.sha256) for key in keys]
        self._known: dict[str, bytes | None] = {}
        self._pending: dict[str, None] = {}
        self._takers: dict[str, TakeRecord] = {}
        self._behind = False
        self._bell = trio.lowlevel.ParkingLot()
        self._written = trio.lowlevel.ParkingLot()

    def follow(self, kind: str, take: TakeRecord) -> None:
        """Have `take` called with each record of a kind that another node puts."""
        self._takers[kind] = take

    def know(self, kind: str, name: str, payload: bytes) -> None:
        """Have a record that this node has kept; the engine gets it if it has none of that name."""
        self._known.setdefault(f"{kind}/{name}", payload)

    def put(self, kind: str, name: str, payload: bytes | None) -> None:
        """Let all nodes have a record, None: none of that name."""
        key = f"{kind}/{name}"
        if key not in self._known or self._known[key] != payload:
            self._known[key] = payload
            self._pending[key] = None
            self._bell.unpark_all()

    async def flush(self) -> bool:
        """Wait until the engine has what was put so far, or for a while; say whether it has. A checkpoint."""
        await trio.lowlevel.checkpoint()
        mine = set(self._pending)
        with trio.move_on_after(WRITTEN_S):
            while mine & self._pending.keys():
                await self._written.park()
        return not mine & self._pending.keys()

    def want_everything(self) -> None:
        """What this node knows may be old: it has joined."""
        self._behind = True
        self._bell.unpark_all()

    def take(self, entry: RecordPut) -> None:
        """Take what the feed says."""
        payload = self._unseal(entry.key, entry.value)
        if payload is not None:
            self._learn(entry.key, msgspec.msgpack.decode(payload, type=bytes | None))

    async def run(self) -> None:
        """Read and write as soon as the engine answers, for ever."""
        pauses = Pauses()
        while True:
            while not self._behind and not self._pending:
                await self._bell.park()
            try:
                await (self._read_all() if self._behind else self._write(next(iter(self._pending))))
            except SupervisorError:
                await trio.sleep(pauses.next())
            else:
                pauses.reset()

    async def _read_all(self) -> None:
        self._behind = False
        try:
            records = await self._engine.records()
        except SupervisorError:
            self._behind = True
            raise
        for key, value in records.items():
            self.take(RecordPut(key, value))
        self._pending |= dict.fromkeys(self._known.keys() - records.keys())

    async def _write(self, key: str) -> None:
        payload = self._known[key]
        body = msgspec.msgpack.encode(payload)
        await self._engine.put(key, _mac(self._keys[0], key, body) + body)
        if self._known[key] == payload:  # else it was put again meanwhile
            self._pending.pop(key, None)
            self._written.unpark_all()

    def _learn(self, key: str, payload: bytes | None) -> None:
        if key in self._pending or (key in self._known and self._known[key] == payload):
            return
        if key not in self._known and len(self._known) >= MAX_RECORDS:
            return
        self._known[key] = payload
        kind, _, name = key.partition("/")
        if (take := self._takers.get(kind)) is not None:
            take(name, payload)

    def _unseal(self, key: str, value: bytes) -> bytes | None:
        """Return what is under a seal of ours; None for what somebody else has put there."""
        mac, body = value[:_MAC_BYTES], value[_MAC_BYTES:]
        good = len(value) <= MAX_BYTES and any(hmac.compare_digest(_mac(each, key, body), mac) for each in self._keys)
        return body if good else None


def _mac(key: bytes, name: str, body: bytes) -> bytes:
    return hmac.digest(key, msgspec.msgpack.encode((name, body)), hashlib.sha256)
