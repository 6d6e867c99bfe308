"""What a reading of the configuration, or its publication, led to, and how the file does. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

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
