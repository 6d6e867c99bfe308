"""The object `identity` of a configuration: users and teams, and what they give for servers.

A fault of it is one of the whole file: with less in it, or more, people would see what nobody meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from actors.errors import ConfigError
from supervisor.config.effective import rule_of, tiers_of
from supervisor.config.entries.entry import ServerConfig
from supervisor.config.syntax.keys import is_comment, name_fault, nearest, suggest_name
from supervisor.config.syntax.values import Problem, Remark, read_members
from supervisor.identity.people import People, Team, User

IDENTITY: Final = "identity"
VALUES: Final = "values"
_KINDS: Final[Mapping[str, type[Struct]]] = {"users": User, "teams": Team}

Expand = Callable[[str], str]
"""Replaces variables of the environment in a text. Raises `ConfigError`."""


def read_identity(written: Any, expand: Expand, problem: Problem) -> dict[str, Any]:
    """Return the members of the object as `People` takes them. `problem` takes keys from `supervisor` inwards."""
    own = read_members(People, written, (IDENTITY,), problem, IDENTITY)
    return {key: _read_named(key, own[key], expand, problem) for key in _KINDS if key in own}


def _read_named(kind: str, named: dict[str, Any], expand: Expand, problem: Problem) -> dict[str, Any]:
    read = {}
    for name, members in named.items():
        if is_comment(name):
            continue
        if fault := name_fault(name):
            problem((IDENTITY, kind, name), fault, f'rename it, for example to "{suggest_name(name)}"')
        place = (IDENTITY, kind, name)
        given = _Values(place, expand, problem).read(members.get(VALUES, {}))
        read[name] = read_members(_KINDS[kind], {**members, VALUES: given}, place, problem, IDENTITY)
    return read


class _Values:
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
        return {name: self._given(server, name, each) for name, each in named.items() if not is_comment(name)}

    def _given(self, server: str, name: str, written: Any) -> Any:
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


def identity_remarks(identity: People, servers: Collection[str]) -> Iterator[Remark]:
    """Yield which names of users and servers mean nobody; `servers` are all there are."""
    known = {"user": identity.users, "server": servers}
    for place, name, kind in identity.faults(servers):
        likely = nearest(name, known[kind])
        yield (IDENTITY, *place), f"there is no {kind} {name!r}", f'did you mean "{likely}"?' if likely else ""


def given_remarks(identity: People, entries: Mapping[str, ServerConfig]) -> Iterator[Remark]:
    """Yield which values that users and teams give no server takes as they are; `entries` are those in use."""
    groups: tuple[tuple[str, Mapping[str, User | Team]], ...] = (("users", identity.users), ("teams", identity.teams))
    for kind, named in groups:
        for owner, each in named.items():
            for server, values in each.values.items():
                config, place = entries.get(server), (IDENTITY, kind, owner, VALUES, server)
                if config is None:
                    continue
                taken = tiers_of(config)
                for name, given in values.items():
                    if name not in taken:
                        likely = nearest(name, taken)
                        hint = f'did you mean "{likely}"?' if likely else f"it takes: {', '.join(taken) or 'none'}"
                        yield (*place, name), f"the server {server!r} takes no such value", hint
                    elif fault := rule_of(config, name).fault(given.value):
                        yield (*place, name), f"cannot be used: it {fault}", ""
                    elif kind == "users" and taken[name] == "team":
                        yield (*place, name), "has no effect: teams give this value, not users", ""
