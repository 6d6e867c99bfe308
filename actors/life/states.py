"""What a server is and what it shall be: the state, what is wanted, and what follows from both for others. Pure."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec


class State(enum.StrEnum):
    """Where a server is in its life."""

    DORMANT = "dormant"
    """No process; its tools are known and a call wakes it."""
    SPAWNING = "spawning"
    """A process is being started."""
    HANDSHAKING = "handshaking"
    """The process runs; the era is being negotiated."""
    DISCOVERING = "discovering"
    """Tools, resources and prompts are being listed."""
    READY = "ready"
    """Calls go through."""
    DRAINING = "draining"
    """Calls in flight end, then the process is stopped."""
    RESPAWNING = "respawning"
    """The process died; a back-off runs before the next one."""
    FAILED = "failed"
    """It cannot be started, or failed too often."""
    STOPPED = "stopped"
    """Terminal: the server was removed or the daemon ends."""


Wanted = Literal["up", "dormant", "stopped"]


class Life(msgspec.Struct, frozen=True):
    """All that `step` knows about a server. `permanent`: the failure heals only by a change; `barred`: by a login.

    `away_s`: it could not be reached, and asked to be left alone for so many seconds.
    """

    state: State = State.DORMANT
    wanted: Wanted = "dormant"
    incarnation: int = 0
    permanent: bool = False
    barred: bool = False
    fallback: bool = False
    reason: str = ""
    away_s: float | None = None

    @property
    def resting(self) -> bool:
        """Whether there is no process, and none will be without an order."""
        return self.state in RESTING

    @property
    def listable(self) -> bool:
        """Whether the server can be asked for its lists."""
        return self.state in (State.READY, State.DISCOVERING)

    @property
    def serving(self) -> bool:
        return self.state is State.READY

    @property
    def over(self) -> bool:
        return self.state is State.STOPPED

    @property
    def ending(self) -> bool:
        """Whether it is stopped for good, or will be."""
        return self.over or self.wanted == "stopped"


ALIVE = frozenset({State.SPAWNING, State.HANDSHAKING, State.DISCOVERING, State.READY, State.DRAINING})
"""Those in which there is a process, or one is being started."""
RESTING = frozenset({State.DORMANT, State.STOPPED, State.FAILED})
