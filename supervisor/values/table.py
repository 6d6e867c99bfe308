"""The values that teams and users give to a running daemon: whether one can be given, and where it is kept.

- Whose a value is, whether the server takes it, and whether it would have an effect is seen first. What is foreign to
  whoever asks is answered as what there is not: servers, and values that are hidden.
- A value is on the disk before anybody is told that it was taken. What is kept of one is sealed.
- There is one place where they are: `given` of the deployment, whose followers see to the rest.
- In a fleet all nodes have the same, and each seals them with a key of its own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct, json
from msgspec.structs import astuple, replace

from actors.errors import InvalidArguments, SupervisorError, UnknownServer
from actors.kit import Latest
from supervisor.config import ServerConfig
from supervisor.config.given import fault_of, place_of, rule_of, takes_of_users, tiers_of
from supervisor.config.keys import nearest_names
from supervisor.host.workbench import beside
from supervisor.identity.people import Given, GivenValues, Owner, Person, Tier, servers_of
from supervisor.identity.tokens import NotKept
from supervisor.servers.deployment import Deployment
from supervisor.servers.fleet.records import Shared, SharedRecords
from supervisor.store import Rows, SavedValue

if TYPE_CHECKING:
    from supervisor.store.sealing import Sealing

_TAKERS: Final = "mcpvisor config list names those that take values"


class ValuePlace(Struct, frozen=True, array_like=True):
    """Who gives a value, a team or a user by name; for which server; what it is called."""

    tier: Tier
    owner: str
    server: str
    name: str


class UnknownValue(SupervisorError, kind="not_found"):
    """The server takes no value of that name, or nobody gave one."""


class ValueNotTaken(SupervisorError, kind="refused"):
    """The value would have no effect: somebody else gives it, or the configuration has it. The message says who."""


def _servers_for(deployment: Deployment, asker: Person) -> frozenset[str]:
    """Return the servers whose values somebody may see: an admin those of all."""
    names = deployment.server_names
    if asker.may("admin"):
        return names
    return servers_of(asker.rights, names, deployment.settings.identity.teams, deployment.users)


def check_server(deployment: Deployment, asker: Person, server: str, otherwise: str = _TAKERS) -> None:
    """Raise `UnknownServer` for one that is not there for whoever asks; `otherwise` helps where no name is near."""
    servers = _servers_for(deployment, asker)
    if server not in servers:
        nearest = nearest_names(server, servers)
        hint = f"did you mean {', '.join(nearest)}?" if nearest else otherwise
        raise UnknownServer(f"there is no server {server[:100]!r}; {hint}", details={"nearest": nearest})


def check_owner(deployment: Deployment, tier: Tier, owner: str) -> None:
    """Raise `InvalidArguments` for a user or a team that is not in the configuration, if it names any."""
    people = deployment.settings.identity
    known: Collection[str] = people.users if tier == "user" else people.teams
    if known and owner not in known:
        raise InvalidArguments(f'there is no {tier} {owner[:100]!r} in "identity" of the configuration')


def _check_value(deployment: Deployment, asker: Person, place: ValuePlace, given: Given) -> None:
    """Raise what speaks against a value that somebody gives.

    Raises `UnknownServer`, `UnknownValue`, `ValueNotTaken`, `InvalidArguments`.
    """
    check_server(deployment, asker, place.server)
    check_owner(deployment, place.tier, place.owner)
    config = deployment.entries.get(place.server)
    if config is None:
        raise ValueNotTaken(f"the entry of {place.server} cannot be used: mcpvisor check says why", server=place.server)
    _check_name(config, asker, place)
    if place.tier == "user":
        _check_users(deployment, config, place)
    _check_not_in_file(deployment, place)
    if given.locked and place.tier == "user":
        raise InvalidArguments("a team locks a value, not a user")
    if fault := rule_of(config, place.name).fault(given.value):
        raise InvalidArguments(f"this cannot be given: {place.name} {fault}")
    if fault := fault_of(config, place.tier, place.name, given.value):
        raise InvalidArguments(f"this cannot be passed on: {fault}")


def _check_name(config: ServerConfig, asker: Person, place: ValuePlace) -> None:
    shown = [name for name in tiers_of(config) if asker.may("admin") or not rule_of(config, name).hidden]
    if place.name in shown:
        return
    nearest = nearest_names(place.name, shown)
    hint = f"did you mean {', '.join(nearest)}?" if nearest else f"it takes: {', '.join(shown) or 'none'}"
    raise UnknownValue(
        f"{place.server} takes no value {place.name[:100]!r}; {hint}", server=place.server, details={"nearest": nearest}
    )


def _check_users(deployment: Deployment, config: ServerConfig, place: ValuePlace) -> None:
    if tiers_of(config)[place.name] == "team":
        raise ValueNotTaken(f"{place.name} of {place.server} is a team's to give, not a user's", server=place.server)
    people = deployment.settings.identity
    team = deployment.given.team_for(people, people.teams_of(place.owner), place.server)
    of_team = deployment.given.of(people, ("team", team), place.server).get(place.name) if team else None
    if not takes_of_users(rule_of(config, place.name), of_team):
        raise ValueNotTaken(f"the team {team} gives {place.name} of {place.server}, and has locked it")


def _check_not_in_file(deployment: Deployment, place: ValuePlace) -> None:
    """Raise `ValueNotTaken` if the configuration has that value, which goes over any other of it."""
    people = deployment.settings.identity
    owner = people.users.get(place.owner) if place.tier == "user" else people.teams.get(place.owner)
    if owner is None or place.name not in owner.values.get(place.server, {}):
        return
    line = deployment.line_of(place_of(place.tier, place.owner, place.server, place.name))
    where = f", line {line}" if line else ""
    raise ValueNotTaken(f"the configuration file has {place.name}{where}: what is given here would have no effect")


log = logging.getLogger(__name__)

_MAX_OF_OWNER: Final = 500
"""Values that one team or user gives."""
_MAX_OWNER_BYTES: Final = 1_048_576
_MAX_VALUES: Final = 20_000
_MAX_BYTES: Final = 33_554_432
"""Of all that are kept."""
_MAX_AT_ONCE: Final = 50
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

        Raises as `_check_value` does, and `TooManyValues`, `NotKept`; nothing has changed then.
        """
        _check_value(self._deployment.value, asker, place, given)
        sealed = self._seal(place, given)
        self._check_room(place, len(sealed.sealed))
        await self._put(place, given, sealed)

    async def forget(self, asker: Person, place: ValuePlace) -> None:
        """Let a value hold no longer, also one that no server takes any more.

        Raises `UnknownServer`, `UnknownValue`, `ValueNotTaken`, `NotKept`; nothing has changed then.
        """
        if self.find(place) is None:
            check_server(self._deployment.value, asker, place.server)
            _check_not_in_file(self._deployment.value, place)
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
        if self._counts[owner] + more > _MAX_OF_OWNER or self._bytes[owner] + grown > _MAX_OWNER_BYTES:
            raise TooManyValues(
                f"the {place.tier} {place.owner} gives as much as is kept: {_MAX_OF_OWNER} values, {_MAX_OWNER_BYTES} "
                "bytes; take back what is not needed by mcpvisor config unset"
            )
        if len(self._sizes) + more > _MAX_VALUES or self._bytes.total() + grown > _MAX_BYTES:
            raise TooManyValues(f"as much is given as is kept: {_MAX_VALUES} values, {_MAX_BYTES} bytes in all")


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
            self._table.hear(await self.wait(_MAX_AT_ONCE))
            await trio.lowlevel.checkpoint()

    def _know(self, values: GivenValues) -> None:
        for (tier, owner), servers in values.stored.items():
            for server, given in servers.items():
                for name, value in given.items():
                    self.know(ValuePlace(tier, owner, server, name), value)
        self._known.set()
