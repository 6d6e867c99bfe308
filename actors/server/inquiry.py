"""Whether a server lives that says nothing: what is seen of it, look by look, and what follows from that. Pure.

Any message that makes sense is a sign of life. Nothing follows from time alone: timers fire late, and an answer may be
here and unread, in a pipe, with the reader, in a thread that decodes. So no moments are compared. Patience is a number
of looks, and one counts if everything that had arrived by the look before is read. While the daemon stands still there
are no looks, so a standstill costs a server one of them at most.

What a server is replaced for without its having left a call unanswered must be certain:

- *Frozen*: its process is stopped, at two looks in a row, and did nothing in between. It is not asked for that.
- *Deaf*: it was asked and says nothing, though this process of it has answered before; and at no look was there a call
  that it may be busy with, nor had its processes done anything since the look before.

Many servers never answer a ping, and one that works on something may answer nothing for as long as it likes.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec

from actors.transport.base import Work

Verdict = Literal["alive", "frozen", "deaf", "unknown"]
"""What was found. `unknown`: it says nothing, and that proves nothing."""

LOOKS: Final = 4
"""How many looks there are within the patience. One comes before them, and one follows for what arrived at the end."""
SLOT_S: Final = 5.0
"""Servers are asked at moments so far apart, those of one moment together: the daemon wakes up once for all of them."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What is seen of a server at one look.

    `said` counts its messages that made sense, `read` all of them, `received` also those that wait to be read. `busy`:
    it may work on a call. `work`: what its processes have done so far; None where nobody can tell.
    """

    said: int
    read: int
    received: int
    busy: bool = False
    work: Work | None = None


class Inquiry:
    """One inquiry into whether a server lives that had said something `said` times when it began.

    `asked`: it was asked for a sign of life; else only its processes are looked at. `proven`: its present process has
    answered such a question before. `suspected`: it has left a call unanswered and said nothing else, so that it is
    deaf if it does not answer, whatever it does. `local`: it has processes here.
    """

    def __init__(
        self, said: int, received: int, *, asked: bool, proven: bool, local: bool, suspected: bool = False
    ) -> None:
        self.said = said
        self.asked = asked
        self.proven = proven
        self.suspected = suspected
        self._local = local
        self._received = received
        self._work: Work | None = None
        self._looks = LOOKS + 1
        self._may_work = False

    @property
    def frozen(self) -> bool:
        """Whether its process was stopped at the last look."""
        return self._work is not None and self._work.frozen

    def suspect(self) -> None:
        """It has left a call unanswered: it has its whole time from now on."""
        self.suspected, self._looks = True, LOOKS + 1

    def look(self, seen: Seen) -> Verdict | None:
        """Take what is seen now; return what follows, None if that is not known before another look."""
        if seen.said > self.said:
            return "alive"
        read, self._received = seen.read >= self._received, seen.received
        before, self._work = self._work, seen.work
        still = before is not None and seen.work is not None and seen.work.still_since(before)
        if self.frozen and before is not None and before.frozen and still and read:
            return "frozen"
        self._may_work |= seen.busy or (self._local and (seen.work is None or (before is not None and not still)))
        self._looks -= read
        return None if self._looks >= 0 and (self.asked or self.frozen) else self._judge()

    def _judge(self) -> Verdict:
        return "deaf" if self.suspected or (self.proven and not self._may_work) else "unknown"


def next_turn(after: float, interval_s: float, share: float) -> float:
    """Return when a server is asked next that was heard, or asked, at `after`: half an interval to a whole one later.

    `share`, from 0 to less than 1, is its place among all servers: these are spread evenly over moments that are
    `SLOT_S` apart, or more.
    """
    half_s = interval_s / 2
    slots = max(1, int(half_s // SLOT_S))
    phase = half_s / slots * int(share * slots)
    return math.floor((after + interval_s - phase) / half_s) * half_s + phase


def next_multiple(after: float, step_s: float) -> float:
    """Return the first whole multiple of `step_s` after a moment."""
    return (math.floor(after / step_s) + 1) * step_s
