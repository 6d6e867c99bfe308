"""Users and teams, what they may do, and which values they give for servers. Pure.

A user is known by name: of the configuration, or of the token that was made for it. Everything that is kept of a user
is kept under its principal, which has another form than that of the local one, so no user can be called as that.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import translate
from functools import cached_property
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from actors.catalogue.metadata import SAFETY, Judgement, Safety
from actors.principal import LOCAL, Principal
from actors.transport.redaction import Confidential
from supervisor.operations import ROLES, Role

Tier = Literal["team", "user"]
"""Who gives a value. That of a user goes over that of the team."""
TIERS: Final[tuple[Tier, ...]] = ("team", "user")
Value = str | tuple[str, ...]
"""A text; or several, in the place of one argument."""


class Given(Confidential, Struct, frozen=True, kw_only=True):
    """A value as a team or a user gives it. `locked`: a user may not give another one."""

    value: Value
    locked: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.value,) if isinstance(self.value, str) else self.value


GivenByServer = Mapping[str, Mapping[str, Given]]
"""What one team or user gives: by server, and by the name of the value."""


# Identity providers, as the configuration names them, and who their subjects are here.
#
# A subject is known by issuer and `sub` together, never by an address of mail: those are given to others later.

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""All that may be configured: they sign with a key that only the provider has (RFC 7518 3.1, RFC 8037, RFC 9864)."""
MAX_ISSUERS: Final = 8
USER_CHARS: Final = 24


class Introspection(Confidential, Struct, frozen=True, kw_only=True):
    """How a provider is asked about a token (RFC 7662)."""

    endpoint: str = ""
    """Where it is asked; empty: where its own metadata say."""
    client_id: str = ""
    """The client as which the daemon asks; empty: it does not ask."""
    client_secret: str = ""
    """The secret of that client, best as `${NAME}`."""


class Issuer(Struct, frozen=True, kw_only=True):
    """One identity provider of the configuration."""

    issuer: str = ""
    """Its address, letter by letter as it stands in `iss` of its tokens."""
    audience: tuple[str, ...] = ()
    """What `aud` of a token may be besides the address of the door that it is shown at, and that of `/mcp`."""
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    """Algorithms by which its tokens may be signed. All but these are refused."""
    allow_untyped: bool = False
    """Take tokens whose `typ` is `JWT`, or that have none, and not only `at+jwt`. What an ID token has is refused
    all the same."""
    introspection: Introspection = Introspection()
    """Ask the provider about each token, also about those that are no JWT: then the daemon hears of one that was
    revoked."""

    @property
    def asks(self) -> bool:
        """Whether the provider is asked about tokens."""
        return bool(self.introspection.client_id)


def user_name(issuer: str, subject: str) -> str:
    """Return what a subject is called where the configuration names no users; no name of a person can be read of it."""
    digest = hashlib.blake2b(f"{issuer}\0{subject}".encode("utf-8", "surrogatepass")).digest()
    return f"u_{base64.b32encode(digest).decode()[:USER_CHARS].lower()}"


_USER: Final = "user:"
ToolPatterns = Annotated[tuple[str, ...], Meta(max_length=1000)]
"""Tools as `server:tool`, by their servers' own names, where `*` stands for any rest."""
ConfirmMode = Literal["ask", "run", "refuse"]
"""What becomes of a call that needs a yes: its user is asked, it runs all the same, or it never runs."""
_MODES: Final[Mapping[str, ConfirmMode]] = {"none": "run", "refuse": "refuse"}


class User(Struct, frozen=True, kw_only=True):
    """One user of the configuration."""

    role: Role = "member"
    """What the user may do at most: `member`, `auditor`, or `admin`."""
    values: dict[str, dict[str, Given]] = field(default_factory=dict)
    """What the user gives for servers: by server, and by the name of the value. See `docs/reference/values.md`."""
    subject: str = ""
    """Who the user is at an identity provider: `sub` of their tokens."""
    issuer: str = ""
    """Which provider that is, where there are several."""
    confirm: Literal["none", "safe", "moderate", "dangerous", "refuse"] | ToolPatterns = ()
    """What the user has to say yes to, besides what the daemon, servers and teams say: from a safety level on, or what
    a list names as `server:tool`. `none`: never asked, whatever else says so. `refuse`: what needs a yes never runs."""


class Team(Struct, frozen=True, kw_only=True):
    """One team of the configuration: who is in it, and which servers are its own."""

    members: tuple[str, ...] = ()
    """Users that are in it."""
    servers: tuple[str, ...] = ()
    """Servers that only the members see. One that no team and no user has is everybody's."""
    values: dict[str, dict[str, Given]] = field(default_factory=dict)
    """What the team gives for servers, as with a user. `{"value": ..., "locked": true}` in the place of a value: users
    cannot give another one."""
    confirm: Safety | ToolPatterns = ()
    """What its members have to say yes to, besides what the daemon and servers say: from a safety level on, or what a
    list names as `server:tool`."""


class ConfirmRules(Struct, frozen=True, kw_only=True, dict=True):
    """What one person has to say yes to besides what everybody has: from a `level` on, and `tools` by patterns."""

    level: Safety | None = None
    tools: tuple[str, ...] = ()
    mode: ConfirmMode = "ask"

    @cached_property
    def _names(self) -> re.Pattern[str]:
        return re.compile("|".join(map(translate, self.tools)))

    def confirms(self, server: str, tool: str) -> bool:
        """Say whether a tool is named here; both names are those of the servers."""
        return bool(self.tools) and self._names.match(f"{server}:{tool}") is not None

    def reaches(self, judged: Judgement) -> bool:
        """Say whether a tool of this judgement is of the level or above."""
        return self.level is not None and (judged.requires_confirmation or judged.reaches(self.level))


NO_RULES_OF_ONES_OWN: Final = ConfirmRules()


class OwnLaunch(Struct, frozen=True):
    """How a server is started that is not started for all alike: the launch by name.

    Without one it is not started: values are `missing`, or cannot be used, and `why` says so.
    """

    server: str
    name: str = ""
    missing: tuple[str, ...] = ()
    why: str = ""


class Viewer(Struct, frozen=True, kw_only=True):
    """Who is to see tools. `user` is empty where nobody has to say who they are. `teams` are those of the user, or the
    one that the token is for; `profile` is that of the address, empty for none.
    """

    user: str = ""
    role: Role = "member"
    teams: frozenset[str] = frozenset()
    profile: str = ""


class Rights(Struct, frozen=True):
    """What decides which servers somebody has: teams that have any, and the user if any server is for that one.

    People with equal rights see the same. Where plugins hide tools by who it is, that is the `viewer`.
    """

    teams: frozenset[str] = frozenset()
    user: str = ""
    launches: frozenset[OwnLaunch] = frozenset()
    """Servers that are started for them otherwise than for all."""
    viewer: Viewer | None = None


class People(Struct, frozen=True, kw_only=True):
    """Who is known, as the configuration says it. Where it names no users, whoever has a token is one."""

    users: dict[str, User] = field(default_factory=dict)
    """Users by name."""
    teams: dict[str, Team] = field(default_factory=dict)
    """Teams by name."""
    issuers: Annotated[tuple[Issuer, ...], Meta(max_length=MAX_ISSUERS)] = ()
    """Identity providers whose tokens are taken, with `auth` at `oauth` or `both`."""

    def person(self, user: str, *, role: Role = "admin", team: str = "", named: Collection[str] = ()) -> Person | None:
        """Return who a user is that shows a token for at most a role, and for a team only if one is named.

        `named` are the users that any server is for.

        None if there is no such user, or team, or the user is not in that. Where no users are named there is any, and
        where no teams are, any of those, too.
        """
        known = self.users.get(user)
        if not user or (self.users and known is None):
            return None
        if team and self.teams and team not in self.teams_of(user):
            return None
        teams = self.teams_of(user, team)
        having = {name for name, each in self.teams.items() if each.servers}
        rights = Rights(teams & having, user if user in named else "")
        allowed = role if known is None else ROLES[min(ROLES.index(role), ROLES.index(known.role))]
        return Person(user=user, role=allowed, rights=rights, team=team)

    def teams_of(self, user: str, team: str = "") -> frozenset[str]:
        """Return the teams of a user, with a token for one `team` that one alone. Who has no name is in none."""
        if team:
            return frozenset((team,))
        return frozenset(name for name, each in self.teams.items() if user and user in each.members)

    def confirm_rules(self, user: str) -> ConfirmRules:
        """Return what a user has to say yes to: the strictest level and all patterns of the user and the user's teams.

        That goes for each of the user's tokens, also for one that is for another team alone.
        """
        known = self.users.get(user)
        own = () if known is None else known.confirm
        every = [own, *(self.teams[name].confirm for name in sorted(self.teams_of(user)))]
        levels = [level for level in SAFETY if level in every]
        tools = dict.fromkeys(pattern for each in every if not isinstance(each, str) for pattern in each)
        mode = _MODES.get(own, "ask") if isinstance(own, str) else "ask"
        return ConfirmRules(level=levels[0] if levels else None, tools=tuple(tools), mode=mode)

    def issuer(self, name: str) -> Issuer | None:
        """Return the provider whose address is exactly that."""
        return next((each for each in self.issuers if each.issuer == name), None)

    def subject(self, issuer: str, subject: str) -> tuple[str, Role] | None:
        """Return which user a subject of a provider is, and the role that it has at most; None for a stranger.

        Where no users are named, everybody is one who has a token of the provider, and a member.
        """
        if self.issuer(issuer) is None or not subject:
            return None
        if not self.users:
            return user_name(issuer, subject), "member"
        alone = len(self.issuers) == 1
        return next(
            (
                (name, user.role)
                for name, user in self.users.items()
                if user.subject == subject and (user.issuer == issuer or (alone and not user.issuer))
            ),
            None,
        )

    def faults(self, servers: Collection[str]) -> Iterator[tuple[tuple[str, ...], str, str]]:
        """Yield which names of users and servers mean nobody: where, from `identity` inwards, the name, of what."""
        for name, team in self.teams.items():
            strangers = [each for each in team.members if each not in self.users] if self.users else []
            yield from ((("teams", name, "members"), each, "user") for each in strangers)
            yield from ((("teams", name, "servers"), each, "server") for each in team.servers if each not in servers)
        for kind, named in (("users", self.users), ("teams", self.teams)):
            for name, owner in named.items():
                yield from (
                    ((kind, name, "values", each), each, "server") for each in owner.values if each not in servers
                )
                patterns = () if isinstance(owner.confirm, str) else owner.confirm
                named_in = {pattern.partition(":")[0] for pattern in patterns}
                strangers = [each for each in sorted(named_in) if each not in servers and not set(each) & set("*?[")]
                yield from (((kind, name, "confirm"), each, "server") for each in strangers)


class Person(Struct, frozen=True, kw_only=True):
    """One user as it comes in; `team` is the one that its token is for, if it is for one alone."""

    user: str
    team: str = ""
    role: Role = "member"
    rights: Rights = Rights()

    @property
    def principal(self) -> Principal:
        return principal_of(self.user, self.team)

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


OPERATOR: Final = Person(user="", role="admin")
"""Whoever can read the daemon's files, and the one person there is where nobody has to show who they are."""


def principal_of(user: str, team: str = "") -> Principal:
    """Return who owns what is kept of a user; with a token for one team that is another one. No name has a colon."""
    return Principal(f"{_USER}{user}" + (f":{team}" if team else "")) if user else LOCAL


def user_of(principal: Principal) -> str:
    """Return whose a principal is, empty for the local one."""
    return principal.removeprefix(_USER).partition(":")[0] if principal.startswith(_USER) else ""


def team_of(principal: Principal) -> str:
    """Return the team that a principal is of alone, as its token is for that; empty for any other."""
    return principal.removeprefix(_USER).partition(":")[2] if principal.startswith(_USER) else ""


def servers_of(
    rights: Rights, servers: Collection[str], teams: Mapping[str, Team], users: Mapping[str, Collection[str]]
) -> frozenset[str]:
    """Return which servers go with some rights; `users` are those that a server is for, if any."""
    of_teams: dict[str, set[str]] = {}
    for name, team in teams.items():
        for server in team.servers:
            of_teams.setdefault(server, set()).add(name)
    return frozenset(
        server
        for server in servers
        if (server not in of_teams and not users.get(server))
        or not of_teams.get(server, set()).isdisjoint(rights.teams)
        or rights.user in users.get(server, ())
    )


# Values that teams and users give for servers, in the configuration or later.

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
