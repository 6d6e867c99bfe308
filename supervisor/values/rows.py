"""Values of teams and users as they are shown: to a user those of their servers, of a team to an admin. Pure.

- Secrets are masked. A value that is hidden is not shown to users, nor that there is one: only that their team has yet
  to give something.
- Who has given which values, and who has yet to, is told by names alone.
- What holds for a server for somebody can be shown without a daemon, too: read from a file, with what one was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, convert
from msgspec.structs import replace

from actors.errors import InvalidArguments
from actors.transport.redaction import HIDDEN
from supervisor.config import Configuration, ServerConfig
from supervisor.config.given import (
    Effective,
    choose,
    effective,
    is_secret_value,
    place_of,
    rule_of,
    takes_of_users,
    tiers_of,
)
from supervisor.identity.people import Given, GivenValues, Person, Tier, Value, servers_of
from supervisor.servers.deployment import Deployment, deploy

Kept = Literal["file", "daemon"]


class ValueRow(Struct, frozen=True, kw_only=True):
    """One value of a server.

    `tier`: who gives it last. `by`: whose value holds, null where a default does or nothing; `kept`: whether it is in
    the file, at a `line`, or was given to the daemon. `value` is masked if it is secret. `missing`: the server waits
    for it. `locked`: users cannot give it.
    """

    server: str
    name: str
    tier: Tier
    by: Tier | None = None
    owner: str = ""
    kept: Kept | None = None
    line: int | None = None
    value: Value | None = None
    missing: bool = False
    secret: bool = False
    locked: bool = False
    hidden: bool = False
    several: bool = False
    options: tuple[str, ...] = ()
    description: str = ""


class ShownValues(Struct, frozen=True, kw_only=True):
    """Whose values these are, and which servers wait for hidden ones of the team."""

    user: str = ""
    team: str = ""
    values: list[ValueRow]
    awaiting_team: list[str] = []


def rows_of_server(
    deployment: Deployment, server: str, *, user: Person | None, team: str, hidden: bool = False
) -> Iterator[ValueRow]:
    """Yield the values of a server as they hold for a user, with those of a team; without a user, for the team.

    Those of a user are without what is hidden, unless `hidden`.
    """
    config, people, given = deployment.entries[server], deployment.settings.identity, deployment.given
    of_team = given.of(people, ("team", team), server) if team else {}
    of_user = given.of(people, ("user", user.user), server) if user is not None else {}
    holds = effective(config, of_team, of_user)
    owners: dict[Tier, str] = {"team": team, "user": user.user if user is not None else ""}
    for name, tier in tiers_of(config).items():
        rule = rule_of(config, name)
        if user is not None and rule.hidden and not hidden:
            continue
        users = tier == "user" and takes_of_users(rule, of_team.get(name))
        by, value = choose(rule, of_team.get(name), of_user.get(name) if users else None)
        kept, line = _place_of(deployment, by, owners[by], server, name) if value is not None else (None, None)
        secret = is_secret_value(config, name, value.value if value is not None else ())
        yield ValueRow(
            server=server,
            name=name,
            tier=tier,
            by=by if value is not None else None,
            owner=owners[by] if value is not None else "",
            value=_mask_value(value, secret=secret),
            missing=name in holds.missing,
            secret=secret,
            locked=tier == "user" and not users,
            hidden=rule.hidden,
            several=rule.several,
            options=rule.options,
            description=rule.description,
            kept=kept,
            line=line,
        )


def _mask_value(given: Given | None, *, secret: bool) -> Value | None:
    """Return a value as it may be shown."""
    if given is None:
        return None
    if not secret:
        return given.value
    return HIDDEN if isinstance(given.value, str) else (HIDDEN,) * len(given.value)


def _place_of(deployment: Deployment, tier: Tier, owner: str, server: str, name: str) -> tuple[Kept, int | None]:
    people = deployment.settings.identity
    named = people.users.get(owner) if tier == "user" else people.teams.get(owner)
    if named is None or name not in named.values.get(server, {}):
        return "daemon", None
    return "file", deployment.line_of(place_of(tier, owner, server, name))


def team_of(deployment: Deployment, user: Person, server: str) -> str:
    """Return which team's values hold for a user of a server; empty for none."""
    people = deployment.settings.identity
    teams = (user.team,) if user.team else people.teams_of(user.user)
    return deployment.given.team_for(people, teams, server)


def tiered_servers(deployment: Deployment, user: Person | None) -> list[str]:
    """Return the servers that take values, those of a user or all."""
    servers = deployment.value_takers
    if user is not None:
        servers = servers_of(user.rights, servers, deployment.settings.identity.teams, deployment.users)
    return sorted(servers)


def awaits_team(config: ServerConfig, holds: Effective) -> bool:
    """Say whether a server waits for a value that users do not see."""
    return any(rule_of(config, name).hidden for name in holds.missing)


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


_NO_KEY: Final = bytes(32)
"""Nothing is started, so digests mean nothing."""
_QUOTED: Final = "%2A%2A%2A"
"""`HIDDEN` in an address."""


class ExplainedServer(Struct, frozen=True, kw_only=True):
    """An entry with values in it, secrets masked; all values, and why it cannot run."""

    config: ServerConfig
    team: str
    rows: list[ValueRow]
    missing: Mapping[str, Tier]
    faults: tuple[str, ...]


def stored_of(rows: Iterable[Mapping[str, Any]]) -> GivenValues:
    """Return the values that a daemon was given, as its rows show them: a secret is `***`."""
    given = GivenValues()
    for each in rows:
        row = convert(each, ValueRow)
        if row.kept == "daemon" and row.by is not None and row.value is not None:
            value = Given(value=row.value, locked=row.locked)
            given = given.with_value((row.by, row.owner), row.server, row.name, value)
    return given


def explain_values(
    configuration: Configuration, entry: ServerConfig, stored: GivenValues, *, user: str, team: str
) -> ExplainedServer:
    """Return what holds for a user, or without one for a team. Raises `InvalidArguments` for nobody."""
    # What a daemon was given as a secret comes as `***`, which it took as one of the options.
    known = {
        name: replace(rule, options=(*rule.options, HIDDEN)) for name, rule in entry.values.items() if rule.options
    }
    config, server = replace(entry, values={**entry.values, **known}), entry.path_name
    deployment = replace(deploy(configuration, key=_NO_KEY, given=stored), entries={server: config})
    person = _person(deployment, user, team) if user else None
    of = team if person is None else team_of(deployment, person, server)
    people = deployment.settings.identity
    of_team = deployment.given.of(people, ("team", of), server) if of else {}
    of_user = deployment.given.of(people, ("user", user), server) if user else {}
    holds = effective(config, of_team, of_user)
    safe = effective(config, _mask(config, of_team), _mask(config, of_user)).config
    rows = rows_of_server(deployment, server, user=person, team=of, hidden=True)
    return ExplainedServer(
        config=replace(safe, url=safe.url.replace(_QUOTED, HIDDEN), values=entry.values),
        team=of,
        rows=[replace(row, options=rule_of(entry, row.name).options) for row in rows],
        missing=holds.missing,
        faults=holds.faults,
    )


def _person(deployment: Deployment, user: str, team: str) -> Person:
    person = deployment.person(user, role="admin", team=team)
    if person is None:
        where = f" in the team {team!r}" if team else ""
        raise InvalidArguments(f'there is no user {user!r}{where} in "identity" of the configuration')
    return person


def _mask(config: ServerConfig, given: Mapping[str, Given]) -> dict[str, Given]:
    usable = {name: each for name, each in given.items() if not rule_of(config, name).fault(each.value)}
    return {
        name: replace(each, value=_mask_value(each, secret=is_secret_value(config, name, each.value)))
        for name, each in usable.items()
    }
