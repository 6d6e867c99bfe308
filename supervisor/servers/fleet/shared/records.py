"""What all nodes of a fleet keep alike: small records by key, of which the newest counts.

They are sealed with the fleet's key, and with them the moment at which they were put: whoever may read the engine
learns their names alone, whoever may write to it makes none, and an old one that is brought back is put right by who
knows the newer one. A record that is gone stays as
such, so that a node that was away hears of it.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio

from actors.errors import SupervisorError
from actors.kit import Pauses
from supervisor.fleet.engine import Engine
from supervisor.fleet.records import RecordPut
from supervisor.servers.fleet.shared.pending import Pending
from supervisor.store.sealing import Sealing

log = logging.getLogger(__name__)

MAX_BYTES: Final = 131_072
"""Of one record. A larger one stays at its node."""
MAX_RECORDS: Final = 50_000
"""That are known; more are not taken."""
_LABEL: Final = b"mcpvisor fleet record"
MAX_HEAD_BYTES: Final = 64
"""What is sealed with a record, and the seal."""
READ_AT_ONCE: Final = 50
"""So many are read before others get their turn."""

TakeRecord = Callable[[str, bytes | None], None]
"""Takes what another node has put: the name of a record of one kind, and None if it is gone. Raises `ValueError` or
`MsgspecError` for what it does not understand, as another version has put it."""


class _Record(msgspec.Struct, frozen=True, array_like=True):
    """`put_ms` is in unix milliseconds, 0 for what a node has kept; `payload` is None if it is gone."""

    put_ms: int
    payload: bytes | None

    def counts_over(self, known: _Record) -> bool:
        """Say whether it counts in the place of another one; of two of one millisecond the same does at each node."""
        if self.put_ms != known.put_ms or not self.put_ms:
            return self.put_ms >= known.put_ms and self != known
        return (self.payload or b"") > (known.payload or b"")


_RECORD: Final = msgspec.msgpack.Decoder(_Record)


class SharedRecords:
    """Those that this node knows. `keys` are those of the fleet, the newest first. `now` gives unix seconds.

    `run` has to run.
    """

    def __init__(self, engine: Engine, keys: Sequence[bytes], now: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._now = now
        self._seals = [Sealing(hmac.digest(key, _LABEL, hashlib.sha256)) for key in keys]
        self._known: dict[str, _Record] = {}
        self._pending = Pending()
        self._takers: dict[str, TakeRecord] = {}
        self._behind = False
        self.complete = trio.Event()
        """Set when all that the others had put by then is known."""

    def follow(self, kind: str, take: TakeRecord) -> None:
        """Have `take` called with each record of a kind that another node puts."""
        self._takers[kind] = take

    def know(self, kind: str, name: str, payload: bytes) -> None:
        """Have a record that this node has kept; the engine gets it if it has none of that name."""
        self._known.setdefault(f"{kind}/{name}", _Record(0, payload))

    def offer(self, kind: str, name: str, payload: bytes) -> None:
        """Have a record that this node made by itself, as any other one would; of two of these the engine's counts."""
        key = f"{kind}/{name}"
        if key not in self._known and _may_be_shared(kind, payload):
            self._known[key] = _Record(0, payload)
            self._pending.add(key)

    def put(self, kind: str, name: str, payload: bytes | None) -> None:
        """Let all nodes have a record, None: none of that name."""
        key = f"{kind}/{name}"
        if payload is not None and not _may_be_shared(kind, payload):
            return
        known = self._known.get(key)
        if known is None or known.payload != payload:
            before_ms = 0 if known is None else known.put_ms
            self._known[key] = _Record(max(before_ms + 1, int(self._now() * 1000)), payload)
            self._pending.add(key)

    async def flush(self) -> bool:
        """Wait until the engine has what was put so far, or for a while; say whether it has. A checkpoint."""
        return await self._pending.flush()

    def want_everything(self) -> None:
        """What this node knows may be old: it has joined."""
        self._behind = True
        self._pending.ring()

    def take(self, entry: RecordPut) -> None:
        """Take what the feed says."""
        record, known = self._unseal(entry), self._known.get(entry.key)
        if record is None or (known is None and len(self._known) >= MAX_RECORDS):
            return
        if known is not None and not record.counts_over(known):
            if record != known:
                self._pending.add(entry.key)
            return
        self._known[entry.key] = record
        self._pending.remove(entry.key)
        if known is None or known.payload != record.payload:
            self._hand_over(entry.key, record.payload)

    def _hand_over(self, key: str, payload: bytes | None) -> None:
        kind, _, name = key.partition("/")
        try:
            if (take := self._takers.get(kind)) is not None:
                take(name, payload)
        except (ValueError, msgspec.MsgspecError) as error:
            log.warning("a %s that another node has put is not understood by this version: %s", kind, error)

    async def run(self) -> None:
        """Read and write as soon as the engine answers, for ever."""
        pauses = Pauses()
        while True:
            while not self._behind and not self._pending:
                await self._pending.wait()
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
        for read, (key, value) in enumerate(records.items()):
            if read % READ_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            self.take(RecordPut(key, value))
        for key in self._known.keys() - records.keys():
            self._pending.add(key)
        self.complete.set()

    async def _write(self, key: str) -> None:
        record = self._known[key]
        body = msgspec.msgpack.encode(record)
        await self._engine.put(key, self._seals[0].seal(body, (key,)))
        if self._known[key] is record:  # else it was put again meanwhile
            self._pending.remove(key)

    def _unseal(self, entry: RecordPut) -> _Record | None:
        """Return what is under a seal of ours; None for what somebody else has put there."""
        if len(entry.value) > MAX_BYTES + MAX_HEAD_BYTES:
            return None
        bodies = (seal.read(entry.value, (entry.key,)) for seal in self._seals)
        body = next((body for body in bodies if body is not None), b"")
        try:
            return _RECORD.decode(body) if body else None
        except msgspec.MsgspecError:
            return None  # of another version


def _may_be_shared(kind: str, payload: bytes) -> bool:
    if len(payload) > MAX_BYTES:
        log.warning(
            "a record of the kind %s stays at this node: %d bytes are more than nodes share", kind, len(payload)
        )
    return len(payload) <= MAX_BYTES
