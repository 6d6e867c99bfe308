"""What teams and users give for servers (the key `values` of each), and the entry with these in their places. Pure.

- The value of a user goes over that of the team, and that over the default in the place. A team may lock its own.
- A value that the entry does not take, as it changed since, counts as none: its server waits until somebody gives one
  that it takes. A lock stays one.
- What the operating system or HTTP would refuse of the whole is a fault of it, as of an entry in the file. So is what
  would make an option of the program, or another path of the server, of a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from actors.command_line import command
from actors.errors import ConfigError
from actors.transport.redaction import HIDDEN, Confidential, is_secret
from supervisor.config.entry import ServerConfig
from supervisor.config.expansion import TIERS, Reference, TieredText, expand, fill_in
from supervisor.config.jsonc import KeyPath, show_path
from supervisor.config.keys import hint_of, is_comment
from supervisor.config.value_rules import ValueRule
from supervisor.config.values import Findings, Problem, Remark, is_address, launch_faults
from supervisor.identity.people import Given, People, Team, Tier, User, Value

_ANY_VALUE: Final = ValueRule()
_LABEL: Final = re.compile(r"[^/?&#=:]*[=:/ ]?$")
"""What stands right before a place in an address or an argument, such as `token=`."""


class Effective(Confidential, msgspec.Struct, frozen=True, kw_only=True):
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


class RestingServer(msgspec.Struct, frozen=True, kw_only=True):
    """Why a server that is configured cannot run, told before the log began. `disabled`: it is switched off.

    `awaits` are the values that somebody has to give for it first: it runs for those who have them.
    """

    name: str
    kind: str = "stdio"
    reason: str = ""
    disabled: bool = False
    awaits: tuple[str, ...] = ()


def rule_of(config: ServerConfig, name: str) -> ValueRule:
    return config.values.get(name, _ANY_VALUE)


def tiers_of(config: ServerConfig) -> dict[str, Tier]:
    """Return the values that an entry takes by name, and who gives them last: the team, or its users."""
    tiers: dict[str, Tier] = {}
    for text in config.tiered:
        for reference in text.references:
            users = reference.tier == "user" and not rule_of(config, reference.name).hidden
            tiers[reference.name] = "user" if users or tiers.get(reference.name) == "user" else "team"
    return tiers


def is_secret_value(config: ServerConfig, name: str, value: Value = ()) -> bool:
    """Say whether a value is shown to nobody: as its rule says, else its name, its look, or a place of it."""
    rule = rule_of(config, name)
    if rule.secret is not None or rule.is_secret(name, value):
        return rule.is_secret(name, value)
    return any(is_secret(label, "value") for label in _labels(config, name))


def _labels(config: ServerConfig, name: str) -> Iterator[str]:
    """Yield what a value is called where it stands: the variable, the header, the option, the parameter."""
    for text in config.tiered:
        for at, part in enumerate(text.parts):
            if not isinstance(part, Reference) or part.name != name:
                continue
            before = text.parts[at - 1] if at else ""
            match text.place:
                case ("env" | "headers", str(key)):
                    yield key
                case ("args", int(number)) if not at and number:
                    yield config.args[number - 1]
                case _ if isinstance(before, str):
                    yield before if text.place[0] == "args" else _last_label(before)


def _last_label(before: str) -> str:
    match = _LABEL.search(before)
    return match[0] if match else ""


def takes_of_users(rule: ValueRule, of_team: Given | None) -> bool:
    """Say whether users may give a value where it stands as theirs, with what their team gives."""
    return not rule.hidden and not (of_team is not None and of_team.locked)


def choose(rule: ValueRule, of_team: Given | None, of_user: Given | None) -> tuple[Tier, Given | None]:
    """Return which of two holds, and whose it is; None if neither can be used."""
    if of_user is not None and not rule.fault(of_user.value):
        return "user", of_user
    return "team", of_team if of_team is not None and not rule.fault(of_team.value) else None


def effective(config: ServerConfig, team: Mapping[str, Given], user: Mapping[str, Given]) -> Effective:
    """Return what holds with what a team and a user give, by the names of values."""
    return _Filling(config, team, user).result() if config.tiered else Effective(config=config)


def missing_for_users(holds: Effective) -> tuple[str, ...]:
    """Return what has to be given first, as users may know it: nothing of what is hidden from them."""
    return tuple(name for name in holds.missing if not rule_of(holds.config, name).hidden)


def why_not(holds: Effective, server: str, *, to_users: bool = False) -> str:
    """Return what a server waits for, and how it is given; `to_users`: without what is hidden from them."""
    if holds.faults:
        why = f"a value that was given for it cannot be passed on: {'; '.join(holds.faults)}"
        return f"{why}; give another one: {command('config', 'set', server, 'NAME')}"
    of_team, own = ([name for name, tier in holds.missing.items() if tier == each] for each in TIERS)
    named = [name for name in of_team if not to_users or name in missing_for_users(holds)]
    said = [f"each user gives {', '.join(own)} ({command('config', 'set', server, own[0])})"] if own else []
    if named:
        order = command("config", "set", server, named[0], "--team", "TEAM")
        said.append(f"an admin gives {', '.join(named)} for a team ({order})")
    if len(named) < len(of_team):
        said.append("an admin gives what users do not see, for a team")
    return f"values are missing: {'; '.join(said)}"


def fault_of(config: ServerConfig, tier: Tier, name: str, value: Value) -> str:
    """Return why a value cannot be passed on whatever the others are, empty if it can; `ValueRule.fault` has passed."""
    given = {name: Given(value=value)}
    alone = _Filling(config, *((given, {}) if tier == "team" else ({}, given)), stand_in="x")
    return next(iter(alone.faults()), "")


class _Filling:
    """Fills in one entry; `stand_in` is for what is missing."""

    def __init__(
        self, config: ServerConfig, team: Mapping[str, Given], user: Mapping[str, Given], *, stand_in: str = ""
    ) -> None:
        self._config = config
        self._stand_in = stand_in
        self._team = team
        self._user = user
        self._known: dict[Reference, tuple[Tier | None, Value]] = {}
        self._missing: dict[str, Tier] = {}
        self._secrets: dict[str, str] = {}
        self._is_personal = False
        for text in config.tiered:
            for reference in text.references:
                self._known.setdefault(reference, self._resolve(reference))

    def result(self) -> Effective:
        return Effective(
            config=replace(self._config, **self._fill()),
            missing=self._missing,
            faults=() if self._missing else tuple(self.faults()),
            sources={text.place: self._sources(text) for text in self._config.tiered},
            secrets=self._secrets,
            is_personal=self._is_personal,
        )

    def _fill(self) -> dict[str, Any]:
        config = self._config
        own = {"url": config.url, "args": config.args, "env": config.env, "headers": config.headers}
        return fill_in(own, config.tiered, self._text)

    def _sources(self, text: TieredText) -> tuple[Tier, ...]:
        tiers = (self._known[reference][0] for reference in text.references)
        return tuple(dict.fromkeys(tier for tier in tiers if tier is not None))

    def _text(self, text: TieredText, reference: Reference) -> Value:
        value = self._known[reference][1]
        if text.place != ("url",):
            return value
        return quote((value if isinstance(value, str) else " ".join(value)).encode(errors="surrogatepass"), safe="")

    def _resolve(self, reference: Reference) -> tuple[Tier | None, Value]:
        """Return what stands in a place, and who gave it; None for the default of the place."""
        name, rule = reference.name, rule_of(self._config, reference.name)
        of_team, of_user = self._team.get(name), self._user.get(name)
        is_users = reference.tier == "user" and takes_of_users(rule, of_team)
        tier, given = choose(rule, of_team, of_user if is_users else None)
        if given is not None:
            if is_secret_value(self._config, name, given.value):
                self._is_personal |= tier == "user"
                self._secrets |= {f"{name} {at}": text for at, text in enumerate(given.texts)}
            return tier, given.value
        if reference.default is None and self._missing.get(name) != "team":
            self._missing[name] = "user" if is_users else "team"
        default = self._stand_in if reference.default is None else reference.default
        return None, default if not rule.several else (default,) if default else ()

    def faults(self) -> Iterator[str]:
        """Yield what cannot be passed on, in words that name no value."""
        config, own = self._config, self._fill()
        command = {"command": config.command} if config.command else {}
        for below, message, _ in launch_faults({**command, "cwd": config.cwd, **own}):
            yield f"{show_path(below)} {message}" if below else message
        for text in config.tiered:
            if text.place == ("url",):
                yield from self._address_faults(own["url"], *text.fill(lambda reference: "x"))
            elif text.place[0] == "args" and self._is_users_option(text):
                yield f'{show_path(text.place)} begins with "-", as an option does, which users cannot give here'

    def _address_faults(self, url: str, written: str) -> Iterator[str]:
        if _dots(url) != _dots(written):
            yield 'url would lead elsewhere, as a part of its path is "." or ".."'
        elif not is_address(url, self._config.kind):
            yield "url is no address"

    def _is_users_option(self, text: TieredText) -> bool:
        """Say whether a user made an option of an argument, which none of the `options` of the value is."""
        for part in text.parts:
            if isinstance(part, str):
                return False
            tier, value = self._known[part]
            if value:
                texts = (value,) if isinstance(value, str) else value
                free = set(texts) - set(rule_of(self._config, part.name).options)
                return tier == "user" and any(each.startswith("-") for each in free)
        return False


def _dots(url: str) -> int:
    """Return how many parts of the path stand for where they are, or for what is above (RFC 3986 3.3)."""
    path = url.partition("#")[0].partition("?")[0]
    return sum(unquote(segment) in (".", "..") for segment in path.split("/"))


VALUES: Final = "values"
_KINDS: Final[Mapping[Tier, str]] = {"user": "users", "team": "teams"}


class GivenReader:
    """The values of one user or team, as the file has them: a text, a list, or an object with one of them."""

    def __init__(self, place: tuple[str, ...], environ: Mapping[str, str], problem: Problem) -> None:
        self._place = (*place, VALUES)
        self._environ = environ
        self._problem = problem

    def read(self, written: Any) -> Any:
        if not isinstance(written, dict):
            return written  # whoever checks types says so
        return {server: self._of_server(server, named) for server, named in written.items() if not is_comment(server)}

    def _of_server(self, server: str, named: Any) -> Any:
        if not isinstance(named, dict):
            return named
        return {name: self._read_value(server, name, each) for name, each in named.items() if not is_comment(name)}

    def _read_value(self, server: str, name: str, written: Any) -> Any:
        members = {**written} if isinstance(written, dict) else {"value": written}
        match members.get("value"):
            case str(text):
                members["value"] = self._text(server, name, text)
            case list(texts) if all(isinstance(text, str) for text in texts):
                members["value"] = [self._text(server, name, text) for text in texts]
            case _:
                hint = 'write a text, a list of texts, or {"value": ..., "locked": true}'
                self._problem((*self._place, server, name), "is not a value", hint)
                members = {"value": ""}
        for key in members.keys() - {"value", "locked"}:
            self._problem((*self._place, server, name, key), "unknown key", 'there are "value" and "locked"')
        if not isinstance(members.get("locked", False), bool):
            self._problem((*self._place, server, name, "locked"), "must be true or false", "")
        return {"value": members["value"], "locked": members.get("locked") is True}

    def _text(self, server: str, name: str, text: str) -> str:
        try:
            return expand(text, self._environ)
        except ConfigError as error:
            self._problem((*self._place, server, name), error.message, error.hint)
            return ""


def place_of(tier: Tier, owner: str, server: str, name: str) -> KeyPath:
    """Return where in `supervisor` a value stands."""
    return ("identity", _KINDS[tier], owner, VALUES, server, name)


def in_file(identity: People) -> Iterator[tuple[Tier, str, str, str, Given]]:
    """Yield all values of a file: whose each is, for which server, its name, and itself."""
    groups: tuple[tuple[Tier, Mapping[str, User | Team]], ...] = (("user", identity.users), ("team", identity.teams))
    for tier, named in groups:
        for owner, each in named.items():
            for server, values in each.values.items():
                yield from ((tier, owner, server, name, given) for name, given in values.items())


def note_lines(identity: People, findings: Findings) -> None:
    """Keep the line of each value, and of what people have to say yes to."""
    for kind, named in (("users", identity.users), ("teams", identity.teams)):
        for owner in (owner for owner, each in named.items() if each.confirm):
            own: KeyPath = ("identity", kind, owner, "confirm")
            findings.origins["", own] = findings.origin(("supervisor", *own))
    for tier, owner, server, name, _ in in_file(identity):
        place = place_of(tier, owner, server, name)
        findings.origins["", place] = findings.origin(("supervisor", *place))


def shown_identity(identity: People) -> Any:
    """Return users and teams as JSON values, those that they give hidden."""
    shown = to_builtins(identity)
    for tier, owner, server, name, _ in in_file(identity):
        shown[_KINDS[tier]][owner][VALUES][server][name]["value"] = HIDDEN
    return shown


def given_remarks(identity: People, entries: Mapping[str, ServerConfig]) -> Iterator[Remark]:
    """Yield which values that users and teams give no server takes as they are; `entries` are those in use."""
    for tier, owner, server, name, given in in_file(identity):
        config, place = entries.get(server), place_of(tier, owner, server, name)
        if config is None:
            continue
        taken = tiers_of(config)
        if name not in taken:
            hint = hint_of(name, taken, f"it takes: {', '.join(taken) or 'none'}")
            yield place, f"the server {server!r} takes no such value", hint
        elif fault := rule_of(config, name).fault(given.value):
            yield place, f"cannot be used: it {fault}", ""
        elif fault := fault_of(config, tier, name, given.value):
            yield place, f"cannot be used: {fault}", ""
        elif tier == "user" and taken[name] == "team":
            yield place, "has no effect: teams give this value, not users", ""
