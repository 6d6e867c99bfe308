"""Read the object `supervisor` of a configuration: its keys, types, forms, variables. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from supervisor.config.entries.entry import ServerConfig
from supervisor.config.identity import IDENTITY, ISSUERS, SECRET, read_identity
from supervisor.config.profiles import read_profiles
from supervisor.config.sections.describe import DESCRIBE, read_describe
from supervisor.config.sections.event_sinks import EVENT_SINKS, read_event_sinks
from supervisor.config.sections.fleet import FLEET, read_fleet
from supervisor.config.sections.memory import MEMORY, read_memory
from supervisor.config.sections.options import PLUGINS, OptionsOf, read_plugins
from supervisor.config.structs import Settings
from supervisor.config.syntax.address import authority, origin_of, split_address
from supervisor.config.syntax.environment import read_env
from supervisor.config.syntax.expand import expand, expand_home
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.keys import hint_of, is_comment
from supervisor.config.syntax.origins import Lookups, ValueLayer, overlay
from supervisor.config.syntax.values import Findings, Remark, build, keys_of, raise_together, type_faults


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
HEADERS = "trace_headers"
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
    own["profiles"] = read_profiles(own.get("profiles", {}), own.get("profile"), partial(_of_settings, findings))
    own[IDENTITY] = read_identity(
        own.get(IDENTITY, {}), lambda text: expand(text, environ), partial(_of_settings, findings)
    )
    own[FLEET] = read_fleet(own.get(FLEET, {}), lambda text: expand(text, environ), partial(_of_settings, findings))
    own[DESCRIBE] = read_describe(
        own.get(DESCRIBE, {}), lambda text: expand(text, environ), partial(_of_settings, findings)
    )
    own[MEMORY] = read_memory(own.get(MEMORY, {}), partial(_of_settings, findings))
    own[PLUGINS] = read_plugins(
        own.get(PLUGINS, {}), options_of, lambda text: expand(text, environ), partial(_of_settings, findings)
    )
    own[EVENT_SINKS] = read_event_sinks(
        own.get(EVENT_SINKS, []),
        lambda text: expand(text, environ),
        lambda text: str(directory / expand_home(expand(text, environ), environ)),
        partial(_of_settings, findings),
    )
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
    own[HEADERS] = _read_headers(own.get(HEADERS, {}), environ, findings)
    env = read_env(own, environ, findings)
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
        with findings.at(("supervisor", HEADERS, name)):
            headers[name] = expand(text, environ)
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(headers[name]):
            raise findings.error(("supervisor", HEADERS, name), "is no header", "a name, and a value on one line")
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
