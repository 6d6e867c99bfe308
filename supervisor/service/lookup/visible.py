"""What a client may see: the newest catalogue, and how the servers are doing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

import trio
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue
from actors.catalogue.views import ProfileView, ViewProfile, view
from actors.kit import Latest
from actors.life.states import State
from actors.messages import ServerStatus
from actors.principal import Principal
from supervisor.host.workbench import beside
from supervisor.metatools.servers import newcomers
from supervisor.service.client import Client
from supervisor.service.realms import Realm

INDEX_WAIT_S = 2.0
"""How long a search waits, right after the start, for all that is known to be in the index."""


class Visible:
    """The newest catalogue through the eyes of a client. Deadlines are moments of the trio clock.

    `confirms` says of a server's tool, by its own name, whether it runs for somebody only after a yes of theirs. Of a
    `realm` it is what the catalogue has of that.
    """

    def __init__(
        self,
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        confirms: Callable[[Principal, str, str], bool] = lambda principal, server, tool: False,
        realm: Realm | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._statuses = statuses
        self.confirms = confirms
        self._realm = realm
        self._own_statuses: tuple[object, object, Mapping[str, ServerStatus]] = None, None, {}
        self._renamed: dict[str, tuple[ServerStatus, ServerStatus]] = {}
        self._overdue: dict[Principal, frozenset[str]] = {}

    def statuses(self, principal: Principal) -> Mapping[str, ServerStatus]:
        """Return how each server is doing, as last reported."""
        del principal
        every = self._statuses.value
        if self._realm is None:
            return every
        realm = self._realm
        if self._own_statuses[0] is not every or self._own_statuses[1] is not realm.servers:
            own = {server: self._renamed_to(server, status) for server, status in _statuses_in(realm, every)}
            self._own_statuses = every, realm.servers, own
        return self._own_statuses[2]

    def _renamed_to(self, server: str, status: ServerStatus) -> ServerStatus:
        """Return how a launch is doing under the name of its server: the same object for the same."""
        if status.server == server:
            return status
        known = self._renamed.get(server)
        if known is None or known[0] is not status:
            known = self._renamed[server] = status, replace(status, server=server)
        return known[1]

    def is_awake(self, principal: Principal, server: str) -> bool:
        status = self.statuses(principal).get(server)
        return status is not None and status.state is State.READY

    @property
    def reports(self) -> int:
        return self._statuses.version

    @property
    def versions(self) -> tuple[int, int]:
        """How many catalogues, and how many reports of servers, there were so far."""
        return self._catalogue.version, self._statuses.version

    async def changed_since(self, catalogues: int, reports: int) -> None:
        """Wait until there are more than so many catalogues or reports of servers. A checkpoint."""
        async with trio.open_nursery() as nursery:
            for cell, seen in ((self._catalogue, catalogues), (self._statuses, reports)):
                nursery.start_soon(end_when_changed, cell, seen, nursery.cancel_scope)

    async def wait_for_report(self, seen: int) -> None:
        """Wait until there are more than `seen` reports of servers. A checkpoint."""
        await self._statuses.wait_newer(seen)

    def now(self, principal: Principal) -> Catalogue:
        return self._catalogue.value.view(principal)

    async def prepare(self, principal: Principal) -> None:
        """Have what a principal sees be there before it is asked for, if it takes long to make. A checkpoint."""
        del principal
        await trio.lowlevel.checkpoint()

    async def searchable(self, client: Client, kinds: frozenset[str]) -> None:
        """Wait a moment until all of these kinds can be searched. A checkpoint unless they can."""
        if self._realm is not None:
            await self._realm.join()
        with trio.move_on_after(INDEX_WAIT_S):
            while not self.now(client.principal).searchable(kinds):
                await self._catalogue.wait_newer(self._catalogue.version)

    async def listing(self, principal: Principal, server: str, tools: Collection[str] = ()) -> None:
        """Wait until it is known what a server offers, these tools of its own among it. A checkpoint unless it is."""
        while (entry := self.now(principal).entries.get(server)) is None or not entry.has(tools):
            await self._catalogue.wait_newer(self._catalogue.version)

    async def wait_for_discovery(self, client: Client, seconds: float) -> Catalogue:
        """Return what a client sees; wait so long at most while servers are being discovered for the first time.

        A server that did not come while somebody waited is not waited for again: it may take minutes to install.
        """
        principal = client.principal
        seen = self.now(principal)
        with trio.move_on_after(seconds) as waiting:
            while newcomers(seen, self.statuses(principal)) - self._overdue.get(principal, frozenset()):
                await self.changed_since(*self.versions)
                seen = self.now(principal)
        if waiting.cancelled_caught:
            seen = self.now(principal)
            late = newcomers(seen, self.statuses(principal))
            self._overdue[principal] = self._overdue.get(principal, frozenset()) | late
        return seen


class VisibleByProfile(Visible):
    """What a client sees that asks for a profile; what that is may change."""

    def __init__(
        self,
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        profile: Callable[[], ViewProfile],
        confirms: Callable[[Principal, str, str], bool] = lambda principal, server, tool: False,
        realm: Realm | None = None,
    ) -> None:
        super().__init__(catalogue, statuses, confirms, realm)
        self._profile = profile
        self._views: dict[Principal, ProfileView] = {}
        self._seen_statuses: dict[Principal, tuple[object, object, Mapping[str, ServerStatus]]] = {}

    def now(self, principal: Principal) -> Catalogue:
        whole, profile, known = super().now(principal), self._profile(), self._views.get(principal)
        if known is None or known.whole is not whole or known.profile is not profile:
            known = self._views[principal] = view(whole, profile, known)
        return known.seen

    async def prepare(self, principal: Principal) -> None:
        """Look at every server in a thread, if the profile is new or another one: later only at those that change."""
        whole, profile, known = super().now(principal), self._profile(), self._views.get(principal)
        if known is not None and known.profile is profile:
            await trio.lowlevel.checkpoint()
            return
        made = await beside(partial(view, whole, profile, known))
        if self._views.get(principal) is known:
            self._views[principal] = made

    def statuses(self, principal: Principal) -> Mapping[str, ServerStatus]:
        seen, every = self.now(principal), super().statuses(principal)
        known = self._seen_statuses.get(principal)
        if known is None or known[0] is not seen or known[1] is not every:
            own = {name: status for name, status in every.items() if name in seen.names.servers}
            known = self._seen_statuses[principal] = seen, every, own
        return known[2]


def _statuses_in(realm: Realm, every: Mapping[str, ServerStatus]) -> Iterator[tuple[str, ServerStatus]]:
    """Yield how the servers of a realm are doing, each by its own launch."""
    own = realm.view.whole.own
    for server in sorted(realm.servers):
        launch = realm.launches.get(server, server)
        status = realm.waits.get(server) or every.get(launch)
        if status is None and launch in own:
            status = realm.asleep[server]
        if status is not None:
            yield server, status


async def end_when_changed(cell: Latest[Any], seen: int, scope: trio.CancelScope) -> None:
    await cell.wait_newer(seen)
    scope.cancel()
