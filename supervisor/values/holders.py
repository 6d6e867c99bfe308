"""Who has given which values of servers, and who has yet to: names alone, never a value. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from supervisor.identity.given import Tier
from supervisor.servers.deployment import Deployment
from supervisor.values.rows import ValueRow, rows_of_server, team_of, tiered_servers

MAX_USERS: Final = 200
"""So many are looked at: each costs some 50 us for each of their servers."""
Keys = dict[tuple[str, str], "ValueHolders"]


class ValueHolders(Struct, kw_only=True):
    """One value of a server. `tier`: who gives it last; `given` and `missing` name users, and teams as `team NAME`."""

    server: str
    name: str
    tier: Tier
    given: list[str]
    missing: list[str]


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
        empty = ValueHolders(server=row.server, name=row.name, tier=row.tier, given=[], missing=[])
        value = known.setdefault((row.server, row.name), empty)
        named = value.given if row.by is not None else value.missing if row.missing else []
        by = f"team {row.owner}" if row.by == "team" else row.owner if row.by == "user" else holder
        if by not in named:
            named.append(by)
    return [known[key] for key in sorted(known)]


def _of_teams(deployment: Deployment) -> Iterator[tuple[str, ValueRow]]:
    """Yield what each team gives of its own servers, and who has to give it."""
    people = deployment.settings.identity
    for team, each in people.teams.items():
        for server in tiered_servers(deployment, None):
            if server in each.servers or any(deployment.given.parts(people, ("team", team), server)):
                rows = rows_of_server(deployment, server, user=None, team=team)
                yield from ((f"team {team}", row) for row in rows if row.tier == "team" or row.by is not None)


def _of_users(deployment: Deployment, users: Iterable[str]) -> Iterator[tuple[str, ValueRow]]:
    for user in users:
        person = deployment.person(user, role="admin", team="")
        for server in tiered_servers(deployment, person) if person is not None else ():
            team = team_of(deployment, person, server) if person is not None else ""
            for row in rows_of_server(deployment, server, user=person, team=team, hidden=True):
                of_team = f"team {team}" if team else f"{user}, who is in no team"
                yield (user if row.tier == "user" else of_team), row
