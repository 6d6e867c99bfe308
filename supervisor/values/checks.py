"""Whether a value can be given: whose it is, whether the server takes it, whether it would have an effect. Pure.

What is foreign to whoever asks is answered as what there is not: servers, and values that are hidden.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from actors.errors import InvalidArguments, SupervisorError, UnknownServer
from supervisor.config import ServerConfig
from supervisor.config.given import fault_of, place_of, rule_of, takes_of_users, tiers_of
from supervisor.config.keys import nearest_names
from supervisor.identity.people import Given, Person, Tier, servers_of
from supervisor.servers.deployment import Deployment

TAKERS: Final = "mcpvisor config list names those that take values"


class ValuePlace(Struct, frozen=True, array_like=True):
    """Who gives a value, a team or a user by name; for which server; what it is called."""

    tier: Tier
    owner: str
    server: str
    name: str


class UnknownValue(SupervisorError, kind="not_found"):
    """The server takes no value of that name, or nobody gave one."""


class ValueNotTaken(SupervisorError, kind="refused"):
    """The value would have no effect: somebody else gives it, or the configuration has it. The message says who."""


def servers_for(deployment: Deployment, asker: Person) -> frozenset[str]:
    """Return the servers whose values somebody may see: an admin those of all."""
    names = deployment.server_names
    if asker.may("admin"):
        return names
    return servers_of(asker.rights, names, deployment.settings.identity.teams, deployment.users)


def check_server(deployment: Deployment, asker: Person, server: str, otherwise: str = TAKERS) -> None:
    """Raise `UnknownServer` for one that is not there for whoever asks; `otherwise` helps where no name is near."""
    servers = servers_for(deployment, asker)
    if server not in servers:
        nearest = nearest_names(server, servers)
        hint = f"did you mean {', '.join(nearest)}?" if nearest else otherwise
        raise UnknownServer(f"there is no server {server[:100]!r}; {hint}", details={"nearest": nearest})


def check_owner(deployment: Deployment, tier: Tier, owner: str) -> None:
    """Raise `InvalidArguments` for a user or a team that is not in the configuration, if it names any."""
    people = deployment.settings.identity
    known: Collection[str] = people.users if tier == "user" else people.teams
    if known and owner not in known:
        raise InvalidArguments(f'there is no {tier} {owner[:100]!r} in "identity" of the configuration')


def check_value(deployment: Deployment, asker: Person, place: ValuePlace, given: Given) -> None:
    """Raise what speaks against a value that somebody gives.

    Raises `UnknownServer`, `UnknownValue`, `ValueNotTaken`, `InvalidArguments`.
    """
    check_server(deployment, asker, place.server)
    check_owner(deployment, place.tier, place.owner)
    config = deployment.entries.get(place.server)
    if config is None:
        raise ValueNotTaken(f"the entry of {place.server} cannot be used: mcpvisor check says why", server=place.server)
    _check_name(config, asker, place)
    if place.tier == "user":
        _check_users(deployment, config, place)
    check_not_in_file(deployment, place)
    if given.locked and place.tier == "user":
        raise InvalidArguments("a team locks a value, not a user")
    if fault := rule_of(config, place.name).fault(given.value):
        raise InvalidArguments(f"this cannot be given: {place.name} {fault}")
    if fault := fault_of(config, place.tier, place.name, given.value):
        raise InvalidArguments(f"this cannot be passed on: {fault}")


def _check_name(config: ServerConfig, asker: Person, place: ValuePlace) -> None:
    shown = [name for name in tiers_of(config) if asker.may("admin") or not rule_of(config, name).hidden]
    if place.name in shown:
        return
    nearest = nearest_names(place.name, shown)
    hint = f"did you mean {', '.join(nearest)}?" if nearest else f"it takes: {', '.join(shown) or 'none'}"
    raise UnknownValue(
        f"{place.server} takes no value {place.name[:100]!r}; {hint}", server=place.server, details={"nearest": nearest}
    )


def _check_users(deployment: Deployment, config: ServerConfig, place: ValuePlace) -> None:
    if tiers_of(config)[place.name] == "team":
        raise ValueNotTaken(f"{place.name} of {place.server} is a team's to give, not a user's", server=place.server)
    people = deployment.settings.identity
    team = deployment.given.team_for(people, people.teams_of(place.owner), place.server)
    of_team = deployment.given.of(people, ("team", team), place.server).get(place.name) if team else None
    if not takes_of_users(rule_of(config, place.name), of_team):
        raise ValueNotTaken(f"the team {team} gives {place.name} of {place.server}, and has locked it")


def check_not_in_file(deployment: Deployment, place: ValuePlace) -> None:
    """Raise `ValueNotTaken` if the configuration has that value, which goes over any other of it."""
    people = deployment.settings.identity
    owner = people.users.get(place.owner) if place.tier == "user" else people.teams.get(place.owner)
    if owner is None or place.name not in owner.values.get(place.server, {}):
        return
    line = deployment.line_of(place_of(place.tier, place.owner, place.server, place.name))
    where = f", line {line}" if line else ""
    raise ValueNotTaken(f"the configuration file has {place.name}{where}: what is given here would have no effect")
