"""The realms of those who come in: what people with the same rights see, kept up with catalogue and configuration.

- People with the same rights share a realm; so do all tokens of a user. It is made when one of them comes first.
- A realm is joined for its first search, and let go where many others were searched since: the definitions are shared
  by all realms, an index is not.
- Work that grows with the catalogue is done in a thread. What a change does not touch costs a look at each realm.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection
from itertools import chain
from typing import Final

import trio
from msgspec import Struct
from msgspec.structs import replace

from actors.catalogue.realms import RealmView, concerns, drop, join, narrow
from actors.catalogue.snapshot import Catalogue
from actors.kit import AnyOf, Latest
from supervisor.host.loop.workbench import beside
from supervisor.identity.people import Person, servers_of
from supervisor.servers.deployment import Deployment

MAX_JOINED: Final = 64
"""So many realms can be searched without being joined again."""
_FIRSTS: Final = 1_000_000


class Rights(Struct, frozen=True):
    """What decides which servers somebody has: teams that have any, and the user if any server is for that one."""

    teams: frozenset[str] = frozenset()
    user: str = ""

    @property
    def first_revision(self) -> int:
        """Another one for each, and always the same."""
        return zlib.crc32("\n".join([self.user, *sorted(self.teams)]).encode()) % _FIRSTS


def rights_of(person: Person, deployment: Deployment) -> Rights:
    having = {name for name, team in deployment.settings.identity.teams.items() if team.servers}
    named = any(person.user in users for users in deployment.users.values())
    return Rights(person.teams & having, person.user if named else "")


def servers_by(rights: Rights, deployment: Deployment) -> frozenset[str]:
    """Return the servers that go with some rights. One that cannot be read is for nobody but the teams that have it."""
    teams = deployment.settings.identity.teams
    known = deployment.entries.keys() | chain(*(team.servers for team in teams.values()))
    return servers_of(rights.teams, rights.user, deployment.server_names & known, teams, deployment.users)


def all_rights(deployment: Deployment) -> frozenset[Rights]:
    """Return what anybody may come in with: of all teams of a user, or of one of them."""
    people = deployment.settings.identity
    in_teams = chain(*(team.members for team in people.teams.values()))
    users = {*people.users, *in_teams, *chain(*deployment.users.values())}
    of_all = [Person(user=user, teams=people.teams_of(user)) for user in users]
    of_one = [replace(person, teams=frozenset((team,))) for person in of_all for team in person.teams]
    return frozenset(rights_of(person, deployment) for person in (Person(user=""), *of_all, *of_one))


class Realm:
    """What people with these rights see: `catalogue` has it. `on_joined` is told that it is searched."""

    def __init__(self, rights: Rights, view: RealmView, on_joined: Callable[[Realm], None]) -> None:
        self.rights = rights
        self.catalogue = Latest(view.seen)
        self.view = view
        self.turn = trio.Lock()
        self._on_joined = on_joined

    @property
    def servers(self) -> frozenset[str]:
        return self.view.servers

    def become(self, view: RealmView) -> None:
        self.view = view
        self.catalogue.set(view.seen)

    async def join(self) -> None:
        """Have it be searchable. A checkpoint unless it is."""
        if not self.view.joined:
            async with self.turn:
                if not self.view.joined:
                    self.become(await beside(lambda: join(self.view)))
        self._on_joined(self)


class Realms:
    """`run` keeps those that are open up with the `whole`, and with who has what."""

    def __init__(self, whole: Latest[Catalogue], deployment: Latest[Deployment]) -> None:
        self._whole = whole
        self._deployment = deployment
        self._open: dict[Rights, Realm] = {}
        self._joined: OrderedDict[Rights, None] = OrderedDict()
        self._servers: dict[Rights, frozenset[str]] = {}
        self._servers_at = -1

    @property
    def open(self) -> Collection[Rights]:
        """Those that somebody came in with, and may again."""
        return self._open.keys()

    async def of(self, person: Person) -> Realm:
        """Return the realm of a person as the configuration is now. A checkpoint where that has to be made."""
        rights = rights_of(person, self._deployment.value)
        realm, servers = self._open.get(rights), self._servers_of(rights)
        if realm is None:
            view = await self._narrow(servers, None, rights.first_revision)
            realm = self._open.setdefault(rights, Realm(rights, view, self._on_joined))
        if realm.servers != servers or realm.view.whole is not self._whole.value:  # while it was made, say
            await self._follow(realm)
        return realm

    async def run(self) -> None:
        """Keep all that are open up, for ever."""
        changed = trio.Event()
        with AnyOf(self._whole, self._deployment).on_set(lambda: changed.set()):
            deployment = -1
            while True:
                if deployment != self._deployment.version:
                    deployment = self._deployment.version
                    self._close_but(all_rights(self._deployment.value))
                for realm in [*self._open.values()]:
                    await self._follow(realm)
                await changed.wait()
                changed = trio.Event()

    def _close_but(self, rights: Collection[Rights]) -> None:
        for gone in self._open.keys() - rights:
            del self._open[gone]
            self._joined.pop(gone, None)

    def _servers_of(self, rights: Rights) -> frozenset[str]:
        """Return which servers go with some rights now; a look at all servers only after a change."""
        if self._servers_at != self._deployment.version:
            self._servers, self._servers_at = {}, self._deployment.version
        if rights not in self._servers:
            self._servers[rights] = servers_by(rights, self._deployment.value)
        return self._servers[rights]

    async def _follow(self, realm: Realm) -> None:
        async with realm.turn:
            servers = self._servers_of(realm.rights)
            if realm.servers != servers or concerns(realm.view, self._whole.value):
                view = await self._narrow(servers, realm.view)
                realm.become(view if realm.rights in self._joined else drop(view))
            else:  # so that nothing keeps an older catalogue alive
                realm.view = replace(realm.view, whole=self._whole.value)

    async def _narrow(self, servers: frozenset[str], before: RealmView | None, first: int = 0) -> RealmView:
        whole = self._whole.value
        return await beside(lambda: narrow(whole, servers, before, first))

    def _on_joined(self, realm: Realm) -> None:
        self._joined[realm.rights] = None
        self._joined.move_to_end(realm.rights)
        while len(self._joined) > MAX_JOINED:
            let_go = self._open.get(self._joined.popitem(last=False)[0])
            if let_go is not None:
                let_go.become(drop(let_go.view))
