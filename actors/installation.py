"""How a server is doing for its users: one of twelve words, from which every page, event and metric is made. Pure.

A state says what a process does; one of these says what a user may expect. The table of them is in
docs/reference/status.md. Only servers that are `online` are searched: their tools are known, and a call runs at
once, wakes them, or waits for a start that is due within moments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from actors.life.states import Down, State
from actors.messages import ServerStatus

InstallationStatus = Literal[
    "awaiting_user_config",
    "provisioning",
    "command_received",
    "connecting",
    "discovering_tools",
    "syncing_tools",
    "online",
    "restarting",
    "offline",
    "error",
    "requires_reauth",
    "permanently_failed",
]
DOWN: Final[frozenset[str | None]] = frozenset(get_args(Down))
"""The words for a server that failed and is not back."""
DISABLED: Final = "disabled"
PER_USER: Final = "per_user"
_ON_ITS_WAY: Final[dict[State, InstallationStatus]] = {
    State.SPAWNING: "connecting",
    State.HANDSHAKING: "connecting",
    State.DISCOVERING: "discovering_tools",
    State.READY: "syncing_tools",
    State.DRAINING: "restarting",
    State.RESPAWNING: "restarting",
    State.FAILED: "permanently_failed",
}


def is_available(status: ServerStatus) -> bool:
    """Say whether the tools of a server can be used, as far as that depends on the server."""
    return not (status.disabled or status.awaits or status.requires_reauth or status.down)


def installation_status(status: ServerStatus | None, *, listed: bool) -> InstallationStatus | None:
    """Return the word for a server of which this was reported, None for nothing yet. `listed`: its tools are found.

    None for one that is switched off: it is nobody's until it is switched on.
    """
    if status is None:
        return "provisioning"
    if status.disabled:
        return None
    if status.awaits:
        return "awaiting_user_config"
    if status.requires_reauth:
        return "requires_reauth"
    if status.down is not None:
        return status.down
    if status.state is State.STOPPED:  # it was removed, or the daemon ends
        return "offline"
    if listed:
        return "online"
    if status.activity is not None:
        return "provisioning"
    if status.state is State.DORMANT:
        return "command_received" if status.wanted == "up" else "provisioning"
    return _ON_ITS_WAY[status.state]


def shown(row: Mapping[str, Any]) -> str:
    """Return the word that people are shown for a row that has a `status`.

    `per_user` for a server that runs for those who have given values: each of their launches has a word of its own.
    """
    status = row.get("status")
    if status is None:
        return DISABLED
    if status == "awaiting_user_config" and row.get("launches"):
        return PER_USER
    return str(status)
