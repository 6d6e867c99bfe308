"""What people hear of the daemon's own events, by the configuration as it is now."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from actors.kit import Latest
from actors.launch import is_own
from supervisor.events.audience import EventReader
from supervisor.identity.people import Person
from supervisor.servers.deployment import Deployment
from supervisor.service.realms import launches_of, servers_by


class Hearing:
    """That of one member who listens. `people_of` gives the users who have a launch."""

    def __init__(self, deployment: Latest[Deployment], people_of: Callable[[str], Sequence[str]]) -> None:
        self._deployment = deployment
        self._people_of = people_of
        self._seen: tuple[Person, Deployment] | None = None
        self._servers = frozenset[str]()
        self._had = frozenset[str]()
        """Servers that the member has, or had until they were removed."""

    def reader(self, person: Person) -> EventReader:
        """Return what decides what the member hears now, who is this person now."""
        deployment = self._deployment.value
        if self._seen is None or self._seen[1] is not deployment or self._seen[0] != person:
            self._seen, self._servers = (person, deployment), servers_by(person.rights, deployment)
            self._had = (self._had | self._servers) - (deployment.server_names - self._servers)
        return EventReader(
            principal=person.principal,
            user=person.user,
            servers=self._servers,
            gone=self._had - self._servers,
            launches=launches_of(person.rights),
            is_alone=lambda launch: is_own(launch) and self._people_of(launch) == [person.user],
        )
