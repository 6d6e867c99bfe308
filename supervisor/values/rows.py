"""Values as they are shown: to a user those of their servers, of a team to an admin. Secrets are masked. Pure.

A value that is hidden is not shown to users, nor that there is one: only that their team has yet to give something.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from actors.transport.redaction import HIDDEN
from supervisor.config import ServerConfig
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
from supervisor.identity.people import Given, Person, Tier, Value, servers_of
from supervisor.servers.deployment import Deployment

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
            value=mask_value(value, secret=secret),
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


def mask_value(given: Given | None, *, secret: bool) -> Value | None:
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
