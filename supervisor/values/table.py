"""The values that teams and users give to a running daemon. What is kept of one is sealed.

- A value is on the disk before anybody is told that it was taken.
- There is one place where they are: `given` of the deployment, whose followers see to the rest.
- In a fleet all nodes have the same, and each seals them with a key of its own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import trio
from msgspec import json
from msgspec.structs import astuple, replace

from actors.errors import SupervisorError
from actors.kit import Latest
from supervisor.host.workbench import beside
from supervisor.identity.people import Given, GivenValues, Owner, Person
from supervisor.identity.tokens import NotKept
from supervisor.servers.deployment import Deployment
from supervisor.servers.fleet.records import Shared, SharedRecords
from supervisor.store import Rows, SavedValue
from supervisor.values.checks import UnknownValue, ValuePlace, check_not_in_file, check_server, check_value

if TYPE_CHECKING:  # cryptography is megabytes, which are needed for what is kept alone
    from supervisor.store.sealing import Sealing

log = logging.getLogger(__name__)

MAX_OF_OWNER: Final = 500
"""Values that one team or user gives."""
MAX_OWNER_BYTES: Final = 1_048_576
MAX_VALUES: Final = 20_000
MAX_BYTES: Final = 33_554_432
"""Of all that are kept."""
MAX_AT_ONCE: Final = 50
"""So many that were heard of are taken before others get their turn: each is sealed for the disk."""


class TooManyValues(SupervisorError, kind="busy"):
    """There are as many values as are kept, of all or of one team or user: take some back that nobody needs."""


class ValueTable:
    """All values that were given, once they are `read`. `key` has 32 bytes, and seals them.

    `taken` is called with those that were kept, once they are known.
    """

    def __init__(self, deployment: Latest[Deployment], store: Rows[SavedValue], key: bytes) -> None:
        self.read = False
        self.sharing: SharedValues | None = None
        self.taken: Callable[[GivenValues], None] = lambda values: None
        self._deployment = deployment
        self._store = store
        self._key = key
        self._sizes: dict[ValuePlace, int] = {}
        self._bytes: Counter[Owner] = Counter()
        self._counts: Counter[Owner] = Counter()

    @cached_property
    def _cipher(self) -> Sealing:
        from supervisor.store.sealing import Sealing

        return Sealing(self._key)

    async def take(self, saved: Iterable[SavedValue]) -> None:
        """Know what was kept. What does not open counts as not given."""
        rows = list(saved)
        opened = await beside(partial(self._open, rows)) if rows else {}
        if closed := len(rows) - len(opened):
            log.warning("%d values that were given cannot be read, as with another values.key: give them again", closed)
        stored: dict[Owner, dict[str, dict[str, Given]]] = {}
        for place, (given, size) in opened.items():
            stored.setdefault((place.tier, place.owner), {}).setdefault(place.server, {})[place.name] = given
            self._count(place, size)
        self.read = True
        if stored:
            self._deployment.set(replace(self._deployment.value, given=GivenValues(stored=stored)))
        self.taken(self.values)

    def _open(self, rows: Iterable[SavedValue]) -> dict[ValuePlace, tuple[Given, int]]:
        """Return what was sealed, and its size."""
        opened = {}
        for row in rows:
            place = ValuePlace(row.tier, row.owner, row.server, row.name)
            if (given := self._cipher.open(row.sealed, astuple(place), Given)) is not None:
                opened[place] = given, len(row.sealed)
        return opened

    @property
    def values(self) -> GivenValues:
        return self._deployment.value.given

    def find(self, place: ValuePlace) -> Given | None:
        of_owner = self.values.stored.get((place.tier, place.owner), {})
        return of_owner.get(place.server, {}).get(place.name)

    async def give(self, asker: Person, place: ValuePlace, given: Given) -> None:
        """Take a value in the place of any that was given before, and have it hold at once.

        Raises as `check_value` does, and `TooManyValues`, `NotKept`; nothing has changed then.
        """
        check_value(self._deployment.value, asker, place, given)
        sealed = self._seal(place, given)
        self._check_room(place, len(sealed.sealed))
        await self._put(place, given, sealed)

    async def forget(self, asker: Person, place: ValuePlace) -> None:
        """Let a value hold no longer, also one that no server takes any more.

        Raises `UnknownServer`, `UnknownValue`, `ValueNotTaken`, `NotKept`; nothing has changed then.
        """
        if self.find(place) is None:
            check_server(self._deployment.value, asker, place.server)
            check_not_in_file(self._deployment.value, place)
            raise UnknownValue(f"nobody gave {place.name[:100]!r} of {place.server} for the {place.tier} {place.owner}")
        await self._put(place, None, None)

    async def _put(self, place: ValuePlace, given: Given | None, sealed: SavedValue | None) -> None:
        if not self.read:
            raise NotKept("the daemon has not read its database yet, see /api/status; try again")
        before = self.find(place)
        self._hold(place, given, sealed)
        if await self._store.secure():
            if self.sharing is not None and self.find(place) is given:
                self.sharing.tell(place, given)
                await self.sharing.records.flush()
            return
        if self.find(place) is given:  # nobody gave another one meanwhile
            self._hold(place, before, self._seal(place, before) if before is not None else None)
        raise NotKept("nothing has changed: the daemon cannot write its database, see /api/status")

    def hear(self, changes: Mapping[ValuePlace, Given | None]) -> None:
        """Take what other nodes were given or lost: it holds here, too. What there is no room for is left out."""
        held = self._deployment.value.given
        for place, given in changes.items():
            sealed = None if given is None else self._seal(place, given)
            try:
                if sealed is not None:
                    self._check_room(place, len(sealed.sealed))
            except TooManyValues as error:
                log.warning("a value of %s from another node is not taken: %s", place.server, error.message)
                continue
            self._keep(place, sealed)
            held = held.with_value((place.tier, place.owner), place.server, place.name, given)
        self._deployment.set(replace(self._deployment.value, given=held))

    def _hold(self, place: ValuePlace, given: Given | None, sealed: SavedValue | None) -> None:
        self._keep(place, sealed)
        deployment = self._deployment.value
        held = deployment.given.with_value((place.tier, place.owner), place.server, place.name, given)
        self._deployment.set(replace(deployment, given=held))

    def _keep(self, place: ValuePlace, sealed: SavedValue | None) -> None:
        if sealed is None:
            self._count(place, None)
            self._store.forget(*astuple(place))
        else:
            self._count(place, len(sealed.sealed))
            self._store.put(sealed)

    def _count(self, place: ValuePlace, size: int | None) -> None:
        """Note how large a value is; None: it is gone."""
        owner, before = (place.tier, place.owner), self._sizes.pop(place, None)
        self._counts[owner] += (size is not None) - (before is not None)
        self._bytes[owner] += (size or 0) - (before or 0)
        if size is not None:
            self._sizes[place] = size
        elif not self._counts[owner]:
            del self._counts[owner], self._bytes[owner]

    def _seal(self, place: ValuePlace, given: Given) -> SavedValue:
        sealed = self._cipher.seal(json.encode(given), astuple(place))
        return SavedValue(tier=place.tier, owner=place.owner, server=place.server, name=place.name, sealed=sealed)

    def _check_room(self, place: ValuePlace, size: int) -> None:
        owner, before = (place.tier, place.owner), self._sizes.get(place)
        more, grown = before is None, size - (before or 0)
        if self._counts[owner] + more > MAX_OF_OWNER or self._bytes[owner] + grown > MAX_OWNER_BYTES:
            raise TooManyValues(
                f"the {place.tier} {place.owner} gives as much as is kept: {MAX_OF_OWNER} values, {MAX_OWNER_BYTES} "
                "bytes; take back what is not needed by mcpvisor config unset"
            )
        if len(self._sizes) + more > MAX_VALUES or self._bytes.total() + grown > MAX_BYTES:
            raise TooManyValues(f"as much is given as is kept: {MAX_VALUES} values, {MAX_BYTES} bytes in all")


class SharedValues(Shared[ValuePlace, Given]):
    """The values of a table in a fleet: what is given, or taken back, at one node holds at all. `run` has to run."""

    def __init__(self, records: SharedRecords, table: ValueTable) -> None:
        super().__init__(records, "value", ValuePlace, Given, json)
        self._table = table
        self._known = trio.Event()
        table.sharing, table.taken = self, self._know
        if table.read:
            self._know(table.values)

    async def run(self) -> None:
        """Take what other nodes were given, for ever, once those that this one has kept are known."""
        await self._known.wait()
        while True:
            self._table.hear(await self.wait(MAX_AT_ONCE))
            await trio.lowlevel.checkpoint()

    def _know(self, values: GivenValues) -> None:
        for (tier, owner), servers in values.stored.items():
            for server, given in servers.items():
                for name, value in given.items():
                    self.know(ValuePlace(tier, owner, server, name), value)
        self._known.set()
