"""What a configuration means, as one value: everything that is derived from it is derived here, once.

Rules of this file:
- Who needs a part of it reads it from the newest deployment when it needs it, and keeps nothing of it by server; an
  actor takes what it needs when it is made: the launch of an actor does not change.
- What has the same name in the configuration and where it is used is taken over by that name.
- A deployment is made without I/O, and two of them can be compared: see `diff`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import Final

import msgspec
from msgspec.structs import replace

from actors.catalogue.names import ServerNames
from actors.catalogue.tool_rules import NO_RULES, ToolRules
from actors.catalogue.trust import Trust
from actors.errors import ConfigError
from actors.instances.settings import PER_CLIENT, InstanceSettings
from actors.kit.tables import table_of
from actors.launch import launch_name, server_of
from actors.life.policy import RestartPolicy
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.capabilities import NOBODY, OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.wire.jsonrpc import encode
from actors.server import ServerSettings
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.redaction import Confidential, Mask
from actors.transport.stdio.command import Launch as ProcessLaunch
from actors.transport.stdio.command import ProcessLimits
from actors.transport.stdio.installer import installer_of
from actors.transport.stdio.remedies import provider_of
from supervisor.config import Configuration, ServerConfig, Settings, launch_digest, placeholders
from supervisor.config.call_rules import CallRules, rules_for
from supervisor.config.entry import roots_result
from supervisor.config.expansion import Origin
from supervisor.config.file import Stamp
from supervisor.config.given import Effective, RestingServer, effective, missing_for_users, why_not
from supervisor.config.jsonc import KeyPath
from supervisor.identity.people import NO_VALUES, Given, GivenValues, OwnLaunch, Person, principal_of, servers_of
from supervisor.operations import Role

# What a published server holds in memory from one call to the next, as `stateful.toml` has it.

_VERSION: Final = re.compile(r"(?<=.)(?:@|==|>=|~=|\[|:(?!/)).*$")
"""Behind the name of a package or an image: `@latest`, `==1.2`, `[extra]`, `:tag`."""


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    holds: str
    names: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    row: tuple[_Row, ...]


_TABLE: Final = table_of(__package__, "stateful", _Table)
_OF_IMAGES: Final = (provider_of("docker"), provider_of("podman"))
HOLDS: Final = {name: row.holds for row in _TABLE.row for name in row.names}


def held_by(command: str, args: Sequence[str]) -> str:
    """Return what a server holds that is started so; empty if that is unknown.

    Of the command its name counts, of an argument the whole word: a path may lead to anything that is called so. An
    image is named with its registry before it.
    """
    words = [PurePath(command).name, *(word.partition("=")[2] if word.startswith("-") else word for word in args)]
    names = [_VERSION.sub("", word) for word in words]
    if provider_of(command) in _OF_IMAGES:
        names += ["/".join(name.split("/")[-2:]) for name in names]
    return next((HOLDS[name] for name in names if name in HOLDS), "")


_MAY_ASK: Final = {"none": NOBODY, "clients": OF_CLIENTS, "everyone": OF_CLIENTS}
"""What a server may ask (MCP 2025-11-25, "Capability Negotiation"), by the setting `ask`."""


class DeployedServer(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """One server that can run. `name` is the one its tools are shown under, `digest` that of its launch.

    `launch` and `limits` are those of a server that is a process, `remote` and its limits those of one with an address.
    `mask` hides what is secret in environment, headers and arguments. `login_of`: whose login it uses. `replica` is the
    address of the one of its replicas that is meant; empty for its own.
    """

    name: str
    config: ServerConfig
    launch: ProcessLaunch
    limits: ProcessLimits
    remote: Remote
    remote_limits: HttpLimits
    settings: ServerSettings
    policy: RestartPolicy
    instances: InstanceSettings
    mask: Mask
    digest: str
    login_of: Principal = LOCAL
    replica: str = ""


class DeployedLaunch(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started for somebody; without a name and what is `deployed` it cannot be."""

    server: str
    name: str = ""
    effective: Effective
    deployed: DeployedServer | None = None

    @property
    def why(self) -> str:
        """Why it cannot be started, where it cannot."""
        return why_not(self.effective, self.server)


class Deployment(Confidential, msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All servers of a configuration, by name in the order of the file, and what is set for the whole daemon.

    `entries` are all that could be read, `resting` says of some of them, and of the others, why they do not run;
    `users` are those that a server is for, where it names any, `named` all of these; `described` is what is configured
    to be said of servers; `digests` are those of the launches of `servers`, `rules` those of their calls, `tool_rules`
    those of what is seen of their tools, where there are any. `given` are the values of teams and users, `origins` and
    `environ` are those of the configuration, `key` is that of launch digests. `known_launches` are those of people, by
    server, user and team, each with what it was made of.
    """

    path: Path = Path()
    stamps: Mapping[Path, Stamp] = {}
    digest: str = ""
    published: str = ""
    settings: Settings = Settings()
    entries: Mapping[str, ServerConfig] = {}
    servers: Mapping[str, DeployedServer] = {}
    resting: tuple[RestingServer, ...] = ()
    problems: tuple[ConfigError, ...] = ()
    names: ServerNames = ServerNames({})
    described: Mapping[str, str] = {}
    digests: Mapping[str, str] = {}
    users: Mapping[str, tuple[str, ...]] = {}
    named: frozenset[str] = frozenset()
    rules: Mapping[str, CallRules] = {}
    tool_rules: Mapping[str, ToolRules] = {}
    given: GivenValues = NO_VALUES
    origins: Mapping[tuple[str, KeyPath], Origin] = {}
    environ: Mapping[str, str] = {}
    key: bytes = b""
    known_launches: dict[tuple[str, str, str], tuple[tuple[object, ...], OwnLaunch]] = msgspec.field(
        default_factory=dict
    )

    @property
    def server_names(self) -> frozenset[str]:
        """Every server there is in the file, also those that cannot run."""
        return frozenset(self.entries) | {resting.name for resting in self.resting}

    def line_of(self, place: KeyPath) -> int | None:
        origin = self.origins.get(("", place))
        return None if origin is None or origin.path else origin.line

    @cached_property
    def value_takers(self) -> frozenset[str]:
        """The servers that take values of teams and users."""
        return frozenset(name for name, config in self.entries.items() if config.tiered and not config.disabled)

    @cached_property
    def own_launchers(self) -> frozenset[str]:
        """The servers that are not started for all alike: they take values, or each user logs in there."""
        return self.value_takers | {name for name, config in self.entries.items() if config.logs_in_each}

    def person(self, user: str, *, role: Role, team: str) -> Person | None:
        """Return who shows a token of a user, with what is started for that one alone; see `People.person`."""
        person = self.settings.identity.person(user, role=role, team=team, named=self.named)
        if person is None or not self.own_launchers:
            return person
        key = user, team
        if key not in self._own_launches:
            launches = [self.own_launch(server, person) for server in self.launched_for(person)]
            self._own_launches[key] = frozenset(each for each in launches if each.name != each.server)
        return replace(person, rights=replace(person.rights, launches=self._own_launches[key]))

    @cached_property
    def _own_launches(self) -> dict[tuple[str, str], frozenset[OwnLaunch]]:
        """By user and team of those who came in."""
        return {}

    def launched_for(self, person: Person) -> frozenset[str]:
        """Return which servers of somebody are not started for all alike."""
        return servers_of(person.rights, self.own_launchers, self.settings.identity.teams, self.users)

    def effective_for(self, server: str, person: Person) -> Effective:
        """Return what holds for a server that is started for somebody."""
        of_team, of_team_in_file, of_user, of_user_in_file = self._given_for(server, person)
        return effective(self.entries[server], {**of_team, **of_team_in_file}, {**of_user, **of_user_in_file})

    def _given_for(self, server: str, person: Person) -> tuple[Mapping[str, Given], ...]:
        people, given = self.settings.identity, self.given
        teams = (person.team,) if person.team else people.teams_of(person.user)
        team = given.team_for(people, teams, server)
        return *given.parts(people, ("team", team), server), *given.parts(people, ("user", person.user), server)

    def own_launch(self, server: str, person: Person) -> OwnLaunch:
        """Return how a server is started for somebody; its name is the server's where that is how all have it.

        What was found is kept over changes of others: a value of one user costs no other one anything.
        """
        made_of = (self.entries[server], self.servers.get(server), *self._given_for(server, person))
        key = server, person.user, person.team
        known = self.known_launches.get(key)
        if known is None or any(one is not other for one, other in zip(known[0], made_of, strict=True)):
            known = self.known_launches[key] = made_of, self._own_launch(server, person)
        return known[1]

    def _own_launch(self, server: str, person: Person) -> OwnLaunch:
        holds = self.effective_for(server, person)
        if not holds.can_run:
            return OwnLaunch(server, missing=missing_for_users(holds), why=why_not(holds, server, to_users=True))
        usual = self.servers.get(server)
        owner = _owner(holds, person)
        if usual is not None and holds.config == usual.config and not owner:
            return OwnLaunch(server, server)
        digest = launch_digest(holds.config, {}, key=self.key, owner=owner)
        return OwnLaunch(server, launch_name(server, digest))

    def launch_of(self, server: str, person: Person) -> DeployedLaunch:
        """Return what is started for somebody, which takes a while: see `own_launch`."""
        holds, name = self.effective_for(server, person), self.own_launch(server, person).name
        if name in ("", server):
            return DeployedLaunch(server=server, name=name, effective=holds, deployed=self.servers.get(name))
        deployed = deploy_server(holds.config, key=self.key, owner=_owner(holds, person))
        mask = deployed.mask.join(Mask({f"secret {key}": text for key, text in holds.secrets.items()}))
        deployed = replace(deployed, name=name, mask=mask)
        return DeployedLaunch(server=server, name=name, effective=holds, deployed=deployed)

    def subject(self, issuer: str, subject: str) -> Person | None:
        """Return who a subject of an identity provider is; see `People.subject`."""
        known = self.settings.identity.subject(issuer, subject)
        return None if known is None else self.person(known[0], role=known[1], team="")

    def rules_of(self, server: str) -> CallRules:
        timeout_s = self.settings.call_timeout_s
        return self.rules.get(server) or CallRules(timeout_s=timeout_s, max_s=timeout_s)

    def tool_rules_of(self, server: str) -> ToolRules:
        return self.tool_rules.get(server, NO_RULES)

    def trust_of(self, server: str) -> Trust:
        config = self.entries.get(server)
        return (config.trust if config is not None else None) or self.settings.trust

    def is_remote(self, server: str) -> bool:
        config = self.entries.get(server)
        return config is not None and config.kind != "stdio"

    def is_per_client(self, server: str) -> bool:
        config = self.entries.get(server)
        return config is not None and config.instances == PER_CLIENT

    def never_sleeps(self, launch: str) -> bool:
        config = self.entries.get(server_of(launch))
        return config is not None and config.idle_timeout_s == 0

    def runs_always(self, server: str) -> bool:
        """Say whether a server is started without a call: one that has a process for each client needs the client."""
        return self.never_sleeps(server) and not self.is_per_client(server)

    def mask(self, server: str) -> Callable[[str], str]:
        deployed = self.servers.get(server)
        return deployed.mask if deployed is not None else str

    def unset(self, server: str) -> tuple[str, ...]:
        """Return the variables of a server's environment whose values are placeholders."""
        deployed = self.servers.get(server)
        return placeholders(deployed.config.env) if deployed is not None else ()


def deploy(configuration: Configuration, *, key: bytes, given: GivenValues = NO_VALUES) -> Deployment:
    """Return the deployment of a configuration. `key` is that of launch digests, see `launch_digest`."""
    entries = {config.path_name: config for config in configuration.servers}
    off = [RestingServer(name=name, kind=each.kind, disabled=True) for name, each in entries.items() if each.disabled]
    broken = [RestingServer(name=each.server, reason=str(each)) for each in configuration.problems if each.server]
    usual = {name: effective(config, {}, {}) for name, config in entries.items() if not config.disabled}
    servers = {name: deploy_server(each.config, key=key) for name, each in usual.items() if each.can_run}
    awaiting = [
        RestingServer(name=name, kind=entries[name].kind, awaits=tuple(each.missing), reason=why_not(each, name))
        for name, each in usual.items()
        if not each.can_run
    ]
    return Deployment(
        path=configuration.path,
        stamps=configuration.stamps,
        digest=configuration.digest,
        published=configuration.published,
        settings=configuration.settings,
        entries=entries,
        servers=servers,
        resting=(*broken, *awaiting, *off),
        problems=configuration.problems,
        names=ServerNames(configuration.server_names),
        described={name: config.description for name, config in entries.items() if config.description},
        digests={name: server.digest for name, server in servers.items()},
        users={name: config.users for name, config in entries.items() if config.users},
        named=frozenset(user for config in entries.values() for user in config.users),
        rules={name: rules_for(entries[name], configuration.settings) for name in usual},
        tool_rules={name: rules for name, config in entries.items() if (rules := config.tool_rules) != NO_RULES},
        given=given,
        origins=configuration.origins,
        environ=configuration.environ,
        key=key,
    )


def _owner(holds: Effective, person: Person) -> str:
    """Return who alone has a launch, as it has a secret or a login of theirs; empty where equals may share it."""
    return person.user if holds.is_personal or holds.config.logs_in_each else ""


def deploy_server(config: ServerConfig, *, key: bytes, owner: str = "") -> DeployedServer:
    installer = installer_of(config.command, config.args)
    return DeployedServer(
        name=config.path_name,
        config=config,
        launch=config.launch,
        limits=msgspec.convert(config, ProcessLimits, from_attributes=True),
        remote=Remote(url=config.url, headers=dict(config.headers)),
        remote_limits=msgspec.convert(config, HttpLimits, from_attributes=True),
        settings=replace(
            msgspec.convert(config, ServerSettings, from_attributes=True),
            installer=installer,
            known_to_hold=held_by(config.command, config.args),
            terms=terms_of(config),
            refresh_asleep=config.is_refreshed_asleep,
        ),
        policy=msgspec.convert(config, RestartPolicy, from_attributes=True),
        instances=msgspec.convert(config, InstanceSettings, from_attributes=True),
        mask=config.mask(),
        digest=launch_digest(config, {}, key=key, owner=owner),
        login_of=principal_of(owner if config.logs_in_each else ""),
    )


def terms_of(config: ServerConfig) -> Terms:
    """Return on which terms a conversation with a server is begun."""
    return Terms(
        capabilities=_MAY_ASK[config.ask],
        roots=encode(roots_result(config.roots)) if config.roots else b"",
        only=None if config.era == "auto" else config.era,
    )
