"""What the operators' pages need to have the configuration read again: a port that the daemon implements. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

from actors.kit import Latest
from supervisor.servers.reloading.difference import Difference

Outcome = Literal["applied", "unchanged", "planned"]
"""What a reading of the configuration led to, or would lead to."""


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of the configuration. `message` says in sentences what it led to."""

    outcome: Outcome
    message: str
    changes: Difference


class ConfigurationFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file, and how it does. `loaded_at` and `refused_at` are unix times; `refused` has the faults of the file as
    it is now, none if it is in force. `restart`: settings in it that wait for a restart of the daemon.
    """

    path: str
    loaded_at: float
    refused: tuple[str, ...] = ()
    refused_at: float | None = None
    restart: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """How it does, in a few words."""
        return f"runs, but its configuration is refused: {self.refused[0]}" if self.refused else "runs as configured"


class Configurator(Protocol):
    """Reads the configuration again. `source` says how the file does."""

    source: Latest[ConfigurationFile]

    async def reload(self) -> Reloaded:
        """Read the file and apply it. Raises `ConfigError` if it is refused; then nothing has changed."""

    async def plan(self, path: str = "") -> Reloaded:
        """Return what a reload would do, of another file if one is named. Raises `ConfigError` as `reload` does."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration was published for the nodes of a fleet, or would be: its `digest`, and how many `servers` it has.

    `shared`: the engine has it; else it gets it as soon as it answers. `changes`: compared with what was published
    before, `message` says that in sentences.
    """

    outcome: Literal["published", "unchanged", "planned"]
    digest: str
    servers: int
    shared: bool
    message: str
    changes: Difference


class Publisher(Protocol):
    """Publishes a configuration for all nodes of the fleet."""

    async def publish(self, text: str | None, by: str, *, name: str = "", plan: bool = False) -> Published:
        """Publish a text, which faults call by `name`; None: that of the node's own file. `plan`: only say what that
        would change. Raises `ConfigError`, with nothing changed, for one that cannot be used.
        """


class Editor(Protocol):
    """Changes the servers. Raises `ConfigError`, with nothing changed, for what the daemon would refuse."""

    async def add(self, name: str, entry: Mapping[str, Any], *, ephemeral: bool = False) -> Reloaded:
        """Add a server, to the file or until the daemon ends."""

    async def change(self, name: str, patch: Mapping[str, Any]) -> Reloaded:
        """Change the entry of a server by a merge patch (RFC 7396). Raises `UnknownServer`, too."""

    async def remove(self, name: str) -> Reloaded:
        """Remove a server. Raises `UnknownServer`, too."""
