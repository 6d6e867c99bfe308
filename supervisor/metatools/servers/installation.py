"""How a server is doing for each of its users, in the twelve words of platforms that show it to them. Pure.

A state says what a process does; one of these says what its user may expect. `online` is a server whose tools are
found, and no other one is: one that sleeps, or is started again, is `online` as long as a call wakes it.
"""

from __future__ import annotations

from typing import Literal

from actors.catalogue.snapshot import Entry
from actors.life.states import State
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
_ON_ITS_WAY: dict[State, InstallationStatus] = {
    State.SPAWNING: "connecting",
    State.HANDSHAKING: "connecting",
    State.DISCOVERING: "discovering_tools",
    State.READY: "syncing_tools",
    State.DRAINING: "restarting",
    State.STOPPED: "offline",
}


def installation_status(status: ServerStatus | None, entry: Entry | None) -> InstallationStatus | None:
    """Return the word for a server of which this was reported, None for nothing yet, and this is listed, if anything.

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
    if entry is not None and entry.available:
        return "online"
    if status.state is State.FAILED:
        return _failure_status(status)
    if status.state is State.RESPAWNING:
        return "offline" if status.away else "restarting"
    if status.activity is not None:
        return "provisioning"
    if status.state is State.DORMANT:
        return "command_received" if status.wanted == "up" else "provisioning"
    return _ON_ITS_WAY[status.state]


def _failure_status(status: ServerStatus) -> InstallationStatus:
    """Return whether it comes back by itself, or by a call: then it is only away, or in trouble."""
    if status.wanted == "stopped" or (status.next_start is None and status.retry_at is None):
        return "permanently_failed"
    return "offline" if status.away else "error"
