"""How a launch with several instances is doing as one: made of how each of them is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from actors.instance_status import InstanceStatus
from actors.life.breakers import OpenBreaker
from actors.life.states import State
from actors.messages import ServerStatus

_RANKS: Final = {
    state: rank
    for rank, state in enumerate(
        (
            *(State.READY, State.DISCOVERING, State.HANDSHAKING, State.SPAWNING, State.RESPAWNING),
            *(State.DRAINING, State.DORMANT, State.FAILED, State.STOPPED),
        )
    )
}
"""The state of all is the first of these that one of them is in: a call finds that."""
_SUMMED: Final = ("restarts", "in_flight", "calls", "failures", "noise", "strays", "unheard", "tasks")


def whole(
    leader: ServerStatus, others: Sequence[ServerStatus], rows: Sequence[InstanceStatus], waiting: int
) -> ServerStatus:
    """Return the status of a launch: that of the instance that leads, with what all have together.

    Where another one is nearer to serving, state and age are those of that one. `waiting` calls have no instance yet.
    """
    every = [leader, *others]
    first = min(every, key=lambda status: _RANKS[status.state])
    asked = [status.asked_since for status in every if status.asked_since is not None]
    return replace(
        leader,
        state=first.state,
        wanted=first.wanted,
        since=first.since,
        reason=first.reason,
        activity=first.activity,
        next_start=first.next_start,
        retry_at=first.retry_at,
        down=first.down if all(each.down for each in every) else None,
        pid=first.pid if leader.pid is None else leader.pid,
        last_error=next((f"instance {row.number}: {row.last_error}" for row in rows if row.last_error), None),
        last_error_at=next((status.last_error_at for status in every if status.last_error), None),
        requires_reauth=any(status.requires_reauth for status in every),
        one_at_a_time=any(status.one_at_a_time for status in every),
        legacy_session=any(status.legacy_session for status in every),
        asked_since=min(asked, default=None),
        waiting=waiting + sum(row.waiting for row in rows),
        last_sign_at=max((each.last_sign_at for each in every if each.last_sign_at is not None), default=None),
        breakers=_open_everywhere(every),
        instances=tuple(rows),
        **{name: sum(getattr(status, name) for status in every) for name in _SUMMED},
    )


def _open_everywhere(every: Sequence[ServerStatus]) -> tuple[OpenBreaker, ...]:
    """Return the breakers that are open at each instance, as each has its own: the one of each that ends first."""
    first: dict[tuple[str, str], OpenBreaker] = {}
    for each in (each for status in every for each in status.breakers):
        key = each.breaker, each.tool
        first[key] = min(each, first.get(key, each), key=lambda one: one.until)
    open_at = [{(each.breaker, each.tool) for each in status.breakers} for status in every]
    return tuple(each for key, each in first.items() if all(key in keys for keys in open_at))
