"""What a configuration means, as one value: everything that is derived from it is derived here, once.

Rules of this file:
- Who needs a part of it reads it from the newest deployment when it needs it, and keeps nothing of it by server; an
  actor takes what it needs when it is made: the launch of an actor does not change.
- What has the same name in the configuration and where it is used is taken over by that name.
- A deployment is made without I/O, and two of them can be compared: see `diff`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from actors.catalogue.metadata import Judgement, Safety
from actors.catalogue.names.resolution import ServerNames
from actors.catalogue.tool_rules import NO_RULES, ToolRules
from actors.errors import ConfigError
from actors.life.policy import RestartPolicy
from actors.protocol.agreement.client_capabilities import NOBODY, OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.asking.questions import Fallback
from actors.protocol.wire.jsonrpc import encode
from actors.server import ServerSettings
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.mask import Mask
from actors.transport.stdio.installer import installer_of
from actors.transport.stdio.process import Launch, ProcessLimits
from supervisor.config import Configuration, ServerConfig, Settings, launch_digest, placeholders
from supervisor.config.entries.roots import roots_result
from supervisor.config.syntax.file import Stamp
from supervisor.config.syntax.units import Confirm
from supervisor.identity.people import Person, Role

T = TypeVar("T")

CAPABILITIES = {"none": NOBODY, "clients": OF_CLIENTS, "everyone": OF_CLIENTS}
"""What a server is told that it may ask (MCP 2025-11-25, "Capability Negotiation"), by the setting `ask`."""


class DeployedServer(msgspec.Struct, frozen=True, kw_only=True):
    """One server that can run. `name` is the one its tools are shown under, `digest` that of its launch.

    `launch` and `limits` are those of a server that is a process, `remote` and its limits those of one with an address.
    `mask` hides what is secret in its environment, its headers and its arguments.
    """

    name: str
    config: ServerConfig
    launch: Launch
    limits: ProcessLimits
    remote: Remote
    remote_limits: HttpLimits
    settings: ServerSettings
    policy: RestartPolicy
    mask: Mask
    digest: str

    @property
    def logs_in(self) -> bool:
        """Whether we may log in there: it is reached by HTTP, and the configuration has no credential for it."""
        given = any(name.lower() == "authorization" for name in self.remote.headers)
        return self.config.kind in ("http", "sse") and self.config.oauth.enabled and not given


class CallRules(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the calls of one server; where a default is, it holds for those of a server that there is not.

    `timeout_s`: how long one may take, waiting for the server included; `max_s`: all questions to its client included.
    `task_max_s`: for how long a task of a client is known, from its beginning. `question_timeout_s`: how long a client
    may take to answer what the server asks, which else gets `question_fallback`; it may ask so many questions per call,
    and so many per minute during all calls. `asks`: it may ask anything at all, `asks_everyone`: also through the
    results of meta-tools, where a client cannot be asked. `confirm`: patterns of the tools that need a yes to run, and
    `confirm_from` the safety level that needs one, but for those of `confirm_except`; `confirm_within_s`: times for it
    by such patterns. `expose`: the highest level that clients see. `result_budgets`: the tokens that results may have.
    All patterns are of the server's own names.
    """

    timeout_s: float
    max_s: float
    task_max_s: float = 0.0
    question_timeout_s: float = 0.0
    question_fallback: Fallback = "cancel"
    questions_per_call: int = 0
    questions_per_min: int = 0
    asks: bool = False
    asks_everyone: bool = False
    confirm: tuple[str, ...] = ()
    confirm_except: tuple[str, ...] = ()
    confirm_from: Confirm = "none"
    confirm_within_s: Mapping[str, float] = {}
    expose: Safety = "dangerous"
    result_budgets: Mapping[str, int] = {}

    def confirms(self, tool: str, judged: Judgement) -> bool:
        """Say whether a tool runs only after a yes, by its name or by what is known of its safety."""
        by_level = self.confirm_from != "none" and (judged.requires_confirmation or judged.reaches(self.confirm_from))
        if not by_level and not any(fnmatchcase(tool, each) for each in self.confirm):
            return False
        return not any(fnmatchcase(tool, each) for each in self.confirm_except)

    def exposes(self, judged: Judgement) -> bool:
        return self.expose == judged.safety or not judged.reaches(self.expose)

    def confirmed_within_s(self, tool: str) -> float:
        """Return how long the user may take to say yes to a tool."""
        seconds = _first(self.confirm_within_s, tool)
        return self.question_timeout_s if seconds is None else seconds

    def result_budget(self, tool: str) -> int | None:
        """Return how many tokens the result of a tool may have; None: any number."""
        return _first(self.result_budgets, tool) if self.result_budgets else None


def _first(by_pattern: Mapping[str, T], tool: str) -> T | None:
    """Return what the first pattern that fits a tool stands for."""
    return next((value for pattern, value in by_pattern.items() if fnmatchcase(tool, pattern)), None)


class RestingServer(msgspec.Struct, frozen=True, kw_only=True):
    """Why a server that is configured cannot run, told before the log began. `disabled`: it is switched off."""

    name: str
    kind: str = "stdio"
    reason: str = ""
    disabled: bool = False


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """All servers of a configuration, by name in the order of the file, and what is set for the whole daemon.

    `entries` are all that could be read, `resting` says of some of them, and of the others, why they do not run;
    `users` are those that a server is for, where it names any, `named` all of these; `described` is what is configured
    to be said of servers; `digests` are those of the launches of `servers`, `rules` those of their calls, `tool_rules`
    those of what is seen of their tools, where there are any.
    """

    path: Path = Path()
    stamps: Mapping[Path, Stamp] = {}
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

    @property
    def server_names(self) -> frozenset[str]:
        """Every server there is in the file, also those that cannot run."""
        return frozenset(self.entries) | {resting.name for resting in self.resting}

    def person(self, user: str, *, role: Role, team: str) -> Person | None:
        """Return who shows a token of a user; see `People.person`."""
        return self.settings.identity.person(user, role=role, team=team, named=self.named)

    def subject(self, issuer: str, subject: str) -> Person | None:
        """Return who a subject of an identity provider is; see `People.subject`."""
        known = self.settings.identity.subject(issuer, subject)
        return None if known is None else self.person(known[0], role=known[1], team="")

    def rules_of(self, server: str) -> CallRules:
        rules = self.rules.get(server)
        timeout_s = self.settings.call_timeout_s
        return CallRules(timeout_s=timeout_s, max_s=timeout_s) if rules is None else rules

    def tool_rules_of(self, server: str) -> ToolRules:
        return self.tool_rules.get(server, NO_RULES)

    def is_remote(self, server: str) -> bool:
        deployed = self.servers.get(server)
        return deployed is not None and deployed.config.kind != "stdio"

    def mask(self, server: str) -> Callable[[str], str]:
        deployed = self.servers.get(server)
        return deployed.mask if deployed is not None else str

    def unset(self, server: str) -> tuple[str, ...]:
        """Return the variables of a server's environment whose values are placeholders."""
        deployed = self.servers.get(server)
        return placeholders(deployed.config.env) if deployed is not None else ()


def deploy(configuration: Configuration, *, key: bytes) -> Deployment:
    """Return the deployment of a configuration. `key` is that of launch digests, see `launch_digest`."""
    entries = {config.path_name: config for config in configuration.servers}
    disabled = [name for name, config in entries.items() if config.disabled]
    broken = [RestingServer(name=each.server, reason=str(each)) for each in configuration.problems if each.server]
    servers = {name: deploy_server(config, key=key) for name, config in entries.items() if not config.disabled}
    return Deployment(
        path=configuration.path,
        stamps=configuration.stamps,
        settings=configuration.settings,
        entries=entries,
        servers=servers,
        resting=(*broken, *(RestingServer(name=name, kind=entries[name].kind, disabled=True) for name in disabled)),
        problems=configuration.problems,
        names=ServerNames(configuration.server_names),
        described={name: config.description for name, config in entries.items() if config.description},
        digests={name: server.digest for name, server in servers.items()},
        users={name: config.users for name, config in entries.items() if config.users},
        named=frozenset(user for config in entries.values() for user in config.users),
        rules={name: _rules(server.config, configuration.settings) for name, server in servers.items()},
        tool_rules={name: config.tools for name, config in entries.items() if config.tools},
    )


def _rules(config: ServerConfig, settings: Settings) -> CallRules:
    timeout_s = config.deadline_s(settings)
    return CallRules(
        timeout_s=timeout_s,
        max_s=max(timeout_s, config.call_max_s),
        task_max_s=config.task_max_s,
        question_timeout_s=config.question_timeout_s,
        question_fallback=config.question_fallback,
        questions_per_call=config.max_questions_per_call,
        questions_per_min=config.max_questions_per_min,
        asks=config.ask != "none",
        asks_everyone=config.ask == "everyone",
        confirm=() if isinstance(config.confirm, str) else config.confirm,
        confirm_except=config.confirm_except,
        confirm_from=config.confirm if isinstance(config.confirm, str) else settings.confirm,
        confirm_within_s=config.confirm_within_s,
        expose=config.expose or settings.expose,
        result_budgets=_budgets(config.result_token_budget, settings.result_token_budget),
    )


def _budgets(own: int | Mapping[str, int] | None, usual: int | None) -> Mapping[str, int]:
    """Return the budgets by patterns of tools: those of the entry, and of all others that of the daemon."""
    of_all = own if isinstance(own, int) else usual
    by_name = {} if own is None or isinstance(own, int) else own
    return by_name if of_all is None or "*" in by_name else {**by_name, "*": of_all}


def deploy_server(config: ServerConfig, *, key: bytes) -> DeployedServer:
    installer = installer_of(config.command, config.args)
    return DeployedServer(
        name=config.path_name,
        config=config,
        launch=Launch(command=config.command, args=config.args, env=dict(config.env), cwd=config.cwd or ""),
        limits=msgspec.convert(config, ProcessLimits, from_attributes=True),
        remote=Remote(url=config.url, headers=dict(config.headers)),
        remote_limits=msgspec.convert(config, HttpLimits, from_attributes=True),
        settings=replace(
            msgspec.convert(config, ServerSettings, from_attributes=True),
            installer=installer,
            terms=Terms(
                capabilities=CAPABILITIES[config.ask],
                roots=encode(roots_result(config.roots)) if config.roots else b"",
                only=None if config.era == "auto" else config.era,
            ),
            refresh_asleep=config.is_refreshed_asleep,
        ),
        policy=msgspec.convert(config, RestartPolicy, from_attributes=True),
        mask=config.mask(),
        digest=launch_digest(config, {}, key=key),
    )
