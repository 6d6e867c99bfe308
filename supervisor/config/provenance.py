"""What holds for one server, or for the daemon, and where each value comes from, with secrets hidden. Pure.

- What is decided while the file is read is not decided again here: `Configuration.origins` has where values come from.
- A secret is hidden by the name of its key and of the variables in its text, by its look, and wherever it occurs in
  another value of the entry; the daemon itself hides less, as it would spoil the answers of servers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any, Protocol

import msgspec

from actors.transport.redaction import HIDDEN, Mask, by_option, is_harmless, is_secret, looks_secret, without_secrets
from actors.transport.stdio.command import build_environment
from supervisor.config.entry import ServerConfig
from supervisor.config.expansion import DEFAULT, Origin
from supervisor.config.given import shown_identity
from supervisor.config.jsonc import KeyPath, show_path
from supervisor.config.settings import Settings
from supervisor.config.values import keys_of

_OF_LOCAL = frozenset({"command", "args", "cwd", "sandbox", "env"})
_OF_REMOTE = frozenset({"url", "headers", "oauth"})
_GROUPS = frozenset({"describe", "env", "fleet", "headers", "memory", "oauth", "profiles", "sandbox", "tools"})
"""Keys that hold values by names, each of which has an origin of its own."""
_SECRET_GROUPS = frozenset({"trace_headers"})
"""The same, where every value is for a service outside and may be a secret of any form."""
_IN_GROUP = re.compile(r"(env|headers)\b")
_ADDRESSES = frozenset({"url", "trace_endpoint"})
_OF_DAEMON = frozenset({"expose", "confirm", "result_token_budget"})
"""Keys that are settings of the daemon, too, which holds where a server has none."""
_BY_NAME = Origin(source="derived", place="the name")
_BY_KIND = Origin(source="derived", place="kind")
_PART_OF_ADDRESS = re.compile(r"[^/?&=#:@]+")


class Explicable(Protocol):
    """A configuration, or what a daemon made of it: the settings in force, and where values come from."""

    @property
    def settings(self) -> Settings: ...

    @property
    def origins(self) -> Mapping[tuple[str, KeyPath], Origin]:
        """Those of `Configuration`."""


class EffectiveValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that holds, as it may be shown. `key`: as the documentation calls it, names of groups behind a dot."""

    key: str
    value: Any
    origin: Origin

    def row(self) -> dict[str, Any]:
        """Return it with the members of its origin, as JSON values."""
        return {"key": self.key, "value": self.value, **msgspec.to_builtins(self.origin)}

    def words(self, file: str, *, of_daemon: bool) -> str:
        """Return where it comes from. `file` is how the configuration file is called."""
        origin = self.origin
        used = f", with {', '.join(f'${{{name}}}' for name in origin.variables)}" if origin.variables else ""
        match origin.source:
            case "file":
                beside = origin.place.startswith("supervisor.") is not of_daemon
                itself = origin.place.endswith(f".{self.key}") and not beside
                named = PurePath(origin.path).name or file
                return f"{named}:{origin.line}{'' if itself else f' {origin.place}'}{used}"
            case "env_file":
                return f"{origin.place}:{origin.line}"
            case "environment":
                return f"{origin.place} of the environment"
            case "derived":
                return f"follows from {origin.place}{used}"
        return "default"


def _origin_of(configuration: Explicable, server: str, key: KeyPath) -> Origin:
    """Return where a value of a server comes from, or of the daemon for an empty name."""
    while key and (server, key) not in configuration.origins:
        key = key[:-1]
    return configuration.origins.get((server, key), DEFAULT)


def explain_server(configuration: Explicable, server: ServerConfig, environ: Mapping[str, str]) -> list[EffectiveValue]:
    """Return all that holds for a server of the configuration, what is set first; `environ` is the daemon's."""
    view = _View(partial(_origin_of, configuration, server.name), server.mask(), environ)
    own: dict[str, Any] = msgspec.structs.asdict(server)
    own |= {key: msgspec.structs.asdict(own[key]) for key in ("oauth", "sandbox", "tools")}
    own["values"] = msgspec.to_builtins(server.values)
    apart = _OF_LOCAL if server.kind != "stdio" else _OF_REMOTE
    keys = ("kind", *(key for key in keys_of(ServerConfig) if key not in apart))
    values = [value for key in keys for value in view.of(key, own[key])]
    passing = view.ambient(server) if server.kind == "stdio" else ()
    settings = configuration.settings
    for at, each in enumerate(values):
        if each.key == "call_timeout_s" and server.call_timeout_s is None:
            origin = _origin_of(configuration, "", ("call_timeout_s",))
            values[at] = EffectiveValue(key=each.key, value=server.deadline_s(settings), origin=origin)
        elif each.key in _OF_DAEMON and not getattr(server, each.key):
            origin = _origin_of(configuration, "", (each.key,))
            values[at] = EffectiveValue(key=each.key, value=getattr(settings, each.key), origin=origin)
        elif each.key == "refresh_asleep" and server.refresh_asleep is None:
            values[at] = EffectiveValue(key=each.key, value=server.is_refreshed_asleep, origin=_BY_KIND)
        elif each.key == "slug" and server.slug is None:
            values[at] = EffectiveValue(key=each.key, value=server.name, origin=_BY_NAME)
    return _set_first([*values, *passing])


def explain_confirm(configuration: Explicable, *, user: str, team: str) -> list[EffectiveValue]:
    """Return what a user and the user's teams, or without one a team, have to say yes to besides what everybody has."""
    people = configuration.settings.identity
    teams = sorted(people.teams_of(user)) if user else [team]
    of_teams = [("team", name, people.teams[name].confirm) for name in teams if name in people.teams]
    of_user = [("user", user, people.users[user].confirm)] if user in people.users else []
    return [
        EffectiveValue(
            key=f"confirm of {kind} {name}",
            value=msgspec.to_builtins(confirm),
            origin=_origin_of(configuration, "", ("identity", f"{kind}s", name, "confirm")),
        )
        for kind, name, confirm in (*of_user, *of_teams)
        if confirm
    ]


def withhold(values: Iterable[EffectiveValue]) -> Iterator[EffectiveValue]:
    """Yield values for who may not read the file itself: of variables and headers only what can be no secret.

    Arguments and addresses are shown as they are for all: whoever has an account on the machine sees the former.
    """
    for each in values:
        name = _IN_GROUP.match(each.key)
        shown = name is None or (isinstance(each.value, str) and is_harmless(each.key[name.end() :], each.value))
        yield each if shown else msgspec.structs.replace(each, value=HIDDEN)


def explain_daemon(
    configuration: Explicable, data_dir: EffectiveValue, environ: Mapping[str, str]
) -> list[EffectiveValue]:
    """Return all settings of the daemon, what is set first. `data_dir` is what holds where the setting is not set."""
    settings = configuration.settings
    view = _View(partial(_origin_of, configuration, ""), Mask(settings.env), environ)
    own = msgspec.structs.asdict(settings)
    own["plugins"] = tuple(settings.plugins)  # options may be as secret as they like
    own["memory"] = msgspec.structs.asdict(settings.memory)
    own["fleet"] = msgspec.structs.asdict(settings.fleet) | {"keys": (HIDDEN,) * len(settings.fleet.keys)}
    own["describe"] = msgspec.structs.asdict(settings.describe)
    own["describe"] |= {"key": HIDDEN if settings.describe.key else ""}
    own["identity"] = shown_identity(settings.identity)
    own["event_sinks"] = [f"{sink.name} ({sink.type})" for sink in settings.event_sinks]
    values = [value for key in keys_of(Settings) for value in view.of(key, own[key])]
    return _set_first([data_dir if each.key == data_dir.key and each.value is None else each for each in values])


def _set_first(values: list[EffectiveValue]) -> list[EffectiveValue]:
    return sorted(values, key=lambda each: each.origin.source == "default")


def _hide(argument: str, secrets: Collection[str]) -> str:
    """Hide a secret argument that is too short to be looked for everywhere: `x`, or the rest of `--pin=x`."""
    option, equals, rest = argument.partition("=")
    if equals and rest in secrets:
        return f"{option}={HIDDEN}"
    return HIDDEN if argument in secrets else argument


class _View:
    """Shows values of one entry, of which `origin` says where they come from."""

    def __init__(self, origin: Callable[[KeyPath], Origin], mask: Mask, environ: Mapping[str, str]) -> None:
        self._origin = origin
        self._mask = mask
        self._environ = environ

    def of(self, key: str, value: Any) -> Iterator[EffectiveValue]:
        if key in _SECRET_GROUPS:
            for name in value:
                yield EffectiveValue(key=show_path((key, name)), value=HIDDEN, origin=self._origin((key,)))
            return
        if key in _GROUPS:
            for name, each in value.items():
                origin = self._origin((key, name))
                shown = (
                    self._text(each, origin, name) if isinstance(each, str) else self._plain(msgspec.to_builtins(each))
                )
                yield EffectiveValue(key=show_path((key, name)), value=shown, origin=origin)
            return
        origin = self._origin((key,))
        if isinstance(value, tuple):
            origins = [self._origin((key, at)) for at in range(len(value))]
            secrets = {each for name, each in by_option(value) if each and is_secret(name, each)}
            value = [_hide(self._text(each, own), secrets) for each, own in zip(value, origins, strict=True)]
            used = dict.fromkeys(name for own in origins for name in own.variables)
            origin = msgspec.structs.replace(origin, variables=tuple(used))
        elif isinstance(value, str):
            value = self._text(value, origin)
            if key in _ADDRESSES:
                value = _PART_OF_ADDRESS.sub(lambda part: HIDDEN if looks_secret(part[0]) else part[0], value)
        elif isinstance(value, dict):
            value = self._plain(value)
        yield EffectiveValue(key=key, value=value, origin=origin)

    def ambient(self, server: ServerConfig) -> Iterator[EffectiveValue]:
        """Yield the variables that a local server sees besides those of its entry."""
        for name, text in build_environment(server.env, self._environ).items():
            if name not in server.env:
                origin = Origin(source="environment", place=name) if name in self._environ else DEFAULT
                yield EffectiveValue(key=show_path(("env", name)), value=self._text(text, origin, name), origin=origin)

    def _plain(self, value: Any) -> Any:
        """Return a value of lists, objects and texts with what is secret in these hidden."""
        if isinstance(value, dict):
            return {
                name: HIDDEN if isinstance(each, str) and each and is_secret(name, each) else self._plain(each)
                for name, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._plain(each) for each in value]
        return without_secrets(self._mask(value)) if isinstance(value, str) else value

    def _text(self, text: str, origin: Origin, name: str = "") -> str:
        if text and name and is_secret(name, text):
            return HIDDEN
        for variable in origin.variables:
            value = self._environ.get(variable, "")
            if value and is_secret(variable, value):
                text = text.replace(value, HIDDEN)
        return without_secrets(self._mask(text))
