"""What is told in the event feed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from actors.catalogue.diff import Change, OfferChange
from actors.catalogue.snapshot import Entry
from actors.catalogue.trust import Standing
from actors.life.states import State
from actors.messages import ServerChanged, ServerListed, ServerStatus

MAX_WAITING = 500
"""So many tools that wait for approval are named in one event."""


_AVAILABLE = {State.READY: True, State.DORMANT: True, State.FAILED: False}


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the event feed. `time` is unix seconds."""

    type: str
    time: float
    server: str | None = None
    revision: int | None = None
    data: dict[str, Any] = {}


def state_data(message: ServerChanged) -> dict[str, Any]:
    status = message.status
    data: dict[str, Any] = {"state": status.state.value, "previous": message.previous.value}
    data["incarnation"] = status.incarnation
    if status.pid is not None:
        data["pid"] = status.pid
    if status.disabled:
        data["disabled"] = True
    if message.reason or status.state in (State.FAILED, State.RESPAWNING):
        data["reason"] = message.reason or status.last_error or ""
    return data


def discovery_data(message: ServerListed) -> dict[str, Any]:
    """Return how a reading of the lists of a server ended, and the seconds that it took."""
    offer = message.offer
    return {"tools": len(offer.tools), "problems": list(offer.problems), "duration_s": message.seconds}


def is_available(status: ServerStatus) -> bool | None:
    """Say whether the tools of a server can be used; None: its state says nothing about that."""
    return False if status.disabled else _AVAILABLE.get(status.state)


def availability(entry: Entry, launch: str, reason: str) -> tuple[str, str, dict[str, Any]]:
    """Return type, launch and data of the event that the tools of a launch can be used again, or not any more."""
    data = {"tools": len(entry.tools), **({"reason": reason} if reason else {})}
    return "server_back" if entry.available else "server_away", launch, data


def change_data(change: OfferChange) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield type and data of an event for each list that differs."""
    for kind in ("tools", "resources", "prompts"):
        part: Change = getattr(change, kind)
        if part:
            yield f"{kind}_changed", {name: value for name, value in msgspec.to_builtins(part).items() if value}


def waiting_data(standing: Standing) -> dict[str, Any]:
    """Return which tools wait for approval now, and whether clients see them meanwhile."""
    waiting = dict([*standing.waiting.items()][:MAX_WAITING])
    return {"waiting": len(standing.waiting), "held": standing.holds, "tools": waiting}
