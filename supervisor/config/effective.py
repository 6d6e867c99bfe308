"""What holds for a server where teams and users give values: the entry with these in their places. Pure.

- The value of a user goes over that of the team, and that over the default in the place. A team may lock its own.
- A value that the entry does not take, as it changed since, counts as none: its server waits until somebody gives one
  that it takes.
- What the operating system or HTTP would refuse of the whole is a fault of it, as of an entry in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from supervisor.config.entries.entry import ServerConfig
from supervisor.config.entries.limits import launch_faults
from supervisor.config.syntax.jsonc import KeyPath, show_path
from supervisor.config.syntax.tiers import TIERS, Reference
from supervisor.config.value_rules import ValueRule
from supervisor.identity.given import Given, Tier, Value

ANY_VALUE = ValueRule()


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """An entry with values in it.

    `missing` are the values that somebody has to give first, and who: the team, or its user. `faults` say what of the
    whole cannot be passed on. `sources` tell who gave each value that is in it, `secrets` are those that are secret,
    `is_personal`: one of a user is among these.
    """

    config: ServerConfig
    missing: Mapping[str, Tier] = {}
    faults: tuple[str, ...] = ()
    sources: Mapping[KeyPath, tuple[Tier, ...]] = {}
    secrets: Mapping[str, str] = {}
    is_personal: bool = False

    @property
    def can_run(self) -> bool:
        return not self.missing and not self.faults


def rule_of(config: ServerConfig, name: str) -> ValueRule:
    return config.values.get(name, ANY_VALUE)


def tiers_of(config: ServerConfig) -> dict[str, Tier]:
    """Return the values that an entry takes by name, and who gives them last: the team, or its users."""
    tiers: dict[str, Tier] = {}
    for text in config.tiered:
        for reference in text.references:
            users = reference.tier == "user" and not rule_of(config, reference.name).hidden
            tiers[reference.name] = "user" if users or tiers.get(reference.name) == "user" else "team"
    return tiers


def effective(config: ServerConfig, team: Mapping[str, Given], user: Mapping[str, Given]) -> Effective:
    """Return what holds with what a team and a user give, by the names of values."""
    return _Filling(config, team, user).result() if config.tiered else Effective(config=config)


class _Filling:
    """Fills in one entry."""

    def __init__(self, config: ServerConfig, team: Mapping[str, Given], user: Mapping[str, Given]) -> None:
        self._config = config
        self._team = team
        self._user = user
        self._missing: dict[str, Tier] = {}
        self._secrets: dict[str, str] = {}
        self._is_personal = False

    def result(self) -> Effective:
        config = self._config
        own: dict[str, Any] = {"url": config.url, "env": {**config.env}, "headers": {**config.headers}}
        arguments: list[tuple[str, ...]] = [(text,) for text in config.args]
        sources: dict[KeyPath, tuple[Tier, ...]] = {}
        for text in config.tiered:
            self._sources: list[Tier] = []
            filled = text.fill(self._quoted if text.place == ("url",) else self._value)
            sources[text.place] = tuple(dict.fromkeys(self._sources))
            match text.place:
                case ("args", int(at)):
                    arguments[at] = filled
                case ("url",):
                    own["url"] = filled[0]
                case (str(key), str(name)):
                    own[key][name] = filled[0]
        own["args"] = tuple(text for texts in arguments for text in texts)
        return Effective(
            config=replace(config, **own),
            missing=self._missing,
            faults=() if self._missing else tuple(_faults(config, own)),
            sources=sources,
            secrets=self._secrets,
            is_personal=self._is_personal,
        )

    def _quoted(self, reference: Reference) -> Value:
        value = self._value(reference)
        return quote(value if isinstance(value, str) else " ".join(value), safe="")

    def _value(self, reference: Reference) -> Value:
        name, rule = reference.name, rule_of(self._config, reference.name)
        tier, given = self._given(reference, rule)
        if given is not None and not rule.fault(given.value):
            self._sources.append(tier)
            if rule.is_secret(name):
                self._is_personal |= tier == "user"
                texts = (given.value,) if isinstance(given.value, str) else given.value
                self._secrets |= {f"{name} {at}": text for at, text in enumerate(texts)}
            return given.value
        if reference.default is None:
            self._missing.setdefault(name, "team" if reference.tier == "team" or rule.hidden else "user")
        default = reference.default or ""
        return default if not rule.several else (default,) if default else ()

    def _given(self, reference: Reference, rule: ValueRule) -> tuple[Tier, Given | None]:
        of_team, of_user = self._team.get(reference.name), self._user.get(reference.name)
        locked = reference.tier == "team" or rule.hidden or (of_team is not None and of_team.locked)
        return ("team", of_team) if locked or of_user is None else ("user", of_user)


def _faults(config: ServerConfig, own: Mapping[str, Any]) -> list[str]:
    command = {"command": config.command} if config.command else {}
    faults = launch_faults({**command, "cwd": config.cwd, **own})
    return [f"{show_path(below)} {message}" if below else message for below, message, _ in faults]


def why_not(holds: Effective, server: str) -> str:
    """Return what a server waits for, and how it is given."""
    if holds.faults:
        why = f"a value that was given for it cannot be passed on: {'; '.join(holds.faults)}"
        return f"{why}; give another one: mcpvisor config set {server} NAME"
    of_team, own = ([name for name, tier in holds.missing.items() if tier == each] for each in TIERS)
    said = [f"each user gives {', '.join(own)} (mcpvisor config set {server} {own[0]})"] if own else []
    if of_team:
        order = f"mcpvisor config set {server} {of_team[0]} --team TEAM"
        said.append(f"an admin gives {', '.join(of_team)} for a team ({order})")
    return f"values are missing: {'; '.join(said)}"
