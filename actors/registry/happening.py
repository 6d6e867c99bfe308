"""What is told in the event feed, and the newest changes of state of each server.

The feed is everybody's: with 200 servers its newest thousand may have none of a server that was started an hour ago. So
who draws the life of one server has a memory of that one, which no other can push out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from actors.catalogue.diff import Change, OfferChange
from actors.catalogue.snapshot import Entry
from actors.catalogue.trust import Standing
from actors.installation import is_available
from actors.instance_status import InstanceChanged
from actors.life.breakers import OpenBreaker
from actors.life.states import RAN, State
from actors.messages import ServerChanged, ServerListed, ServerStatus
from actors.principal import LOCAL, Principal

MAX_WAITING = 500
"""So many tools that wait for approval are named in one event."""
MAX_CHANGES: Final = 200
"""Of one launch: some thirty times awake and asleep again."""
MAX_LAUNCHES: Final = 10_000
"""The one that was met first is forgotten for one more."""
MAX_REASON_CHARS: Final = 200


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the event feed. `time` is unix seconds, `principal` whose call it is about."""

    type: str
    time: float
    server: str | None = None
    revision: int | None = None
    principal: Principal = LOCAL
    data: dict[str, Any] = {}


def state_data(message: ServerChanged, word: str, before: str) -> dict[str, Any]:
    """Return what is told of a server whose users may expect a `word` of it, where they could expect another one."""
    status = message.status
    data: dict[str, Any] = {
        "state": status.state.value,
        "previous": message.previous.value,
        "status": word,
        "previous_status": before,
    }
    if status.pid is not None:
        data["pid"] = status.pid
    if status.disabled:
        data["disabled"] = True
    if message.reason or status.state in (State.FAILED, State.RESPAWNING) or status.down:
        data["reason"] = message.reason or status.reason
    return data


def breaker_changes(before: ServerStatus | None, after: ServerStatus) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield type and data of an event for each breaker that opened, for the first time or again, or has closed."""
    old = {(each.breaker, each.tool): each for each in (before.breakers if before is not None else ())}
    new = {(each.breaker, each.tool): each for each in after.breakers}
    for key, each in new.items():
        if key not in old or old[key].until != each.until:
            yield "breaker_opened", {**_breaker_data(each), "reason": each.reason, "seconds": round(each.seconds, 3)}
    yield from (("breaker_closed", _breaker_data(each)) for key, each in old.items() if key not in new)


def _breaker_data(breaker: OpenBreaker) -> dict[str, Any]:
    return {"breaker": breaker.breaker, **({"tool": breaker.tool} if breaker.tool else {})}


def discovery_data(message: ServerListed) -> dict[str, Any]:
    """Return how a reading of the lists of a server ended, and the seconds that it took."""
    offer = message.offer
    return {"tools": len(offer.tools), "problems": list(offer.problems), "duration_s": message.seconds}


def of_fact(message: ServerListed | InstanceChanged) -> tuple[str, str, dict[str, Any]]:
    """Return type, launch and data of the event that a fact is."""
    if isinstance(message, ServerListed) and message.failure:
        return "discovery_failed", message.server, {"reason": message.failure}
    if isinstance(message, ServerListed):
        return "discovery_completed", message.server, discovery_data(message)
    instance = message.instance
    data = {"instance": instance.number, "state": instance.state.value, "previous": message.previous.value}
    if instance.pid is not None:
        data["pid"] = instance.pid
    return "instance_state", message.server, {**data, **({"reason": message.reason} if message.reason else {})}


def is_usable(status: ServerStatus) -> bool:
    """Say whether the tools of a server can be used. That it lists them proves it, before it says that it is up."""
    return is_available(status) or (status.down is not None and status.state in (State.DISCOVERING, State.READY))


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


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a server became at a `time` in unix seconds, from what, and why, where that was told.

    `status` is what its users may expect, or `disabled`.
    """

    time: float
    state: State
    previous: State
    status: str = ""
    disabled: bool = False
    reason: str = ""

    @property
    def row(self) -> dict[str, object]:
        """The state as a row of `/api/status` has it."""
        return {"state": self.state.value, "status": None if self.disabled else self.status}

    @property
    def is_crash(self) -> bool:
        """Whether it ended unasked."""
        return self.state in (State.RESPAWNING, State.FAILED) and self.previous in RAN

    @property
    def is_wake(self) -> bool:
        return self.state is State.SPAWNING and self.previous is State.DORMANT


class StateChanges:
    """The newest of each launch."""

    def __init__(self) -> None:
        self._of: dict[str, deque[StateChange]] = {}

    def add(self, message: ServerChanged, word: str, time: float) -> None:
        launch, data = message.status.server, state_data(message, word, word)
        change = StateChange(
            time=time,
            state=message.status.state,
            previous=message.previous,
            status=word,
            disabled=message.status.disabled,
            reason=data.get("reason", "")[:MAX_REASON_CHARS],
        )
        if launch not in self._of and len(self._of) >= MAX_LAUNCHES:
            del self._of[next(iter(self._of))]
        self._of.setdefault(launch, deque(maxlen=MAX_CHANGES)).append(change)

    def of(self, launch: str) -> Sequence[StateChange]:
        """Return those of one launch, the oldest first."""
        return tuple(self._of.get(launch, ()))

    def forget(self, launch: str) -> None:
        self._of.pop(launch, None)
