"""Which values hold for whom: what teams and users give for servers, in the configuration or later. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from actors.transport.redaction import Confidential
from supervisor.identity.given import Given, GivenByServer, Tier
from supervisor.identity.people import People

Owner = tuple[Tier, str]
"""A team, or a user, by name."""


_NOTHING: Final[Mapping[str, Given]] = {}
_NOWHERE: Final[GivenByServer] = {}


class GivenValues(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """Values by who gives them, and by server. What the configuration has goes over what is `stored`."""

    stored: Mapping[Owner, GivenByServer] = {}

    def of(self, people: People, owner: Owner, server: str) -> Mapping[str, Given]:
        """Return what a team or a user gives for a server."""
        stored, in_file = self.parts(people, owner, server)
        return {**stored, **in_file}

    def parts(self, people: People, owner: Owner, server: str) -> tuple[Mapping[str, Given], Mapping[str, Given]]:
        """Return that in two parts, stored and of the file: the same objects as long as nothing differs."""
        tier, name = owner
        named = people.teams.get(name) if tier == "team" else people.users.get(name)
        in_file = named.values.get(server, _NOTHING) if named is not None else _NOTHING
        return self.stored.get(owner, _NOWHERE).get(server, _NOTHING), in_file

    def team_for(self, people: People, teams: Iterable[str], server: str) -> str:
        """Return which of somebody's teams gives values for a server; empty if none does.

        It is one alone, so that what holds is what one team meant: the first, in the order of the file, that has the
        server for itself, or else the first that gives any value.
        """
        known = [name for name in people.teams if name in teams] or sorted(teams)
        having = [name for name in known if name in people.teams and server in people.teams[name].servers]
        giving = [name for name in known if any(self.parts(people, ("team", name), server))]
        return next(iter([*having, *giving]), "")

    def with_value(self, owner: Owner, server: str, name: str, given: Given | None) -> GivenValues:
        """Return the values with one more, or one less for None."""
        of_owner = self.stored.get(owner, {})
        of_server = {each: value for each, value in of_owner.get(server, {}).items() if each != name}
        of_server |= {} if given is None else {name: given}
        servers = {each: values for each, values in of_owner.items() if each != server}
        servers |= {server: of_server} if of_server else {}
        others = {each: values for each, values in self.stored.items() if each != owner}
        return GivenValues(stored={**others, **({owner: servers} if servers else {})})


NO_VALUES: Final = GivenValues()
