"""The environment: what all local servers share of it (`env`, `pass_env`), and what it sets. Pure.

What a variable sets holds where the configuration says nothing. `MCP_TOOL_TIMEOUT` is a deadline in milliseconds, as
every program reads it that knows the variable; less than five seconds count as five.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from actors.errors import ConfigError
from supervisor.config.syntax.address import split_address
from supervisor.config.syntax.expand import expand, is_env_name
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.origins import Lookups, Origin, ValueLayer, overlay
from supervisor.config.syntax.values import Findings

VARIABLE = "MCP_TOOL_TIMEOUT"
LEAST_S = 5.0
_MILLISECONDS = re.compile(r"[0-9]{1,10}(?:\.[0-9]*)?")
_WHERE: KeyPath = ("supervisor",)


_SECONDS = re.compile(r"[0-9]{1,8}(?:\.[0-9]{1,6})?")
_YEAR_S: Final = 31_536_000
_YES, _NO = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
_LEVELS: Final = {
    **dict.fromkeys(("trace", "debug", "verbose", "silly"), "debug"),
    **dict.fromkeys(("info", "http", "notice"), "info"),
    **dict.fromkeys(("warn", "warning"), "warning"),
    **dict.fromkeys(("error", "fatal", "critical"), "error"),
}


class Variable(msgspec.Struct, frozen=True):
    """A variable that sets a key of the file, of `supervisor` or of every server; `takes` says what it may hold.

    `read` returns the value, or None for a text that is not so.
    """

    name: str
    key: str
    takes: str
    read: Callable[[str], Any]
    of_servers: bool = False


def _seconds(text: str) -> float | None:
    return float(text) if _SECONDS.fullmatch(text) and float(text) <= _YEAR_S else None


def _switch(text: str) -> bool | None:
    word = text.lower()
    return True if word in _YES else False if word in _NO else None


VARIABLES: Final = (
    Variable(
        "LOG_LEVEL", "log_level", "trace, debug, info, warn, error or fatal", lambda text: _LEVELS.get(text.lower())
    ),
    Variable("DEPLOYSTACK_STATUS_SHOW_MCP_DEBUG_ROUTE", "show_debug", "true or false", _switch),
    Variable("MCPVISOR_CATALOGUE_MAX_AGE_S", "catalogue_max_age_s", "a number of seconds, at most a year", _seconds),
    Variable(
        "MCP_PROCESS_IDLE_TIMEOUT_SECONDS", "idle_timeout_s", "a number of seconds, at most a year", _seconds, True
    ),
)
"""What is read beside `MCP_TOOL_TIMEOUT`, `HOST` and `PORT`."""
WITHOUT_EFFECT: Final = {
    "MCP_PROCESS_SPAWN_GRACE_PERIOD_SECONDS": "the idle time of a server begins when its start ends",
    **dict.fromkeys(
        ("EVENT_BATCH_INTERVAL_MS", "EVENT_MAX_BATCH_SIZE", "EVENT_MAX_QUEUE_SIZE", "EVENT_FLUSH_TIMEOUT_MS"),
        "each of the event_sinks has its own interval_s, batch_events and queue_events",
    ),
}
"""Variables of other gateways that set nothing here, and why."""


class Defaults(NamedTuple):
    """What the environment sets, by key: of `supervisor`, and of every server."""

    daemon: ValueLayer
    servers: ValueLayer


def defaults(environ: Mapping[str, str], findings: Findings, listen: str) -> Defaults:
    """Return what the environment sets; also the address, if there is a `listen` whose host it has otherwise.

    What surprises is noted. Raises `ConfigError` that names the first variable whose text is nothing that it takes.
    """
    daemon: list[ValueLayer] = []
    servers: list[ValueLayer] = []
    for variable in VARIABLES:
        if text := environ.get(variable.name, "").strip():
            value = variable.read(text)
            if value is None:
                raise _bad(findings, variable.name, variable.takes)
            (servers if variable.of_servers else daemon).append(_layer(variable.name, variable.key, value))
    if (timeout_s := _tool_timeout_s(environ, findings)) is not None:
        daemon.append(_layer(VARIABLE, "call_timeout_s", timeout_s))
        servers.append(_layer(VARIABLE, "discovery_timeout_s", timeout_s))
    if listen and (address := _address(environ, findings, listen)):
        daemon.append(_layer("PORT", "listen", address))
        findings.note((), "PORT of the environment sets the address", 'set "listen" in "supervisor" to have another')
    for name in (name for name in WITHOUT_EFFECT if environ.get(name)):
        findings.note((), f"{name} of the environment has no effect", WITHOUT_EFFECT[name])
    return Defaults(overlay(*daemon), overlay(*servers))


def _layer(variable: str, key: str, value: object) -> ValueLayer:
    return ValueLayer({key: value}, {key: Origin(source="environment", place=variable)})


def _bad(findings: Findings, name: str, takes: str) -> ConfigError:
    return findings.error((), f"{name} of the environment must be {takes}", f"correct it, or unset {name}")


def _address(environ: Mapping[str, str], findings: Findings, usual: str) -> str:
    """Return the address that `PORT` sets, with the host of `usual`, or that of `HOST`; nothing without a port.

    `HOST` alone says nothing: shells and compilers have it for something else. Raises `ConfigError`.
    """
    port, host = environ.get("PORT", "").strip(), environ.get("HOST", "").strip()
    if not port:
        return ""
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    listen = f"{host or split_address(usual)[0]}:{port}"
    try:
        split_address(listen)
    except ValueError as error:
        of_port = "port" in str(error)
        takes = "a number from 0 to 65535" if of_port else "the name or the address of a host"
        raise _bad(findings, "PORT" if of_port else "HOST", takes) from None
    return listen


def read_env(own: Mapping[str, Any], environ: Mapping[str, str], findings: Findings) -> ValueLayer:
    """Return `env`, expanded. Raises `ConfigError` for the first variable that cannot be used."""
    variables: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    for name, text in own.get("env", {}).items():
        where = (*_WHERE, "env", name)
        if not is_env_name(name):
            raise findings.error(where, "an environment variable cannot have this name", 'no "=", no blanks')
        with findings.at(where):
            variables[name] = expand(text, lookups := Lookups(environ))
            origins[name] = findings.origin(where, lookups.names)
        if "\0" in variables[name]:
            raise findings.error(where, "holds a NUL character", "remove it")
    return ValueLayer(variables, origins)


def inherit(patterns: Sequence[str], environ: Mapping[str, str], findings: Findings) -> ValueLayer:
    """Return the variables of our own environment that `pass_env` names. Raises `ConfigError` for what is no name.

    A name that is not set is left out: whether it is may depend on how the daemon was started.
    """
    for at, pattern in enumerate(patterns):
        if not is_env_name(pattern.removesuffix("*")) or "*" in pattern[:-1]:
            hint = 'a name such as "KUBECONFIG", or its beginning and a star, as in "AWS_*"'
            raise findings.error((*_WHERE, "pass_env", at), "is not the name of an environment variable", hint)
    exact = frozenset(patterns)
    begins = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    names = sorted(name for name in environ if name in exact or name.startswith(begins))
    # A function that a shell exported (CVE-2014-6271) is nothing a server should see.
    passed = {name: environ[name] for name in names if not environ[name].startswith("()")}
    return ValueLayer(passed, {name: Origin(source="environment", place=name) for name in passed})


def _tool_timeout_s(environ: Mapping[str, str], findings: Findings) -> float | None:
    """Return the deadline in seconds, None if the variable is not set; one that says nothing is noted."""
    text = environ.get(VARIABLE, "").strip()
    if not text:
        return None
    seconds = float(text) / 1000 if _MILLISECONDS.fullmatch(text) else 0.0
    if not seconds:
        findings.note((), f"{VARIABLE} of the environment is no number of milliseconds", "60000 is one minute")
        return None
    if seconds < LEAST_S:
        findings.note(
            (), f"{VARIABLE} of the environment is milliseconds; it counts as {LEAST_S:g} s", "use 5000 or more"
        )
    return max(seconds, LEAST_S)
