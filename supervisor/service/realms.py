"""The realms of those who come in: what people with the same rights see, kept up with catalogue and configuration.

- People with the same rights share a realm; so do all tokens of a user. It is made when one of them comes first, and is
  kept up as long as anybody holds it, also for rights that nobody has any more: what is under way loses what is lost.
- A realm is joined for its first search, and let go where many others were searched since: the definitions are shared
  by all realms, an index is not.
- Where plugins hide tools by who it is, each `Viewer` has a realm. Plugins are asked about a tool once, before it is
  seen; where one fails it is asked again later, and nobody sees the tool meanwhile.
- Work that grows with the catalogue is done in a thread. What a change does not touch costs a look at each realm.
"""

from __future__ import annotations

import math
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import chain
from typing import Final
from weakref import WeakValueDictionary

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue, Entry
from actors.catalogue.views import (
    Hidden,
    RealmView,
    concerns,
    drop,
    entries_of,
    join,
    launch_changes,
    narrow,
)
from actors.kit import AnyOf, Latest
from actors.life.states import State
from actors.messages import ServerStatus
from actors.registry.reviews import AGAIN_S
from supervisor.host.workbench import beside
from supervisor.identity.people import Rights, Viewer, servers_of
from supervisor.plugins.hooks import PluginTable
from supervisor.plugins.running import RunningPlugin
from supervisor.servers.deployment import Deployment

_CAME_BEFORE: Final = "hidden from a connection that was there before the plugin"
MAX_JOINED: Final = 64
"""So many realms can be searched without being joined again."""
_FIRSTS: Final = 1_000_000


def first_revision(rights: Rights) -> int:
    """Return with which revision a realm begins: another one for each, and always the same."""
    parts = [rights.user, *sorted(rights.teams), *sorted(launch.name for launch in rights.launches)]
    if (viewer := rights.viewer) is not None:
        parts += [viewer.user, viewer.role, *sorted(viewer.teams), viewer.profile]
    return zlib.crc32("\n".join(parts).encode()) % _FIRSTS


def servers_by(rights: Rights, deployment: Deployment) -> frozenset[str]:
    """Return the servers that go with some rights. One that cannot be read is for nobody but the teams that have it.

    Whoever has to show nothing has all.
    """
    if rights.viewer is not None and not rights.viewer.user:
        return deployment.server_names
    teams = deployment.settings.identity.teams
    known = deployment.entries.keys() | chain(*(team.servers for team in teams.values()))
    return servers_of(rights, deployment.server_names & known, teams, deployment.users)


def launches_of(rights: Rights) -> dict[str, str]:
    """Return the servers that are started for some people otherwise than for all, with the names of the launches."""
    return {launch.server: launch.name for launch in rights.launches}


class Asked(msgspec.Struct, frozen=True):
    """What plugins hide, by server, and which ones were asked. Those that failed are asked again at a moment of the
    trio clock.
    """

    by: tuple[RunningPlugin, ...] = ()
    hidden: Mapping[str, Hidden] = {}
    again_at: float = math.inf

    def known(self, by: tuple[RunningPlugin, ...], entries: Mapping[str, Entry], now: float) -> dict[str, Hidden]:
        """Return what of it still holds of these entries."""
        return {
            server: each
            for server, each in self.hidden.items()
            if self.by == by
            and server in entries
            and entries[server].offer.tools is each.tools
            and not (each.failed and now >= self.again_at)
        }


NOT_ASKED: Final = Asked()


class Realm:
    """What people with these rights see: `catalogue` has it. `on_joined` is told that it is searched."""

    def __init__(self, rights: Rights, view: RealmView, asked: Asked, on_joined: Callable[[Realm], None]) -> None:
        self.rights = rights
        self.asked = asked
        self.catalogue = Latest(view.seen)
        self.view = view
        self.turn = trio.Lock()
        self._on_joined = on_joined

    @property
    def servers(self) -> frozenset[str]:
        return self.view.servers

    @cached_property
    def launches(self) -> Mapping[str, str]:
        return launches_of(self.rights)

    @cached_property
    def waits(self) -> Mapping[str, ServerStatus]:
        """How servers are doing that are not started for them, as values are missing."""
        now = trio.current_time()
        return {
            each.server: ServerStatus(
                server=each.server,
                state=State.STOPPED,
                wanted="stopped",
                since=now,
                reason=each.why,
                awaits=each.missing or (each.server,),
            )
            for each in self.rights.launches
            if not each.name
        }

    @cached_property
    def asleep(self) -> Mapping[str, ServerStatus]:
        """How servers are doing that are started for them alone, and were not since the daemon was."""
        now, having = trio.current_time(), self.launches.items()
        return {
            server: ServerStatus(server=server, state=State.DORMANT, wanted="up", since=now)
            for server, launch in having
            if launch
        }

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
    """`run` keeps those that anybody holds up with the `whole`, and with who has what."""

    def __init__(
        self,
        whole: Latest[Catalogue],
        deployment: Latest[Deployment],
        on_change: Callable[[], None] = lambda: None,
        plugins: PluginTable | None = None,
    ) -> None:
        """`on_change` is called when a realm sees something else."""
        self._on_change = on_change
        self._plugins = plugins or PluginTable()
        self._whole = whole
        self._deployment = deployment
        self._held: WeakValueDictionary[Rights, Realm] = WeakValueDictionary()
        self._joined: OrderedDict[Rights, None] = OrderedDict()
        self._servers: dict[Rights, frozenset[str]] = {}
        self._servers_at = -1
        self._followed = whole.value
        self._followed_at = -1

    def __len__(self) -> int:
        return len(self._held)

    async def of(self, rights: Rights) -> Realm:
        """Return the realm of some rights as the configuration is now. A checkpoint where that has to be made."""
        realm, servers = self._held.get(rights), self._servers_of(rights)
        if realm is None:
            made = Realm(rights, *await self._narrow(servers, None, rights), self._on_joined)
            realm = self._held.setdefault(rights, made)
        # While it was made, say, it may have become another one.
        if realm.servers != servers or realm.view.whole is not self._whole.value or self._has_to_ask(realm):
            await self._follow(realm)
        return realm

    async def run(self) -> None:
        """Keep all that are held up, for ever."""
        changed = trio.Event()
        with AnyOf(self._whole, self._deployment).on_set(lambda: changed.set()):
            while True:
                await self._follow_all()
                with trio.move_on_at(min((realm.asked.again_at for realm in self._held.values()), default=math.inf)):
                    await changed.wait()
                changed = trio.Event()

    async def _follow_all(self) -> None:
        """By itself, so that nothing of it holds a realm while there is nothing to follow.

        Where only launches differ that not all share, those are followed that have one of them: there are as many as
        people. All others do so when somebody comes to them.
        """
        whole, deployed = self._whole.value, self._deployment.version
        launches = launch_changes(self._followed, whole) if deployed == self._followed_at else None
        self._followed, self._followed_at = whole, deployed
        for realm in [*self._held.values()]:
            if launches is None or not launches.isdisjoint(realm.launches.values()) or self._has_to_ask(realm):
                await self._follow(realm)
            elif not realm.turn.locked():  # so that nothing keeps an older catalogue alive
                realm.view = replace(realm.view, whole=whole)

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
            if realm.servers != servers or concerns(realm.view, self._whole.value) or self._has_to_ask(realm):
                view, realm.asked = await self._narrow(servers, realm.view, realm.rights, realm.asked)
                realm.become(view if realm.rights in self._joined else drop(view))
                self._on_change()
            else:  # so that nothing keeps an older catalogue alive
                realm.view = replace(realm.view, whole=self._whole.value)

    async def _narrow(
        self, servers: frozenset[str], before: RealmView | None, rights: Rights, asked: Asked = NOT_ASKED
    ) -> tuple[RealmView, Asked]:
        whole, launches = self._whole.value, launches_of(rights)
        now_asked = await self._ask(rights.viewer, entries_of(whole, servers, launches), asked)
        first, hidden = first_revision(rights), now_asked.hidden
        return await beside(lambda: narrow(whole, servers, before, first, launches, hidden)), now_asked

    def _has_to_ask(self, realm: Realm) -> bool:
        return realm.asked.by != self._plugins.hiding or realm.asked.again_at <= trio.current_time()

    async def _ask(self, viewer: Viewer | None, entries: Mapping[str, Entry], before: Asked) -> Asked:
        """Return what plugins hide of these entries, having asked of what is not known. A checkpoint if any is."""
        by, now = self._plugins.hiding, trio.current_time()
        if not by:
            return NOT_ASKED
        if viewer is None:  # its people came before there was a plugin that hides, and come again as somebody
            nothing = {name: dict.fromkeys(entry.tools, _CAME_BEFORE) for name, entry in entries.items()}
            return Asked(by, {name: Hidden(entry.offer.tools, nothing[name]) for name, entry in entries.items()})
        known = before.known(by, entries, now)
        fresh = {name: entry.offer.tools for name, entry in entries.items() if name not in known}
        hidden = {**known, **(await self._plugins.hidden(viewer, fresh) if fresh else {})}
        failed = any(each.failed for each in hidden.values())
        again_at = before.again_at if any(each.failed for each in known.values()) else now + AGAIN_S
        return Asked(by, hidden, again_at if failed else math.inf)

    def _on_joined(self, realm: Realm) -> None:
        self._joined[realm.rights] = None
        self._joined.move_to_end(realm.rights)
        while len(self._joined) > MAX_JOINED:
            let_go = self._held.get(self._joined.popitem(last=False)[0])
            if let_go is not None:
                let_go.become(drop(let_go.view))
