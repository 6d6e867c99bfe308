"""The daemon's own events, as a source: each kind is a type of its name (`docs/reference/event-kinds.md`).

- The name of a server's type has that of its server and a colon before it, and a kind has none: neither can be taken
  for the other.
- Who hears what is decided as for `/api/events` (`supervisor/events/event.py`). A member has topics of their own, as
  each hears something else; all who hear everything share theirs.
- The place in the log of events is the cursor, and the id of the event: the same as at `/api/events`. The log is that
  of this life of the daemon; what it does not reach is a gap.
- Nobody is flooded by what happens with each call: a topic has its pace, what comes faster waits in the log, and what
  that does not keep is a gap, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import trio

from actors.kit import Latest
from actors.principal import Principal
from supervisor.delivery.events import DaemonEvents
from supervisor.events.event import EventReader, occurrence
from supervisor.events.kinds import KINDS
from supervisor.events.schemas import definition_of, read_filter
from supervisor.identity.people import Person, team_of, user_of
from supervisor.servers.deployment import Deployment
from supervisor.service.events.limits import MAX_EVENT_BYTES, REVOKED
from supervisor.service.events.sources import EventType, Origin, Terminated, Told, Viewpoint
from supervisor.service.realms import launches_of, servers_by

# What people hear of the daemon's own events, by the configuration as it is now.


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
            is_alone=lambda launch: self._people_of(launch) == [person.user],
        )


MAX_PER_S: Final = 100
"""Events that a topic looks at in a second, where they come so fast."""


class KnownPeople(Protocol):
    """Who has which launch; see `Launches`."""

    def people_of(self, launch: str) -> Sequence[str]:
        """Return the users who have a launch."""

    async def introduce(self, principal: Principal) -> None:
        """Have what is started for somebody be known."""


class OwnEvents:
    """Implements `Source`. `people` are those who have launches."""

    def __init__(self, events: DaemonEvents, deployment: Latest[Deployment], people: KnownPeople) -> None:
        self._events = events
        self._deployment = deployment
        self._people = people

    def types(self, at: Viewpoint) -> Iterable[EventType]:
        return [EventType(name, definition_of(name)) for name in KINDS if _is_heard(name, at)]

    def find(self, at: Viewpoint, name: str, arguments: bytes) -> Origin | None:
        if name not in KINDS or not _is_heard(name, at):
            return None
        read_filter(KINDS[name], arguments)
        return Origin(name, "", name if at.hears_all else f"{name} {at.principal}", arguments)

    async def follow(self, origin: Origin, cursor: str | None, told: Told) -> None:
        name, _, listener = origin.own.partition(" ")
        kind, member = KINDS[name], Principal(listener) if listener else None
        wanted, hearing = read_filter(kind, origin.arguments), Hearing(self._deployment, self._people.people_of)
        log, places = self._events.log, self._events.places
        if member is not None:
            await self._people.introduce(member)
        self._events.settle()  # calls that have ended are before it
        reader = self._reader(hearing, member)
        number = places.read(cursor, member) if cursor is not None else log.newest.value
        is_whole = number is not None and log.begin_of(kind) <= number <= log.newest.value
        if number is None or not is_whole:
            number = log.begin_of(kind)
        told.active(places.show(number, member), truncated=not is_whole)
        while True:
            await log.wait_for(kind, number)
            if (begin := log.begin_of(kind)) > number:
                number = begin
                told.active(places.show(number, member), truncated=True)
            newest = log.newest.value
            reader, events = self._reader(hearing, member), log.of(kind, number, MAX_PER_S)
            for event in events:
                number, place = event.number, places.show(event.number, member)
                data = event.data if reader is None else reader.hears(event)
                if data is not None and wanted.passes(data):
                    told.event(occurrence(event, place, data, MAX_EVENT_BYTES), place)
                else:
                    told.checked(place)
            if len(events) < MAX_PER_S:
                number = newest  # so that nobody looks again through what was of other kinds
            await trio.sleep(len(events) / MAX_PER_S)

    def _reader(self, hearing: Hearing, member: Principal | None) -> EventReader | None:
        """Return what decides what a member hears now; None for those who hear everything. Raises `Terminated`."""
        if member is None:
            return None
        person = self._deployment.value.person(user_of(member), role="member", team=team_of(member))
        if person is None:
            raise Terminated(REVOKED)
        return hearing.reader(person)


def _is_heard(name: str, at: Viewpoint) -> bool:
    return at.hears_all or KINDS[name].audience != "auditors"
