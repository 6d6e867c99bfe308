"""`${VAR}` in configurations and `envFile`s, and where each value comes from.

Rules of this file:
- Forms: `${VAR}`, `${VAR:-default}` (the default stands for an unset *or empty* variable, as in a shell), VS Code's
  `${env:VAR}`, `${userHome}`, `${pathSeparator}` and `${/}`. `$${` is a literal `${`. A `$` before anything but `{` is
  itself.
- An expanded value is not expanded again: what a variable holds is data.
- An undefined variable is an error with its *name*. No message has a value in it, nor a default.
- `${team:NAME}` and `${user:NAME}`, with a default or without, are places for values that teams and users give
  (`TieredText`). What else stands in such a text is expanded when the file is read; a value is put in as it is.
- Whoever decides which of several values holds keeps its origin beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

import msgspec

from actors.errors import ConfigError
from supervisor.config.jsonc import KeyPath
from supervisor.identity.people import TIERS as TIERS
from supervisor.identity.people import Given as Given
from supervisor.identity.people import GivenByServer as GivenByServer
from supervisor.identity.people import Tier as Tier
from supervisor.identity.people import Value as Value

Source = Literal["file", "env_file", "environment", "derived", "default"]
"""The configuration file, an `envFile`, the daemon's own environment, what else is set, the program itself."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where one value comes from.

    `place`: the key in the configuration file, the path of the `envFile`, the name of the variable, or in words what
    it follows from. `line`: in the file, from 1; 0 where there is none. `variables`: of our environment, in its text.
    `path`: of the file, where it is not the configuration file itself, but what was published for a fleet.
    """

    source: Source
    place: str = ""
    line: int = 0
    path: str = ""
    variables: tuple[str, ...] = ()


DEFAULT = Origin(source="default")


class ValueLayer(msgspec.Struct, frozen=True):
    """Values by name, and the origin of each."""

    values: Mapping[str, Any] = {}
    origins: Mapping[str, Origin] = {}


def overlay(*layers: ValueLayer) -> ValueLayer:
    """Return all of them as one; where a name is in several, the last one holds."""
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for layer in layers:
        values |= layer.values
        origins |= layer.origins
    return ValueLayer(values, origins)


class Lookups(Mapping[str, str]):
    """An environment that remembers which of its variables were found in it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._names: dict[str, None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def __getitem__(self, name: str) -> str:
        value = self._environ[name]
        self._names[name] = None
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)


class Reference(msgspec.Struct, frozen=True):
    """A place for a value. `default` is what holds where nobody gives one; None: somebody has to."""

    tier: Tier
    name: str
    default: str | None = None


class TieredText(msgspec.Struct, frozen=True):
    """A text with such places in it, and where in the entry it stands, by our keys."""

    place: KeyPath
    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(part for part in self.parts if isinstance(part, Reference))

    @property
    def is_argument(self) -> bool:
        """Whether it is a place for arguments of the program and nothing else."""
        return self.place[0] == "args" and len(self.parts) == 1

    def fill(self, value_of: Callable[[Reference], Value]) -> tuple[str, ...]:
        """Return the texts that stand there: one, or as many arguments as were given."""
        filled = [part if isinstance(part, str) else value_of(part) for part in self.parts]
        if len(filled) == 1 and isinstance(filled[0], tuple):
            return filled[0]
        return ("".join(part if isinstance(part, str) else " ".join(part) for part in filled),)


def fill_in(
    own: Mapping[str, Any], texts: Iterable[TieredText], value_of: Callable[[TieredText, Reference], Value]
) -> dict[str, Any]:
    """Return what of an entry, given by our keys, texts stand in, with them in their places."""
    url, env, headers = own.get("url", ""), {**own.get("env", {})}, {**own.get("headers", {})}
    arguments: list[tuple[str, ...]] = [(text,) for text in own.get("args", ())]
    for text in texts:
        filled = text.fill(partial(value_of, text))
        match text.place:
            case ("args", int(at)):
                arguments[at] = filled
            case ("env", str(name)):
                env[name] = filled[0]
            case ("headers", str(name)):
                headers[name] = filled[0]
            case _:
                url = filled[0]
    return {"url": url, "env": env, "headers": headers, "args": tuple(text for texts in arguments for text in texts)}


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
