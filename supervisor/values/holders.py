"""Who has given which values of servers, and who has yet to: names alone, never a value. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from supervisor.identity.people import Tier
from supervisor.servers.deployment import Deployment
from supervisor.values.rows import ValueRow, rows_of_server, team_of, tiered_servers

MAX_USERS: Final = 200
"""So many are looked at: each costs some 50 us for each of their servers."""
Keys = dict[tuple[str, str], "ValueHolders"]


class ValueHolder(Struct, frozen=True):
    """A user or a team that gives a value; without a tier a user whose team should, and who is in none."""

    tier: Tier | None
    owner: str

    @property
    def words(self) -> str:
        if self.tier is None:
            return f"{self.owner}, who is in no team"
        return f"team {self.owner}" if self.tier == "team" else self.owner


class ValueHolders(Struct, kw_only=True):
    """One value of a server. `tier`: who gives it last; `given` and `missing`: by whom it is given, and of whom not.

    `secret`: it is shown to nobody. `several`: it is a list of arguments.
    """

    server: str
    name: str
    tier: Tier
    secret: bool
    several: bool
    given: list[ValueHolder]
    missing: list[ValueHolder]


def known_users(deployment: Deployment) -> list[str]:
    """Return the users that the configuration names, or where it names none those that it or a value is of."""
    people = deployment.settings.identity
    if people.users:
        return sorted(people.users)
    members = {member for team in people.teams.values() for member in team.members}
    return sorted(members | {owner for tier, owner in deployment.given.stored if tier == "user"})


def value_holders(deployment: Deployment, users: Iterable[str]) -> list[ValueHolders]:
    """Return every value that servers take, sorted, with what the users, and all teams, have given of it."""
    known: Keys = {}
    for holder, row in (*_of_teams(deployment), *_of_users(deployment, users)):
        empty = ValueHolders(
            server=row.server,
            name=row.name,
            tier=row.tier,
            secret=row.secret,
            several=row.several,
            given=[],
            missing=[],
        )
        value = known.setdefault((row.server, row.name), empty)
        named = value.given if row.by is not None else value.missing if row.missing else []
        by = ValueHolder(row.by, row.owner) if row.by is not None else holder
        if by not in named:
            named.append(by)
    return [known[key] for key in sorted(known)]


def _of_teams(deployment: Deployment) -> Iterator[tuple[ValueHolder, ValueRow]]:
    """Yield what each team gives of its own servers, and who has to give it."""
    people = deployment.settings.identity
    for team, each in people.teams.items():
        for server in tiered_servers(deployment, None):
            if server in each.servers or any(deployment.given.parts(people, ("team", team), server)):
                rows = rows_of_server(deployment, server, user=None, team=team)
                holder = ValueHolder("team", team)
                yield from ((holder, row) for row in rows if row.tier == "team" or row.by is not None)


def _of_users(deployment: Deployment, users: Iterable[str]) -> Iterator[tuple[ValueHolder, ValueRow]]:
    for user in users:
        person = deployment.person(user, role="admin", team="")
        for server in tiered_servers(deployment, person) if person is not None else ():
            team = team_of(deployment, person, server) if person is not None else ""
            for row in rows_of_server(deployment, server, user=person, team=team, hidden=True):
                of_team = ValueHolder("team", team) if team else ValueHolder(None, user)
                yield (ValueHolder("user", user) if row.tier == "user" else of_team), row
