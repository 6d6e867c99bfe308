"""The environment that all local servers share: `env` and `pass_env` of the daemon's settings. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from actors.errors import ConfigError
from supervisor.config.syntax.expand import expand, is_env_name
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.values import Findings

_WHERE: KeyPath = ("supervisor",)


def read_env(own: Mapping[str, Any], environ: Mapping[str, str], findings: Findings) -> dict[str, str]:
    variables: dict[str, str] = {}
    for name, text in own.get("env", {}).items():
        where = (*_WHERE, "env", name)
        if not is_env_name(name):
            raise findings.error(where, "an environment variable cannot have this name", 'no "=", no blanks')
        try:
            variables[name] = expand(text, environ)
        except ConfigError as error:
            raise findings.error(where, error.message, error.hint) from None
        if "\0" in variables[name]:
            raise findings.error(where, "holds a NUL character", "remove it")
    return variables


def inherit(patterns: Sequence[str], environ: Mapping[str, str], findings: Findings) -> dict[str, str]:
    """Return the variables of our own environment that `pass_env` names. Raises `ConfigError` for what is no name.

    A name that is not set is left out: whether it is may depend on how the daemon was started.
    """
    for at, pattern in enumerate(patterns):
        if not is_env_name(pattern.removesuffix("*")) or "*" in pattern[:-1]:
            hint = 'a name such as "KUBECONFIG", or its beginning and a star, as in "AWS_*"'
            raise findings.error((*_WHERE, "pass_env", at), "is not the name of an environment variable", hint)
    return dict(sorted(_match(patterns, environ)))


def _match(patterns: Sequence[str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    exact = frozenset(patterns)
    begins = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    for name, value in environ.items():
        # A function that a shell exported (CVE-2014-6271) is nothing a server should see.
        if (name in exact or (begins and name.startswith(begins))) and not value.startswith("()"):
            yield name, value
