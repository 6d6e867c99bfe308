"""What those see who come in one way: the newest catalogue, how servers are doing, and how more comes to be seen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue
from actors.catalogue.views import NO_PROFILE, ProfileView, ViewProfile, view
from actors.errors import ServerStarting, SupervisorError, UnknownServer
from actors.kit import Address, AnyOf, Latest, Signal
from actors.life.states import State
from actors.messages import Refreshed, RefreshServer, ServerStatus, WakeServer
from actors.principal import Principal
from actors.router import Message as RouterMessage
from actors.server.calls.errors import log_hint
from actors.server.parts.recovery import STARTING_RETRY_S
from supervisor.host.pauses import DebouncedSignal
from supervisor.host.workbench import beside
from supervisor.metatools.servers import late, newcomers, refusal, respawn_after_s
from supervisor.metatools.texts import clean
from supervisor.servers.deployment import Deployment
from supervisor.servers.safety import Doubt, SafetyRules
from supervisor.service.realms import Realm

INDEX_WAIT_S = 2.0
"""How long a search waits, right after the start, for all that is known to be in the index."""


class Visible:
    """The newest catalogue, and how its servers are doing, through the eyes of those who come in one way.

    What is seen depends on that way alone: on the `realm`, which people with the same rights share (nobody's: all there
    is), and on the `profile` that is asked for (empty: none), which is what the configuration says of it now. Nothing
    of a profile is seen once there is none of that name.
    """

    def __init__(
        self,
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        deployment: Latest[Deployment],
        realm: Realm | None = None,
        profile: str = "",
    ) -> None:
        self._catalogue = catalogue
        self._statuses = statuses
        self._deployment = deployment
        self._realm = realm
        self._profile = profile
        self._view: ProfileView | None = None
        self._own_statuses: tuple[object, object, Mapping[str, ServerStatus]] = None, None, {}
        self._renamed: dict[str, tuple[ServerStatus, ServerStatus]] = {}
        self._overdue: frozenset[str] = frozenset()
        may_change = AnyOf(catalogue, deployment) if profile else catalogue
        self.changes: Signal = DebouncedSignal(may_change, self._debounce_s)

    def _debounce_s(self) -> float:
        return self._deployment.value.settings.list_changed_debounce_s

    def of_realm(self, realm: Realm) -> Visible:
        """Return what people see who have some servers."""
        return Visible(realm.catalogue, self._statuses, self._deployment, realm)

    def by_profile(self, name: str) -> Visible:
        """Return what of this is seen by a profile."""
        return Visible(self._catalogue, self._statuses, self._deployment, self._realm, name)

    @property
    def catalogue(self) -> Catalogue:
        whole = self._catalogue.value
        if not self._profile:
            return whole
        profile, known = self._profile_now(), self._view
        if known is None or known.whole is not whole or known.profile is not profile:
            known = self._view = view(whole, profile, known)
        return known.seen

    async def prepare(self) -> None:
        """Have what is seen be there before it is asked for: if the profile is new, or another one, every server is
        looked at in a thread; later only those that change. A checkpoint then.
        """
        profile, known = self._profile_now(), self._view
        if not self._profile or (known is not None and known.profile is profile):
            return
        made = await beside(partial(view, self._catalogue.value, profile, known))
        if self._view is known:
            self._view = made

    def _profile_now(self) -> ViewProfile:
        return self._deployment.value.settings.profiles.get(self._profile, NO_PROFILE)

    @property
    def statuses(self) -> Mapping[str, ServerStatus]:
        """How each server is doing, as last reported."""
        every, realm = self._statuses.value, self._realm
        if realm is None and not self._profile:
            return every
        within: object = self.catalogue if self._profile or realm is None else realm.servers
        if self._own_statuses[0] is not every or self._own_statuses[1] is not within:
            of_realm = every.items() if realm is None else _statuses_in(realm, every)
            own = {server: self._renamed_to(server, status) for server, status in of_realm}
            if self._profile:
                servers = self.catalogue.names.servers
                own = {name: status for name, status in own.items() if name in servers}
            self._own_statuses = every, within, own
        return self._own_statuses[2]

    def _renamed_to(self, server: str, status: ServerStatus) -> ServerStatus:
        """Return how a launch is doing under the name of its server: the same object for the same."""
        if status.server == server:
            return status
        known = self._renamed.get(server)
        if known is None or known[0] is not status:
            known = self._renamed[server] = status, replace(status, server=server)
        return known[1]

    def may_have(self, server: str) -> bool:
        """Say whether a server can be seen, as far as its name tells."""
        has = self._realm is None or server in self._realm.servers
        return has and (not self._profile or self._profile_now().may_have(server))

    def launch_of(self, server: str) -> str:
        """Return the launch that is seen under the name of a server."""
        return server if self._realm is None else self._realm.launches.get(server) or server

    def is_awake(self, server: str) -> bool:
        status = self.statuses.get(server)
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

    async def searchable(self, kinds: frozenset[str]) -> None:
        """Wait a moment until all of these kinds can be searched. A checkpoint unless they can."""
        if self._realm is not None:
            await self._realm.join()
        with trio.move_on_after(INDEX_WAIT_S):
            while not self.catalogue.searchable(kinds):
                await self._catalogue.wait_newer(self._catalogue.version)

    async def listing(self, server: str, tools: Collection[str] = ()) -> None:
        """Wait until it is known what a server offers, these tools of its own among it. A checkpoint unless it is."""
        while (entry := self.catalogue.entries.get(server)) is None or not entry.has(tools):
            await self._catalogue.wait_newer(self._catalogue.version)

    async def wait_for_discovery(self, seconds: float) -> Catalogue:
        """Return what is seen; wait so long at most while servers are being discovered for the first time.

        A server that did not come while somebody waited is not waited for again: it may take minutes to install.
        """
        seen = self.catalogue
        with trio.move_on_after(seconds) as waiting:
            while newcomers(seen, self.statuses) - self._overdue:
                await self.changed_since(*self.versions)
                seen = self.catalogue
        if waiting.cancelled_caught:
            seen = self.catalogue
            self._overdue |= newcomers(seen, self.statuses)
        return seen


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


# Waiting for a server of which nothing is known yet: it is woken, and whoever named it gets an answer in time.


class Arrival:
    """Brings undiscovered servers into the catalogue."""

    def __init__(self, router: Address[RouterMessage], visible: Visible) -> None:
        self.router = router
        self._visible = visible

    async def of(self, server: str, principal: Principal, by: float) -> None:
        """Wake a server and wait until it is known what it offers; `by` is a moment of the trio clock.

        Raises `ServerStarting` if it is not ready by then, or cannot be because its next start comes later;
        `ServerGaveUp` and `ServerDisabled` if it does not come up at all; what the router raises. A checkpoint.
        """
        failure: SupervisorError | None = None

        async def wake(scope: trio.CancelScope) -> None:
            nonlocal failure
            try:
                await self._wake(server, principal)
            except SupervisorError as error:
                failure = error
                scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = by
            nursery.start_soon(wake, nursery.cancel_scope)
            nursery.start_soon(self._end_if_too_late, server, by, nursery.cancel_scope)
            await self._visible.listing(server)
            nursery.cancel_scope.cancel()
        if server in self._visible.catalogue.entries:
            return
        raise failure or late(server, self._visible.statuses.get(server), trio.current_time())

    async def _wake(self, server: str, principal: Principal) -> None:
        """Wake a server that has an actor, or as soon as it has one. Raises `SupervisorError`."""
        while True:
            seen = self._visible.reports
            if (refused := refusal(server, self._visible.statuses.get(server))) is not None:
                raise refused
            try:
                await self.router.ask(WakeServer(server=server, principal=principal))
            except UnknownServer:  # at the start, and after a crash of its actor, there is none for a moment
                await self._visible.wait_for_report(seen)
            else:
                return

    async def _end_if_too_late(self, server: str, by: float, scope: trio.CancelScope) -> None:
        """Cancel `scope` once it is known that the next start of a failing server comes after the deadline."""
        while True:
            status = self._visible.statuses.get(server)
            now = trio.current_time()
            wait = respawn_after_s(status, now)
            if wait is not None and now + wait > by:
                scope.cancel()
            await self._visible.wait_for_report(self._visible.reports)


# Reading the lists of a sleeping server for a tool that it did not have when they were read last.
#
# A server may gain a tool while nobody is there to hear of it: the daemon was down, or the server slept. The bound is
# per server, whatever names are asked for: after a reading that did not bring the tool none is made for
# `FIRST_PAUSE_S`, and each further one in vain doubles that pause, up to `LONGEST_PAUSE_S`.

FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 3600.0
_NOT_UP = frozenset({State.DORMANT, State.SPAWNING, State.HANDSHAKING, State.DISCOVERING})
"""Who is in one of these states reads its lists before, or right after, it is ready; whoever is ready has read them."""


class _Reading:
    """A reading that is under way: its result, or why there is none; neither if whoever asked for it went away."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self.refreshed = Refreshed()
        self.failure: SupervisorError | None = None


class Looks:
    """The readings of sleeping servers. A server has at most one at a time; others who name it wait for that."""

    def __init__(self, router: Address[RouterMessage], visible: Visible) -> None:
        self._router = router
        self._visible = visible
        self._under_way: dict[str, _Reading] = {}
        self._pauses: dict[str, tuple[float, float]] = {}  # by server: seconds, and the moment at which it is over

    async def find(self, server: str, tool: str, principal: Principal, by: float) -> None:
        """Wake a server that is not up and wait until the catalogue has its lists, unless that was done lately.

        `by` is a moment of the trio clock. Raises `ServerStarting` if the lists are not there by then, and what keeps
        the server from starting. A checkpoint if there is anything to wait for.
        """
        status = self._visible.statuses.get(server)
        if status is None or status.state not in _NOT_UP:
            return
        reading = self._under_way.get(server)
        if reading is None and trio.current_time() < self._pauses.get(server, (0.0, 0.0))[1]:
            return
        with trio.move_on_at(by) as waiting:
            if reading is None:
                reading = await self._read(server, tool, principal)
            else:
                await reading.over.wait()
            if reading.failure is not None:
                raise reading.failure
            await self._visible.listing(server, reading.refreshed.added)
        if waiting.cancelled_caught:
            text = f"server {server!r} is not ready yet: whether it has a tool {clean(tool[:100])!r} is not known"
            raise ServerStarting(f"{text}; {log_hint(server)}", server=server, retry_after_s=STARTING_RETRY_S)

    async def _read(self, server: str, tool: str, principal: Principal) -> _Reading:
        reading = self._under_way[server] = _Reading()
        pause_s = min(2 * self._pauses.get(server, (FIRST_PAUSE_S / 2, 0.0))[0], LONGEST_PAUSE_S)
        try:
            reading.refreshed = await self._router.ask(
                RefreshServer(server=server, operator=False, principal=principal)
            )
        except SupervisorError as error:
            reading.failure = error
        finally:
            if tool in reading.refreshed.added:
                self._pauses.pop(server, None)
            else:
                self._pauses[server] = pause_s, trio.current_time() + pause_s
            del self._under_way[server]
            reading.over.set()
        return reading


class ClientView(msgspec.Struct, frozen=True, eq=False):
    """What clients see who come in one way, and what wakes and reads servers so that they see more.

    That is shared by all profiles: what a server has, and whether it is in one, is known once it was read.
    """

    visible: Visible
    arrival: Arrival
    looks: Looks
    safety: SafetyRules

    @classmethod
    def of(cls, visible: Visible, router: Address[RouterMessage], safety: SafetyRules) -> ClientView:
        return cls(visible, Arrival(router, visible), Looks(router, visible), safety)

    def of_realm(self, realm: Realm) -> ClientView:
        return self.of(self.visible.of_realm(realm), self.arrival.router, self.safety)

    def by_profile(self, name: str) -> ClientView:
        return replace(self, visible=self.visible.by_profile(name))

    def confirms(self, principal: Principal, server: str, tool: str) -> bool:
        """Say whether a tool, by its server's own name for it, runs for somebody only after a yes of theirs."""
        return self.safety.confirms(principal, self.visible.launch_of(server), tool)

    def doubt(self, principal: Principal, server: str, tool: str) -> Doubt | None:
        """Return why a tool, by its server's own name for it, does not surely only read for somebody."""
        return self.safety.doubt(principal, self.visible.launch_of(server), tool)
