"""What the users and teams of a configuration give for servers: the key `values` of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import to_builtins

from actors.errors import ConfigError
from actors.transport.redaction import HIDDEN
from supervisor.config.effective import fault_of, rule_of, tiers_of
from supervisor.config.entries.entry import ServerConfig
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.keys import hint_of, is_comment
from supervisor.config.syntax.values import Findings, Problem, Remark
from supervisor.identity.people import Given, People, Team, Tier, User

VALUES: Final = "values"
_KINDS: Final[Mapping[Tier, str]] = {"user": "users", "team": "teams"}

Expand = Callable[[str], str]
"""Replaces variables of the environment in a text. Raises `ConfigError`."""


class GivenReader:
    """The values of one user or team, as the file has them: a text, a list, or an object with one of them."""

    def __init__(self, place: tuple[str, ...], expand: Expand, problem: Problem) -> None:
        self._place = (*place, VALUES)
        self._expand = expand
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
            return self._expand(text)
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
