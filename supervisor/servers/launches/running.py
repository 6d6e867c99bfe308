"""Launches that not all share: a process, or a session, for each distinct configuration that people have of a server.

- People come in before theirs are known: who never comes costs nothing. Equal configurations are one launch.
- What a server's name means is looked up for each request, by who makes it. Below that there are launches alone.
- A launch whose tools are known is a value until somebody calls it: then it is made an actor, which is taken from it
  again once it sleeps. So what people have costs what they use.
- A launch that nobody has any more, since a value, a team or the file has changed, leaves as a server does that is not
  configured any more; one of which only our limits have changed is replaced.
- In a fleet a launch has an actor at the node that owns it. That is told by each request for whom it is, so it need not
  have met them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final, Protocol

import trio

from actors.catalogue.offer import Offer
from actors.errors import ActorStopped
from actors.kit import Latest
from actors.launch import launches_of, server_of
from actors.life.states import State
from actors.messages import ReadServer, ServerStatus
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.versions import Era
from actors.registry.actor import Registry
from actors.registry_inbox import LaunchesRecalled
from supervisor.config import ServerConfig
from supervisor.identity.people import Person, team_of, user_of
from supervisor.servers.children import Servers
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.launches.names import AccountName, LaunchNames, account_of
from supervisor.servers.reach import discover, try_again
from supervisor.servers.reloading.difference import made_of

# Launches that sleep lose their actors, so that what people have costs what they use.

ASLEEP: Final = "nobody calls it"
LOOK_S: Final = 10.0
"""Between two looks for launches that sleep."""


class Retirement:
    """Takes actors from launches. `running` are those that have one, and `retired` is told of each that has none any
    more; `turn` is that of whoever changes that.
    """

    def __init__(
        self,
        servers: Servers,
        registry: Registry,
        turn: trio.Lock,
        running: Collection[str],
        retired: Callable[[str], None],
    ) -> None:
        self.moving: set[str] = set()
        """Those that are about to have none."""
        self._servers = servers
        self._registry = registry
        self._turn = turn
        self._running = running
        self._retired = retired

    async def run(self) -> None:
        """Look for launches that sleep, for ever."""
        while True:
            await trio.sleep(LOOK_S)
            for name in [*self._running]:
                status = self._servers.statuses.of(name, {})
                if status is not None and self._may_retire(status) and self._registry.offer(name) is not None:
                    async with self._turn:
                        await self._retire(name)

    def _may_retire(self, status: ServerStatus) -> bool:
        """Say whether nothing would be lost with an actor but the time that it takes to make another one.

        One that is being switched off has to be there to report it.
        """
        busy = status.in_flight or status.waiting or status.tasks or status.legacy_session or status.breakers
        busy = busy or status.requires_reauth
        return status.state is State.DORMANT and not busy and not self._servers.is_off(status.server)

    async def _retire(self, name: str) -> None:
        """Take its actor from a launch that sleeps. What it is sent meanwhile waits until there is another one."""
        directory = self._servers.directory
        address = directory.find(name)
        if address is None:
            return
        self.moving.add(name)
        directory.withdraw(name)
        try:
            status = await address.ask_in_turn(ReadServer())  # answered when all that came before it was handled
            if self._may_retire(status):
                await self._servers.remove(name, ASLEEP, 0.0)
                self._retired(name)
            else:
                directory.admit(name, address)
        except ActorStopped:  # it crashed, and another one takes its place
            return
        finally:
            self.moving.discard(name)


NOBODY: Final = "nobody has this configuration any more"
MAX_MASKS: Final = 256
"""So many are remembered that hide the secrets of launches without an actor."""


class Recall(Protocol):
    """What is known from earlier of launches."""

    async def recall_offers(self, launches: Collection[str]) -> dict[str, Offer]:
        """Return what launches offer, by name."""

    async def recall_era(self, digest: str) -> Era | None:
        """Return what the launch of that digest speaks."""


class Launches:
    """Implements `actors.router.Sleepers`: knows the launches of people who come in, and ends those that are nobody's.

    `run` has to run.
    """

    def __init__(self, deployment: Latest[Deployment], servers: Servers, registry: Registry, recall: Recall) -> None:
        self.names = LaunchNames(self.mask_of, servers.leave)
        self.directory = servers.directory
        """Where launches are found, those of other nodes too."""
        self.dropped: Callable[[str], None] = lambda launch: None
        """Called with each launch that nobody has any more, when it begins to leave."""
        self._deployment = deployment
        self._servers = servers
        self._registry = registry
        self._memory = recall
        self._people: dict[Principal, Person] = {}
        self._holders: defaultdict[str, set[Principal]] = defaultdict(set)
        self._counts: Counter[str] = Counter()
        self._running: dict[str, DeployedServer] = {}
        self._entries: dict[str, ServerConfig] = {}
        self._waiting: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self._turn = trio.Lock()
        self._retirement = Retirement(servers, registry, self._turn, self._running, self.end_here)
        self._began = trio.Event()
        self._called = trio.Event()
        self._new = trio.Event()
        self._unknown: list[str] = []
        self._mask_of_sleeper = lru_cache(MAX_MASKS)(self._make_mask)

    def digest_of(self, launch: str) -> str | None:
        """Return the digest of a launch that has an actor."""
        deployed = self._running.get(launch)
        return deployed.digest if deployed is not None else None

    def mask_of(self, launch: str) -> Callable[[str], str]:
        """Return what hides the secrets of a launch, also of one that all share."""
        own = self._running.get(launch)
        if own is not None:
            return own.mask
        if launch in self._holders:
            return self._mask_of_sleeper(launch, self._deployment.version)
        return self._deployment.value.mask(launch)

    def _make_mask(self, launch: str, version: int) -> Callable[[str], str]:
        del version
        deployed = self._deploy(launch)
        return str if deployed is None else deployed.mask

    def people_of(self, launch: str) -> list[str]:
        """Return the users who have a launch."""
        return sorted({self._people[each].user for each in self._holders.get(launch, ())})

    def count_of(self, server: str) -> int:
        """Return how many launches people have of a server that not all share, with an actor or without."""
        return self._counts[server]

    # Those who are called -------------------------------------------------------------------------------------------

    def has(self, launch: str) -> bool:
        """Say whether a launch is known that has no actor now, or is about to have none."""
        return launch in self._holders and (launch not in self._running or launch in self._retirement.moving)

    def call_up(self, launch: str, then: Callable[[], None]) -> None:
        """Have a launch be made an actor soon; `then` is called once it is, or cannot be."""
        self._waiting[launch].append(then)
        self._called.set()

    async def call_up_all(self, server: str) -> None:
        """Have all launches of a server be actors, for an order that is about all of them."""
        async with self._turn:
            for launch in launches_of(server, [*self._holders]):
                await self._start_if_asleep(launch)

    # Those whom other nodes of the fleet know -----------------------------------------------------------------------

    def knows(self, launch: str) -> bool:
        """Say whether somebody who is known has a launch."""
        return launch in self._holders

    def holder_of(self, launch: str, principal: Principal) -> Principal:
        """Return one of those who have a launch: `principal`, if that is one, and also if there is none."""
        holders = self._holders.get(launch) or {principal}
        return principal if principal in holders else next(iter(holders))

    async def introduce(self, principal: Principal) -> None:
        """Have what is started for somebody be known who may have come in at other nodes alone."""
        person = self._deployment.value.person(user_of(principal), role="member", team=team_of(principal))
        if person is not None:
            await self.prepare(person)

    async def recall_one(self, server: DeployedServer) -> tuple[Offer | None, Era | None]:
        """Return what is known of a launch, also of one that all share: what it offers, and the era that it speaks."""
        era = await self._memory.recall_era(server.digest)
        return self._registry.offer(server.name), era

    async def begin(self, launch: str) -> None:
        """Make a launch an actor that this node owns; nothing happens if it has one, or nobody has it any more."""
        async with self._turn:
            await self._start_if_asleep(launch)

    def end_here(self, launch: str) -> None:
        """A launch has no actor any more."""
        self._running.pop(launch, None)
        self._entries.pop(launch, None)

    # Those who come in ----------------------------------------------------------------------------------------------

    async def logged_in(self, account: AccountName) -> None:
        """Try again what has a new login."""
        owner, server = account
        own = [each.name for each in self._running.values() if account_of(each) == account]
        for launch in [server] if owner == LOCAL else own:
            await try_again(self._servers.directory, launch)  # what other nodes run they hear of themselves

    async def prepare(self, person: Person) -> None:
        """Have what is started for somebody be known. A checkpoint unless it is."""
        known = self._people.get(person.principal)
        if known is None or known.rights.launches != person.rights.launches:
            if known is None and not self._deployment.value.own_launchers:
                return
            await self._began.wait()
            async with self._turn:
                now = self._deployment.value.person(person.user, role=person.role, team=person.team)
                # Whoever asked may be gone by now. What was half begun for them would never be begun again.
                with trio.CancelScope(shield=True):
                    if now is not None:  # else it is nobody any more
                        await self._take(now)

    async def run(self) -> None:
        """Keep the launches up with the configuration and the values, for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._discover_for_ever)
            nursery.start_soon(self._start_for_ever)
            nursery.start_soon(self._retirement.run)
            self._began.set()
            while True:
                version = self._deployment.version
                async with self._turn:
                    await self._follow()
                await self._deployment.wait_newer(version)

    async def _take(self, person: Person) -> None:
        """Know what is started for somebody, and start what it is not known of what it offers."""
        principal, names = person.principal, {own.name for own in person.rights.launches if own.name}
        fresh = {name for name in names if name not in self._holders}
        before = self._people.get(principal)
        for own in before.rights.launches if before is not None else ():
            if own.name and own.name not in names:
                self._holders[own.name].discard(principal)
        self._people[principal] = person
        self._counts.update(map(server_of, fresh))
        for name in names:
            self._holders[name].add(principal)
        await self._recall(fresh)
        self.names.set(principal, person.rights.launches)

    async def _recall(self, launches: set[str]) -> None:
        """Have the registry know what launches offer; those of which nothing is known are started to be asked."""
        off = {name for name in launches if self._servers.is_off(name)}
        offers = await self._memory.recall_offers(sorted(launches))
        if offers:
            entries = self._deployment.value.entries  # the newest: a server may be gone by now
            known = {name: entries[server_of(name)].kind for name in offers if server_of(name) in entries}
            recalled = LaunchesRecalled({name: (kind, offers[name]) for name, kind in known.items()})
            await self._registry.address.ask_in_turn(recalled)
        for name in sorted((launches - offers.keys()) | off):
            if (deployed := self._deploy(name)) is not None:
                await self._start(deployed, offers.get(name))

    def _deploy(self, launch: str) -> DeployedServer | None:
        """Return how a launch is started, by the values of one who has it; None where these are others by now."""
        holder = next(iter(self._holders.get(launch, ())), None)
        if holder is None or server_of(launch) not in self._deployment.value.entries:
            return None
        own = self._deployment.value.launch_of(server_of(launch), self._people[holder])
        return own.deployed if own.name == launch else None

    async def _start(self, deployed: DeployedServer, offer: Offer | None) -> None:
        """Make a launch an actor, or another one."""
        name, drain_s = deployed.name, self._deployment.value.settings.reload_drain_s
        era = await self._memory.recall_era(deployed.digest) if name not in self._running else None
        before = self._running.pop(name, None)
        if self._servers.may_run(name):  # asked where nothing comes between this and the start: else others have it
            self._running[name] = deployed
            self._entries[name] = self._deployment.value.entries[server_of(name)]
            if before is not None and made_of(before) == made_of(deployed):
                await self._servers.resize(deployed, drain_s)
                return
        else:
            self.end_here(name)
        await self._servers.add(deployed, offer, era, disabled=self._servers.is_off(name), drain_s=drain_s)
        if offer is None:
            self._unknown.append(name)
            self._new.set()

    async def _start_if_asleep(self, launch: str) -> None:
        if launch not in self._running and (deployed := self._deploy(launch)) is not None:
            await self._start(deployed, self._registry.offer(launch))

    async def _follow(self) -> None:
        """Look at everybody again, and end what nobody has any more."""
        deployment = self._deployment.value
        for principal, person in [*self._people.items()]:
            await trio.lowlevel.checkpoint()
            now = deployment.person(person.user, role=person.role, team=person.team)
            if now is not None:
                await self._take(now)
                continue
            for own in person.rights.launches:
                if own.name:
                    self._holders[own.name].discard(principal)
            del self._people[principal]
            self.names.forget(principal)
        for name in [name for name, holders in self._holders.items() if not holders]:
            del self._holders[name]
            self._counts[server_of(name)] -= 1
            self.end_here(name)
            await self._servers.remove(name, NOBODY, deployment.settings.reload_drain_s)
            await self._servers.forget(name)
            self.dropped(name)
        for name, entry in [*self._entries.items()]:
            newest = deployment.entries[server_of(name)]
            self._entries[name] = newest
            if entry != newest and (deployed := self._deploy(name)) is not None:
                await self._start(deployed, self._registry.offer(name))

    async def _start_for_ever(self) -> None:
        while True:
            await self._called.wait()
            self._called = trio.Event()
            while self._waiting:
                launch = next(iter(self._waiting))
                async with self._turn:
                    await self._start_if_asleep(launch)
                for then in self._waiting.pop(launch):
                    then()

    async def _discover_for_ever(self) -> None:
        while True:
            await self._new.wait()
            self._new = trio.Event()
            names, self._unknown = self._unknown, []
            await discover(self.directory, names)
