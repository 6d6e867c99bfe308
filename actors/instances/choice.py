"""Which instance of a launch a call goes to, and whether another one is started for it. Pure.

1. One that is up and has no call open. Of several the first: so those behind it may fall asleep.
2. If all that are up are busy, another one is started, as long as no more come than calls wait. The call waits for
   whichever is free first: it was not slower to wait for one that is busy.
3. If none can come, or the call has waited for long enough, the one with the fewest calls open.
4. If none is up, but some come, the call waits. If none comes, one is started, the leader first. Of processes that were
   never up no other one is tried: equal processes fail equally.
5. If none can be started, the leader has it: as the only one it would know how long to wait, or why not.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Candidate(msgspec.Struct, frozen=True):
    """One instance as a call finds it. `open`: calls that it has, in flight or waiting.

    `coming`: it is on its way up. `startable`: it rests, and may be tried now. `fit`: it may be tried before another
    one is up, as it was up itself or has an address of its own.
    """

    number: int
    up: bool = False
    coming: bool = False
    startable: bool = False
    fit: bool = False
    open: int = 0


class InstanceChoice(msgspec.Struct, frozen=True):
    """`to` whom a call goes now; None: it waits. `start` is who is to be started."""

    to: int | None = None
    start: int | None = None


def choose(candidates: Sequence[Candidate], leader: int, waiting: int = 1, *, patient: bool = True) -> InstanceChoice:
    """Return what becomes of the oldest of `waiting` calls. Not `patient`: it has waited for long enough.

    `candidates` are in the order of their numbers.
    """
    up = [each for each in candidates if each.up]
    least = min(up, key=_calls_open, default=None)
    if least is not None and (not least.open or not patient):
        return InstanceChoice(to=least.number)
    coming = sum(each.coming for each in candidates)
    startable = [each.number for each in candidates if each.startable and (up or each.fit or each.number == leader)]
    if not up and coming:
        return InstanceChoice()
    if startable and coming < waiting:
        return InstanceChoice(start=leader if leader in startable else startable[0])
    if coming:
        return InstanceChoice()
    return InstanceChoice(to=leader if least is None else least.number)


def _calls_open(candidate: Candidate) -> int:
    return candidate.open
