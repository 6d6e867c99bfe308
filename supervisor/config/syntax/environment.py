"""The environment: what all local servers share of it (`env`, `pass_env`), and what it says of deadlines. Pure.

`MCP_TOOL_TIMEOUT` is a deadline where the configuration sets none: milliseconds, as every program reads it that knows
the variable; less than five seconds count as five.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from supervisor.config.syntax.expand import expand, is_env_name
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.origins import Lookups, Origin, ValueLayer
from supervisor.config.syntax.values import Findings

VARIABLE = "MCP_TOOL_TIMEOUT"
LEAST_S = 5.0
_MILLISECONDS = re.compile(r"[0-9]{1,10}(?:\.[0-9]*)?")
_WHERE: KeyPath = ("supervisor",)


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


def tool_timeout_s(environ: Mapping[str, str], findings: Findings) -> float | None:
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


def deadline(key: str, seconds: float | None) -> ValueLayer:
    """Return that deadline as the default of a key, if there is one."""
    origin = Origin(source="environment", place=VARIABLE)
    return ValueLayer() if seconds is None else ValueLayer({key: seconds}, {key: origin})
