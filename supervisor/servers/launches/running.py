"""Launches that not all share: a process, or a session, for each distinct configuration that people have of a server.

- People come in before theirs are started: who never comes costs nothing. Equal configurations are one launch.
- What a server's name means is looked up for each request, by who makes it. Below that there are launches alone.
- A launch that nobody has any more, since a value, a team or the file has changed, leaves as a server does that is not
  configured any more; one of which only our limits have changed is replaced.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from actors.catalogue.offer import Offer
from actors.kit import Latest
from actors.launch import server_of
from actors.messages import ServerListed
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.versions import Era
from actors.registry.actor import Registry
from supervisor.config import ServerConfig
from supervisor.identity.people import OwnLaunch, Person
from supervisor.servers.children import Servers
from supervisor.servers.deployment import DeployedServer, Deployment
from supervisor.servers.launches.accounts import AccountName, account_of
from supervisor.servers.launches.names import LaunchNames
from supervisor.servers.reach import discover
from supervisor.servers.reloading.difference import made_of

NOBODY: Final = "nobody has this configuration any more"
Recall = Callable[[str, str], Awaitable[tuple[Offer | None, Era | None]]]
"""Returns what is known from earlier of a launch, by name and digest: what it offers, and its era."""


class Launches:
    """Starts launches for people who come in, and ends those that are nobody's. `run` has to run."""

    def __init__(self, deployment: Latest[Deployment], servers: Servers, registry: Registry, recall: Recall) -> None:
        self.names = LaunchNames(self.mask_of)
        self._deployment = deployment
        self._servers = servers
        self._registry = registry
        self._recall = recall
        self._people: dict[Principal, Person] = {}
        self._running: dict[str, DeployedServer] = {}
        self._entries: dict[str, ServerConfig | None] = {}
        self._turn = trio.Lock()
        self._began = trio.Event()
        self._new = trio.Event()
        self._unknown: list[str] = []

    def digests(self) -> dict[str, str]:
        """Return the digests of the launches that run, by name."""
        return {name: deployed.digest for name, deployed in self._running.items()}

    def mask_of(self, launch: str) -> Callable[[str], str]:
        """Return what hides the secrets of a launch, also of one that all share."""
        own = self._running.get(launch)
        return own.mask if own is not None else self._deployment.value.mask(launch)

    def people_of(self, launch: str) -> list[str]:
        """Return the users who have a launch."""
        having = (each for each in self._people.values() if any(own.name == launch for own in each.rights.launches))
        return sorted({person.user for person in having})

    async def logged_in(self, account: AccountName) -> None:
        """Try again what has a new login."""
        owner, server = account
        own = [each.name for each in self._running.values() if account_of(each) == account]
        for launch in [server] if owner == LOCAL else own:
            await self._servers.logged_in(launch)

    async def prepare(self, person: Person) -> None:
        """Have what is started for somebody be there. A checkpoint unless it is."""
        known = self._people.get(person.principal)
        if known is None or known.rights.launches != person.rights.launches:
            if known is None and not self._deployment.value.own_launchers:
                return
            await self._began.wait()
            async with self._turn:
                now = self._deployment.value.person(person.user, role=person.role, team=person.team)
                # Whoever asked may be gone by now. What was half begun for them would never be begun again.
                with trio.CancelScope(shield=True):
                    await self._take(now or person)

    async def run(self) -> None:
        """Keep the launches up with the configuration and the values, for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._discover_for_ever)
            self._began.set()
            while True:
                version = self._deployment.version
                async with self._turn:
                    await self._follow()
                await self._deployment.wait_newer(version)

    async def _take(self, person: Person) -> None:
        for own in person.rights.launches:
            if own.name and not self._is_running(own):
                launch = self._deployment.value.launch_of(own.server, person)
                if launch.deployed is not None and launch.name == own.name:
                    await self._start(launch.deployed)
        self._people[person.principal] = person
        self.names.set(person.principal, person.rights.launches)

    def _is_running(self, own: OwnLaunch) -> bool:
        """Say whether a launch runs as the entry of its server has it now."""
        entry = self._deployment.value.entries.get(own.server)
        if own.name not in self._running or self._entries[own.name] != entry:
            return False
        self._entries[own.name] = entry  # equal, but newer: it need not be compared again
        return True

    async def _start(self, deployed: DeployedServer) -> None:
        """Start a launch, or start it otherwise."""
        name, before = deployed.name, self._running.get(deployed.name)
        self._running[name] = deployed
        self._entries[name] = self._deployment.value.entries[server_of(name)]
        if before is not None and made_of(before) == made_of(deployed):
            return
        if before is not None:
            offer, era = self._registry.offer(name), None
        else:
            offer, era = await self._recall(name, deployed.digest)
        if offer is not None and before is None:
            await self._registry.address.tell(ServerListed(server=name, incarnation=0, offer=offer))
        drain_s = self._deployment.value.settings.reload_drain_s
        await self._servers.add(deployed, offer, era, disabled=self._servers.is_off(name), drain_s=drain_s)
        if offer is None:
            self._unknown.append(name)
            self._new.set()

    async def _follow(self) -> None:
        """Look at everybody again, and end what nobody has any more."""
        deployment = self._deployment.value
        for principal, person in [*self._people.items()]:
            await trio.lowlevel.checkpoint()
            now = deployment.person(person.user, role=person.role, team=person.team)
            if now is None:
                del self._people[principal]
                self.names.forget(principal)
            else:
                await self._take(now)
        wanted = {own.name for person in self._people.values() for own in person.rights.launches}
        for name in self._running.keys() - wanted:
            del self._running[name], self._entries[name]
            await self._servers.remove(name, NOBODY, deployment.settings.reload_drain_s)
            await self._servers.forget(name)

    async def _discover_for_ever(self) -> None:
        while True:
            await self._new.wait()
            self._new = trio.Event()
            names, self._unknown = self._unknown, []
            await discover(self._servers.directory, names)
