"""What goes wrong in a fleet. Pure.

Clients meet those of the first part; the others are between nodes, and between a node and the engine.
"""

from __future__ import annotations

import re
from typing import Any, Final

from actors.errors import SupervisorError
from supervisor.fleet.records import Place


class EngineAway(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """The engine of the fleet does not answer, or answers by an error, so it is not known which node has the server.
    Nothing was done.
    """

    def __init__(self, message: str = "the engine of the fleet does not answer; retry shortly", **more: Any) -> None:
        super().__init__(message, **{"retry_after_s": 1.0, **more})


class LeaseEnded(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """The node is no member of its fleet now, so it may start nothing. Nothing was done."""


class NodeAway(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """The node of the fleet that has the server cannot be reached, or was lost meanwhile: `outcome` says whether the
    call may have run."""


_MEANINGS: Final = {
    "OOM": "its memory is full",
    "MISCONF": "it cannot write its disk",
    "READONLY": "it is a replica, which takes nothing",
    "NOAUTH": "it wants a password",
    "WRONGPASS": "the password or the user is wrong",
    "NOPERM": "its user may not do that",
}
_CODE: Final = re.compile(r"\b[A-Z]{2,}\b")


def refused(said: str) -> EngineAway:
    """Return the error for what an engine has answered by one of its own, whose first word is a code (RESP, "Simple
    errors"). Its other words are for operators: they may name keys and addresses.
    """
    code = next((each for each in _CODE.findall(said) if each in _MEANINGS), "ERR")
    why = _MEANINGS.get(code, "mcpvisor status says more")
    return EngineAway(f"the engine of the fleet refuses what this node asks: {why} ({code}); its operator has to look")


def detail_of(error: SupervisorError) -> str:
    """Return why, for operators: addresses and the words of an engine are not for clients."""
    return str(error.__cause__ or error.message)[:200]


# Not for clients ------------------------------------------------------------------------------------------------------


class EngineSettling(EngineAway):
    """The engine began anew a moment ago: it grants nothing new before all leases of its earlier life have ended."""

    def __init__(self, **more: Any) -> None:
        super().__init__("the engine of the fleet has begun anew, and gives no server away yet; retry then", **more)


class NameTaken(SupervisorError, kind="config"):
    """Another daemon has the name of this node, and its lease runs."""


class FeedLost(SupervisorError):
    """The feed does not go back to the position that was asked for: everything has to be read anew."""


class Elsewhere(SupervisorError):
    """A node was asked for a launch that it does not own, or no longer; nothing was done. `place` is where it is, None
    where nobody owns it now."""

    def __init__(self, place: Place | None) -> None:
        super().__init__("the launch is at another node")
        self.place = place
