"""What all nodes of a fleet keep alike: small records by key, of which the newest counts.

They are sealed with the fleet's key, and with them the moment at which they were put: whoever may read the engine
learns their names alone, and whoever may write to it makes none. A record that is gone stays as such: that something
was taken back is a fact with a number, as that it was given.

A node remembers what it has seen, also while it does not run, and takes nothing older. So the engine need not be
believed: what it has lost it is told again, and an old record that somebody brings back is put right, whether the nodes
were up at that time or not.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import msgspec
import trio
from msgspec.structs import astuple

from actors.errors import SupervisorError
from actors.kit import Pauses
from supervisor.fleet.engine import Engine, RecordPut
from supervisor.store import Rows
from supervisor.store.records import FleetRecord

TOLD_S: Final = 2.0
"""For so long whoever has put something waits for the engine."""


class Pending:
    """Keys, the oldest first."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self._bell = trio.lowlevel.ParkingLot()
        self._told = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def add(self, key: str) -> None:
        self._keys[key] = None
        self.ring()

    def remove(self, key: str) -> None:
        """The engine knows it, or need not."""
        self._keys.pop(key, None)
        self._told.unpark_all()

    def ring(self) -> None:
        """There is something to do for whoever tells the engine."""
        self._bell.unpark_all()

    async def wait(self) -> None:
        """Wait until there may be something to do."""
        await self._bell.park()

    async def flush(self) -> bool:
        """Wait until the engine knows what is there now, or for a while; say whether it does. A checkpoint."""
        await trio.lowlevel.checkpoint()
        mine = self._keys.copy()
        with trio.move_on_after(TOLD_S):
            while mine.keys() & self._keys.keys():
                await self._told.park()
        return not mine.keys() & self._keys.keys()


K = TypeVar("K")
V = TypeVar("V")

log = logging.getLogger(__name__)

MAX_BYTES: Final = 131_072
"""Of one record. A larger one stays at its node."""
MAX_RECORDS: Final = 50_000
"""That are known; more are not taken."""
MAX_GONE: Final = 10_000
"""Of one kind, so many are known to be gone; of the oldest of them all that is known is the newest number."""
_FORGOTTEN_AT_ONCE: Final = 1000
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
        return (self.payload is None, self.payload or b"") > (known.payload is None, known.payload or b"")


_RECORD: Final = msgspec.msgpack.Decoder(_Record)


class SharedRecords:
    """Those that this node knows. `keys` are those of the fleet, the newest first. `now` gives unix seconds.

    `run` has to run, and `restore` is told before what `store` had.
    """

    def __init__(
        self,
        engine: Engine,
        keys: Sequence[bytes],
        now: Callable[[], float] = time.time,
        store: Rows[FleetRecord] | None = None,
    ) -> None:
        self._engine = engine
        self._store = store
        self._now = now
        from supervisor.store.sealing import Sealing  # cryptography is megabytes, which a lone daemon does not need

        self._seals = [Sealing(hmac.digest(key, _LABEL, hashlib.sha256)) for key in keys]
        self._known: dict[str, _Record] = {}
        self._gone: Counter[str] = Counter()  # by kind, how many that are known are gone
        self._forgotten: dict[str, int] = {}  # by kind, up to which number those that are gone are known no longer
        self._unheard: dict[str, None] = {}
        self._pending = Pending()
        self._takers: dict[str, TakeRecord] = {}
        self._behind = False
        self.complete = trio.Event()
        """Set when all that the others had put by then is known."""

    def follow(self, kind: str, take: TakeRecord) -> None:
        """Have `take` called with each record of a kind that another node puts."""
        self._takers[kind] = take

    async def restore(self, kept: Iterable[FleetRecord]) -> None:
        """Know what this node had seen when it ran last, as it was saved. What it cannot open is of another fleet."""
        for number, (key, sealed) in enumerate(map(astuple, kept)):
            if number % READ_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            record = self._unseal(key, sealed)
            kind, _, name = key.partition("/")
            if record is None:
                continue
            if self._seals[0].read(sealed, (key,)) is None:  # one day its key is none of the fleet's any more
                self._save(key, record)
            if not name:
                self._forgotten[kind] = record.put_ms
            elif self._learn(key, record, saved=True):
                self._unheard[key] = None
        self._pending.ring()
        if self.complete.is_set():  # the disk was late: older ones may have been taken, and left in the engine
            self.want_everything()

    def know(self, kind: str, name: str, payload: bytes) -> None:
        """Have a record that this node has kept; the engine gets it if it has none of that name."""
        key = f"{kind}/{name}"
        known = self._known.setdefault(key, _Record(0, payload))
        if known.payload == payload:
            self._unheard.pop(key, None)
        else:  # it was put again, or is gone, and the end of this node came before it had taken that
            self._unheard[key] = None
            self._pending.ring()

    def offer(self, kind: str, name: str, payload: bytes) -> None:
        """Have a record that this node made by itself, as any other one would; of two of these the engine's counts."""
        key = f"{kind}/{name}"
        if key not in self._known and _may_be_shared(kind, payload):
            self._learn(key, _Record(0, payload))
            self._pending.add(key)

    def put(self, kind: str, name: str, payload: bytes | None) -> bool:
        """Let all nodes have a record, None: none of that name. False for one that is too large to be had elsewhere."""
        key = f"{kind}/{name}"
        if payload is not None and not _may_be_shared(kind, payload):
            return False
        known = self._known.get(key)
        if known is None or known.payload != payload:
            before_ms = 0 if known is None else known.put_ms
            self._learn(key, _Record(max(before_ms + 1, int(self._now() * 1000)), payload))
            self._unheard.pop(key, None)
            self._pending.add(key)
        return True

    def _learn(self, key: str, record: _Record, *, saved: bool = False) -> bool:
        """Know a record, unless what is known counts more; say whether it has another payload than that."""
        kind = key.partition("/")[0]
        known = self._known.get(key)
        if known is not None and not record.counts_over(known):
            return False
        self._gone[kind] += (record.payload is None) - (known is not None and known.payload is None)
        self._known[key] = record
        if not saved:
            self._save(key, record)
        if self._gone[kind] > MAX_GONE:
            self._forget_oldest(kind)
        return known is None or known.payload != record.payload

    def _forget_oldest(self, kind: str) -> None:
        """Forget the oldest that are gone, but up to which number: nothing older than that is new to this node."""
        gone = [
            (record.put_ms, key)
            for key, record in self._known.items()
            if record.payload is None and key.partition("/")[0] == kind and key not in self._pending
        ]
        for put_ms, key in sorted(gone)[:_FORGOTTEN_AT_ONCE]:
            self._forgotten[kind] = max(put_ms, self._forgotten.get(kind, 0))
            del self._known[key]
            self._gone[kind] -= 1
            if self._store is not None:
                self._store.forget(key)
        self._save(f"{kind}/", _Record(self._forgotten.get(kind, 0), None))

    def _save(self, key: str, record: _Record) -> None:
        if self._store is not None:
            self._store.put(FleetRecord(key, self._seals[0].seal(msgspec.msgpack.encode(record), (key,))))

    async def flush(self) -> bool:
        """Wait until the engine has what was put so far, or for a while; say whether it has. A checkpoint."""
        return await self._pending.flush()

    def want_everything(self) -> None:
        """What this node knows may be old: it has joined."""
        self._behind = True
        self._pending.ring()

    def take(self, entry: RecordPut) -> None:
        """Take what the feed says."""
        record, known = self._unseal(entry.key, entry.value), self._known.get(entry.key)
        if record is None or (known is None and not self._is_new(entry.key, record)):
            return
        if known is not None and not record.counts_over(known):
            if record != known:
                self._pending.add(entry.key)
            return
        self._pending.remove(entry.key)
        self._unheard.pop(entry.key, None)
        if self._learn(entry.key, record):
            self._hand_over(entry.key, record.payload)

    def _is_new(self, key: str, record: _Record) -> bool:
        """Say whether a record that is not known is one to be taken, and none of those that are gone for long."""
        kind, _, name = key.partition("/")
        return bool(name) and len(self._known) < MAX_RECORDS and record.put_ms >= self._forgotten.get(kind, -1)

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
            await self._tell_unheard()
            while not self._behind and not self._pending and not self._unheard:
                await self._pending.wait()
            if self._unheard:
                continue
            try:
                await (self._read_all() if self._behind else self._write(next(iter(self._pending))))
            except SupervisorError:
                await trio.sleep(pauses.next())
            else:
                pauses.reset()

    async def _tell_unheard(self) -> None:
        told = 0
        while self._unheard:
            key = next(iter(self._unheard))
            del self._unheard[key]
            if (record := self._known.get(key)) is not None:
                self._hand_over(key, record.payload)
            told += 1
            if told % READ_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()

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
        record = self._known.get(key)
        if record is None:  # forgotten meanwhile
            self._pending.remove(key)
            return
        body = msgspec.msgpack.encode(record)
        await self._engine.put(key, self._seals[0].seal(body, (key,)))
        if self._known.get(key) is record:  # else it was put again meanwhile
            self._pending.remove(key)

    def _unseal(self, key: str, sealed: bytes) -> _Record | None:
        """Return what is under a seal of ours; None for what somebody else has put there."""
        if len(sealed) > MAX_BYTES + MAX_HEAD_BYTES:
            return None
        bodies = (seal.read(sealed, (key,)) for seal in self._seals)
        body = next((body for body in bodies if body is not None), b"")
        try:
            return _RECORD.decode(body) if body else None
        except msgspec.MsgspecError:
            return None  # of another version


class Shared(Generic[K, V]):
    """One kind of records: what is told here holds at all nodes, and what they tell is heard here.

    A name is the text of its key, or JSON of it; bytes are a payload as they are, all else is put by `form`, which is
    `msgspec.json` or `msgspec.msgpack`. What another version has put, and this one does not understand, is left out.
    """

    def __init__(self, records: SharedRecords, kind: str, key: Any, value: Any, form: Any = msgspec.msgpack) -> None:
        self.records = records
        self._kind = kind
        self._key = key
        self._value = value
        self._form = form
        self._waiting: dict[str, tuple[K, V | None]] = {}
        self._bell = trio.lowlevel.ParkingLot()
        records.follow(kind, self._hear)

    def tell(self, key: K, value: V | None) -> None:
        """Let all nodes have a value, None: know that there is none. It is newer than what waits of that key."""
        name = self.name_of(key)
        if self.records.put(self._kind, name, None if value is None else self._encode(value)):
            self._waiting.pop(name, None)

    def offer(self, key: K, value: V) -> None:
        """Let them have a value that this node made by itself, unless there is one."""
        self.records.offer(self._kind, self.name_of(key), self._encode(value))

    def know(self, key: K, value: V) -> None:
        """This node has kept a value."""
        self.records.know(self._kind, self.name_of(key), self._encode(value))

    def hear(self, key: K, value: V | None) -> None:
        """Take what another node has put; here it waits for whoever takes it in their own time."""
        self._waiting[self.name_of(key)] = key, value
        self._bell.unpark_all()

    def take(self, most: int = MAX_RECORDS) -> dict[K, V | None]:
        """Return what nobody has taken yet: of each key the newest, the oldest first."""
        page = [*islice(self._waiting, most)]
        return dict(map(self._waiting.pop, page))

    async def wait(self, most: int = MAX_RECORDS) -> dict[K, V | None]:
        """Return the same, once there is something."""
        while not self._waiting:
            await self._bell.park()
        return self.take(most)

    def name_of(self, key: K) -> str:
        return key if isinstance(key, str) else msgspec.json.encode(key).decode()

    def value_type(self) -> Any:
        """What a payload is decoded to."""
        return self._value

    def _encode(self, value: V) -> bytes:
        return value if isinstance(value, bytes) else bytes(self._form.encode(value))

    def _hear(self, name: str, payload: bytes | None) -> None:
        key: Any = name if self._key is str else msgspec.json.decode(name, type=self._key)
        value: Any = payload
        if payload is not None and self._value is not bytes:
            value = self._form.decode(payload, type=self.value_type())
        self.hear(key, value)


def _may_be_shared(kind: str, payload: bytes) -> bool:
    if len(payload) > MAX_BYTES:
        log.warning(
            "a record of the kind %s stays at this node: %d bytes are more than nodes share", kind, len(payload)
        )
    return len(payload) <= MAX_BYTES
