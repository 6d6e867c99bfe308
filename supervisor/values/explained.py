"""What holds for a server for somebody, as it may be shown: read from a file, with what a daemon was given. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, convert
from msgspec.structs import replace

from actors.errors import InvalidArguments
from actors.transport.redaction import HIDDEN
from supervisor.config import Configuration, ServerConfig
from supervisor.config.given import effective, is_secret_value, rule_of
from supervisor.identity.people import Given, GivenValues, Person, Tier
from supervisor.servers.deployment import Deployment, deploy
from supervisor.values.rows import ValueRow, mask_value, rows_of_server, team_of

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
        name: replace(each, value=mask_value(each, secret=is_secret_value(config, name, each.value)))
        for name, each in usable.items()
    }
