"""Where values come from. Whoever decides which of several holds keeps beside each value its origin. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

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
