"""Read the object `supervisor` of a configuration, and the environment where that says nothing. Pure.

What local servers share of the environment is in `env` and `pass_env`. `MCP_TOOL_TIMEOUT` is a deadline in
milliseconds, as every program reads it that knows the variable; less than five seconds count as five.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from actors.errors import ConfigError
from supervisor.config.address import authority, origin_of, split_address
from supervisor.config.entry import ServerConfig
from supervisor.config.expansion import Lookups, Origin, ValueLayer, expand, expand_home, is_env_name, overlay
from supervisor.config.identity import IDENTITY, ISSUERS, SECRET, read_identity, read_profiles
from supervisor.config.jsonc import KeyPath
from supervisor.config.keys import hint_of, is_comment
from supervisor.config.sections import (
    DESCRIBE,
    EVENT_SINKS,
    FLEET,
    MEMORY,
    PLUGINS,
    OptionsOf,
    read_describe,
    read_event_sinks,
    read_fleet,
    read_memory,
    read_plugins,
)
from supervisor.config.settings import Settings
from supervisor.config.values import Findings, Remark, build, keys_of, raise_together, type_faults

_VARIABLE = "MCP_TOOL_TIMEOUT"
_LEAST_S = 5.0
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
        daemon.append(_layer(_VARIABLE, "call_timeout_s", timeout_s))
        servers.append(_layer(_VARIABLE, "discovery_timeout_s", timeout_s))
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


def _read_env(own: Mapping[str, Any], environ: Mapping[str, str], findings: Findings) -> ValueLayer:
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
    text = environ.get(_VARIABLE, "").strip()
    if not text:
        return None
    seconds = float(text) / 1000 if _MILLISECONDS.fullmatch(text) else 0.0
    if not seconds:
        findings.note((), f"{_VARIABLE} of the environment is no number of milliseconds", "60000 is one minute")
        return None
    if seconds < _LEAST_S:
        findings.note(
            (), f"{_VARIABLE} of the environment is milliseconds; it counts as {_LEAST_S:g} s", "use 5000 or more"
        )
    return max(seconds, _LEAST_S)


def _https_origin(text: str) -> object:
    return origin if (origin := origin_of(text)) is not None and origin[0] == "https" else None


_NAMES: tuple[tuple[str, Callable[[str], object], str, str], ...] = (
    ("allowed_hosts", authority, "a host", '"mcp.example.com" or "mcp.example.com:8443"'),
    ("allowed_origins", origin_of, "an origin", '"https://app.example.com", without a path'),
    ("webhook_origins", _https_origin, "an origin of https", '"https://hooks.internal:8443", without a path'),
)
"""Settings whose entries have a form: what reads it, what it is, an example."""
_PATHS = ("data_dir", "tls_certificate", "tls_key", "phrases_file")
"""Settings that are paths, from the directory of the file."""
_HEADERS = "trace_headers"
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_GONE = {
    "allow_remote": 'there is no such key any more: set "auth", so that clients say who they are, and beside it '
    '"tls_certificate", "trusted_proxies" or "insecure_http"'
}
"""Keys of before, and what to write instead."""


def read_settings(
    members: Any,
    usual: ValueLayer,
    directory: Path,
    environ: Mapping[str, str],
    findings: Findings,
    options_of: OptionsOf,
) -> Settings:
    """Return the settings that the members of the object say, None for no object.

    `usual` has what holds where they say nothing, `options_of` the options of plugins. Raises what is wrong with types
    and keys together, else the first `ConfigError`.
    """
    written = {key: value for key, value in (members or {}).items() if not is_comment(key)}
    laid = overlay(usual, ValueLayer(written, {key: findings.origin(("supervisor", key)) for key in written}))
    own, origins = dict(laid.values), dict(laid.origins)
    if isinstance(own.get("profiles"), dict):
        own["profiles"] = {name: each for name, each in own["profiles"].items() if not is_comment(name)}
    keys, known = keys_of(Settings), len(findings.problems)
    for key in (key for key in own if key not in keys):
        if key in _GONE:
            findings.problem(("supervisor", key), "unknown key", _GONE[key])
            continue
        beside = 'it belongs beside "command" of a server' if key in keys_of(ServerConfig) else "remove it"
        findings.problem(("supervisor", key), "unknown key", hint_of(key, keys, beside))
    for below, message, hint in type_faults(own, keys):
        findings.problem(("supervisor", *below), message, hint)
    raise_together(findings.problems[known:])
    problem = partial(_of_settings, findings)
    own["profiles"] = read_profiles(own.get("profiles", {}), own.get("profile"), problem)
    own[IDENTITY] = read_identity(own.get(IDENTITY, {}), environ, problem)
    own[FLEET] = read_fleet(own.get(FLEET, {}), environ, problem)
    own[DESCRIBE] = read_describe(own.get(DESCRIBE, {}), environ, problem)
    own[MEMORY] = read_memory(own.get(MEMORY, {}), problem)
    own[PLUGINS] = read_plugins(own.get(PLUGINS, {}), options_of, environ, problem)
    own[EVENT_SINKS] = read_event_sinks(own.get(EVENT_SINKS, []), directory, environ, problem)
    for below, message, hint in _faults(own):
        findings.problem(("supervisor", *below), message, hint)
    raise_together(findings.problems[known:])
    with findings.at(("supervisor", "listen"), 'for example "127.0.0.1:3001"'):
        split_address(own.get("listen", Settings().listen))
    for key, read, what, example in _NAMES:
        for number, entry in enumerate(own.get(key, ())):
            if read(entry) is None:
                raise findings.error(("supervisor", key, number), f"not {what}: {entry!r}", f"for example {example}")
    for key in filter(own.get, _PATHS):
        with findings.at(("supervisor", key)):
            lookups = Lookups(environ)
            own[key] = str(directory / expand_home(expand(own[key], lookups), lookups))
            origins[key] = findings.origin(("supervisor", key), lookups.names)
    for at, issuer in enumerate(own[IDENTITY][ISSUERS]):
        group, key = SECRET
        with findings.at(("supervisor", IDENTITY, ISSUERS, at, *SECRET)):
            if group in issuer:
                issuer[group][key] = expand(issuer[group][key], environ)
    own[_HEADERS] = _read_headers(own.get(_HEADERS, {}), environ, findings)
    env = _read_env(own, environ, findings)
    own["env"] = env.values
    for group in (MEMORY, FLEET, DESCRIBE):  # what is not written in it is the default, not of its line
        origins.pop(group, None)
    findings.origins.update({("", (key,)): origin for key, origin in origins.items()})
    findings.origins.update({("", ("env", name)): origin for name, origin in env.origins.items()})
    for group in ("profiles", PLUGINS, MEMORY, FLEET, DESCRIBE):
        for name in own[group]:
            findings.origins["", (group, name)] = findings.origin(("supervisor", group, name))
    settings: Settings = build(Settings, own)
    return settings


def _read_headers(written: Mapping[str, str], environ: Mapping[str, str], findings: Findings) -> dict[str, str]:
    """Return the headers of traces, expanded. Raises `ConfigError` for the first that cannot be sent."""
    headers: dict[str, str] = {}
    for name, text in written.items():
        if is_comment(name):
            continue
        with findings.at(("supervisor", _HEADERS, name)):
            headers[name] = expand(text, environ)
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(headers[name]):
            raise findings.error(("supervisor", _HEADERS, name), "is no header", "a name, and a value on one line")
    return headers


def _faults(own: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield what is of the right type, but of no use."""
    public = own.get("public_url", "")
    if public and ((origin := origin_of(public)) is None or origin[0] not in ("http", "https")):
        yield ("public_url",), "is not an address without a path", 'for example "https://mcp.example.com"'
    for at, network in enumerate(own.get("trusted_proxies", ())):
        try:
            ip_network(network)
        except ValueError:
            yield (
                ("trusted_proxies", at),
                "is neither an address nor a network",
                'for example "10.0.0.5" or "10.0.0.0/8"',
            )
    endpoint = own.get("trace_endpoint", "")
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        yield ("trace_endpoint",), "is not an address", 'for example "http://localhost:4318/v1/traces"'
    if own.get("tls_key") and not own.get("tls_certificate"):
        yield ("tls_key",), "is the key of a certificate", 'give "tls_certificate", too'
    if own.get("auth") in ("oauth", "both") and not own[IDENTITY][ISSUERS]:
        yield (
            ("auth",),
            "there is no identity provider whose tokens to take",
            'name it in "identity": {"issuers": [...]}',
        )


def _of_settings(findings: Findings, below: KeyPath, message: str, hint: str) -> None:
    findings.problem(("supervisor", *below), message, hint)
