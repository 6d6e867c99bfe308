"""`${VAR}` in configurations, and `envFile`s.

Rules of this file:
- Forms: `${VAR}`, `${VAR:-default}` (the default stands for an unset *or empty* variable, as in a shell), VS Code's
  `${env:VAR}`, `${userHome}`, `${pathSeparator}` and `${/}`. `$${` is a literal `${`. A `$` before anything but `{`
  is itself.
- An expanded value is not expanded again: what a variable holds is data.
- An undefined variable is an error with its *name*. No message has a value in it, nor a default.
- `${team:NAME}` and `${user:NAME}`, with a default or without, are places for values that are not known yet (`split`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from actors.errors import ConfigError
from supervisor.config.syntax.origins import Origin, ValueLayer
from supervisor.config.syntax.tiers import TIERS, Reference

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_TIERED = re.compile(rf"({'|'.join(TIERS)}):([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_EDITOR = re.compile(
    r"(workspaceFolder|input|config|command|cwd|file|relativeFile|lineNumber|selectedText|extension)\b"
)
_ENV_LINE = re.compile(r"(?:export\s+)?([^\s=]+)\s*=\s*(.*)")
_ENV_NAME = re.compile(r"[^\s=\x00-\x1f\x7f]+")
_ADVICE: Mapping[str, str] = {
    "workspaceFolder": "a daemon has no workspace: write the absolute path, or ${VAR} and set VAR",
    "cwd": "a daemon has no working directory of its own: write the absolute path",
    "input": "a daemon has nobody to ask: put the value in an environment variable and write ${VAR}",
}


class UnsetVariable(ConfigError):
    """A variable that stands in a text has no value in the environment, and no default."""


def is_env_name(name: str) -> bool:
    return _ENV_NAME.fullmatch(name) is not None


def has_reference(text: str) -> bool:
    """Say whether a text refers to anything: then it is no secret itself."""
    return any(reference[0] != "$${" for reference in _REFERENCE.finditer(text))


def pieces(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield a text in pieces: what is literal, then the variable of a reference, empty for none, and its default."""
    at = 0
    for reference in _REFERENCE.finditer(text):
        if reference[0] != "$${" and reference[2]:
            name, _, default = reference[1].partition(":-")
            yield text[at : reference.start()], name, default
            at = reference.end()
    yield text[at:], "", ""


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Return `text` with every reference replaced. Raises `ConfigError` without a place, which the caller knows."""
    parts = split(text, environ)
    if any(isinstance(part, Reference) for part in parts):
        raise ConfigError(
            "a value of a team or a user cannot stand here",
            hint='they can stand in "args", "env", "headers", and behind the host of "url", of a server',
        )
    return "".join(str(part) for part in parts)


def split(text: str, environ: Mapping[str, str]) -> tuple[str | Reference, ...]:
    """Return the parts of `text`, everything replaced but values of teams and users. Raises as `expand` does."""
    parts: list[str | Reference] = []
    plain, end = "", 0
    for match in _REFERENCE.finditer(text):
        plain, end = plain + text[end : match.start()], match.end()
        if match[0] == "$${":
            plain += "${"
            continue
        if not match[2]:
            raise ConfigError('a "${" is not closed', hint="end the reference with }, or write $${ for a literal ${")
        if tiered := _TIERED.fullmatch(match[1]):
            tier = next(each for each in TIERS if each == tiered[1])
            parts += [plain, Reference(tier, tiered[2], tiered[3])]
            plain = ""
        else:
            plain += _value_of(match[1], environ)
    return tuple(part for part in (*parts, plain + text[end:]) if part != "")


def _value_of(reference: str, environ: Mapping[str, str]) -> str:
    if reference in ("pathSeparator", "/"):
        return "/"
    if reference == "userHome":
        return _variable("HOME", None, environ)
    editor = _EDITOR.match(reference)
    if editor:
        advice = _ADVICE.get(editor[1], "only an editor knows it: write the value, or ${VAR} and set VAR")
        raise ConfigError(f"${{{editor[1]}}} is a variable of the editor", hint=advice)
    variable = _VARIABLE.fullmatch(reference)
    if variable is None:
        raise ConfigError(
            'a "${...}" is not a reference to a variable',
            hint="the forms are ${VAR}, ${VAR:-default} and ${env:VAR}; write $${ for a literal ${",
        )
    return _variable(variable[1], variable[2], environ)


def _variable(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if default is not None:
        return value or default
    if value is None:
        raise UnsetVariable(
            f"the environment variable {name} is not set",
            hint=f"set {name} in the environment of the daemon, or write ${{{name}:-default}}",
        )
    return value


def expand_home(text: str, environ: Mapping[str, str]) -> str:
    """Replace a leading `~/`. Raises `ConfigError` if `HOME` is not set."""
    if text != "~" and not text.startswith("~/"):
        return text
    return _variable("HOME", None, environ) + text[1:]


def parse_env_file(text: str, path: str) -> ValueLayer:
    """Return the variables of an env file: `NAME=value` lines, `#` comments, optional `export` and quotes.

    Values are taken literally, without expansion. Raises `ConfigError` with `path` and line.
    """
    variables: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _ENV_LINE.fullmatch(stripped)
        if match is None or not is_env_name(match[1]):
            raise ConfigError("not a NAME=value line", path=path, line=number, hint="begin a comment with #")
        value = match[2]
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        variables[match[1]] = value
        origins[match[1]] = Origin(source="env_file", place=path, line=number)
    return ValueLayer(variables, origins)
