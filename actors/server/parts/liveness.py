"""Whether a server that is up still lives: who is asked for a sign of life, and when; whose calls are held meanwhile.

- A server that is *quiet* is asked now and then. What says anything by itself is not, nor what works on calls.
- A call to a server with processes here that was quiet for more than `QUIET_S` is held until there is a sign of life:
  for one answer, mostly a millisecond. Only the first call after a pause pays that. A call to a server that is found
  frozen, or deaf, was so never sent, and goes to the next process. One to a server that does not answer such questions
  waits for one look at its process instead.
- While calls are in flight and nothing is heard, the process is looked at now and then: whether it is frozen.
- A server that left a call unanswered, and said nothing else meanwhile, has `unresponsive_s` for a sign of life.

What is a sign, and what proves what, says `Inquiry`. A server that has not answered its last question is not asked a
further one, so one that never answers is asked once. `_inquire` and `_conclude` are where an inquiry begins and ends.
"""

from __future__ import annotations

import math
from typing import Final, Literal
from zlib import crc32

import msgspec
import trio

from actors.facts import InquiryEnded
from actors.life.breakers import Trial
from actors.life.lifecycle import Away, Violated
from actors.life.states import Timer
from actors.server.inbox import WorkSeen
from actors.server.incarnation import Link
from actors.server.parts.context import ServerContext
from actors.server.parts.processes import Processes
from actors.transport.base import Work

Verdict = Literal["alive", "frozen", "deaf", "unknown"]
"""What was found. `unknown`: it says nothing, and that proves nothing."""

LOOKS: Final = 4
"""How many looks there are within the patience. One comes before them, and one follows for what arrived at the end."""
SLOT_S: Final = 5.0
"""Servers are asked at moments so far apart, those of one moment together: the daemon wakes up once for all of them."""
QUIET_S = 5.0
"""Nobody knows of a server that said nothing for so long whether it lives."""
SOON_S = 0.2
"""How soon after a question the first look is, and the second one at a process that was frozen at the first."""
LEAST_S = 1.0
"""No process is looked at more often because calls are in flight."""
FROZEN = "it is frozen (stopped by a signal)"


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
    """One inquiry into whether a server lives that had said something `said` times when it began. Pure.

    Any message that makes sense is a sign of life. Nothing follows from time alone: timers fire late, and an answer may
    be here and unread, in a pipe, with the reader, in a thread that decodes. So no moments are compared. Patience is a
    number of looks, and one counts if everything that had arrived by the look before is read. While the daemon stands
    still there are no looks, so a standstill costs a server one of them at most.

    What a server is replaced for without its having left a call unanswered must be certain:

    - *Frozen*: its process is stopped, at two looks in a row, and did nothing in between. It is not asked for that.
    - *Deaf*: it was asked and says nothing, though this process of it has answered before; and at no look was there a
      call that it may be busy with, nor had its processes done anything since the look before.

    Many servers never answer a ping, and one that works on something may answer nothing for as long as it likes.

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


class Liveness:
    """The watch over one server. `attentive`: it has calls, or had some just now, so its process is looked at often."""

    def __init__(self, context: ServerContext, processes: Processes) -> None:
        settings = context.server.settings
        self._patience_s = settings.unresponsive_s
        self._interval_s = settings.watch_interval_s
        self._often_s = max(LEAST_S, settings.unresponsive_s / 2)
        self._local = context.server.transport.kind == "stdio"
        self._share = crc32(context.server.name.encode()) / 2**32
        self._context = context
        self._breakers = context.breakers
        self._timers = context.timers
        self._course = context.course
        self._calls = context.calls
        self._processes = processes
        self._inquiry: Inquiry | None = None
        self._trial = Trial()
        self._looking = False
        self._asked_in = 0
        self._turn_at = self._looked_at = self._left_alone_until = -math.inf
        self.attentive = True

    @property
    def _watches_processes(self) -> bool:
        return self._local and self._interval_s > 0

    # Occasions ------------------------------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """A process is ready: watch it from now on."""
        self._inquiry, self._looking, self._turn_at, self._looked_at = None, False, now, now
        self.attentive = not self._watches_processes
        if self._interval_s > 0:
            self._timers.start(Timer.WATCH, self._due(now) - now)

    def attend(self, link: Link, now: float) -> None:
        """Calls are about to be sent after a pause, in calls or in signs of life: hold them where that is a doubt."""
        if not self._watches_processes:
            return
        if not self.attentive:
            self.attentive = True
            self._timers.start(Timer.WATCH, next_multiple(now, self._often_s) - now)
        if self._calls.in_flight or now - max(link.heard, self._looked_at) <= QUIET_S:
            return
        if self._inquiry is not None and link.said > self._inquiry.said:
            self._conclude(link, "alive")
        if self._inquiry is None:
            self._inquire(link)
            self._calls.window.doubt()
        elif self._looking or self._inquiry.proven or self._inquiry.frozen:
            self._calls.window.doubt()

    def suspect(self) -> None:
        """A call timed out in silence, or found nobody: ask for a sign of life, unless that was done."""
        link = self._processes.link
        if link is None or not self._course.life.serving:
            return
        if self._inquiry is not None and self._inquiry.asked and link.talk.awaits_life:
            self._inquiry.suspect()
        else:
            self._inquire(link, suspected=True)
        self._processes.flush()

    def leave_alone(self, seconds: float) -> None:
        """The server asks not to be asked anything for so long."""
        self._left_alone_until = max(self._left_alone_until, trio.current_time() + seconds)

    def on_unreachable(self) -> None:
        """A question found nobody."""
        if self._inquiry is not None and self._inquiry.asked:
            self._context.shared.facts.note(InquiryEnded(launch=self._context.server.name, verdict="away"))
            self._breakers.give_back(self._trial)
        self._inquiry = None

    def on_timer(self, timer: Timer) -> None:
        """Go on when it is time to; whoever calls sends what waits afterwards."""
        link = self._processes.link
        if link is None:
            return
        if timer is Timer.WATCH:
            self._watch(link, trio.current_time())
        elif self._inquiry is not None and link.said > self._inquiry.said:
            self._conclude(link, "alive")
        elif self._inquiry is not None:
            self._look(link)

    # The watch ------------------------------------------------------------------------------------------------------

    def _watch(self, link: Link, now: float) -> None:
        calls, due = self._calls, now >= self._due(link.heard)
        if due:
            self._turn_at = now
        if self._inquiry is None and self._local and calls.in_flight and now - link.heard >= self._often_s:
            self._inquire(link, asks=False)
        elif self._inquiry is None and due and not calls.open:
            self._inquire(link)
        moment = self._due(link.heard)
        if self._local:
            self.attentive = calls.open > 0 or now - calls.last_activity < QUIET_S
            if self.attentive:
                moment = next_multiple(now, self._often_s)
        self._timers.start(Timer.WATCH, max(0.0, moment - now))

    def _due(self, heard: float) -> float:
        """Return when the server is to be asked next, as things are."""
        after = max(heard, self._turn_at, self._left_alone_until - self._interval_s / 2)
        return next_turn(after, self._interval_s, self._share)

    # An inquiry -----------------------------------------------------------------------------------------------------

    def _inquire(self, link: Link, *, asks: bool = True, suspected: bool = False) -> None:
        """Begin an inquiry, if need be with a question; it is said with the next `flush`."""
        proven = not link.talk.awaits_life and (link.talk.era == "modern" or self._asked_in == link.number)
        asked = asks and link.talk.ask_for_life(again=suspected)
        if asked:
            self._asked_in = link.number
            self._trial = self._breakers.begin(trio.current_time())
        self._inquiry = inquiry = Inquiry(
            link.said,
            link.counters.messages_received,
            asked=asked,
            proven=asked and proven,
            local=self._local,
            suspected=suspected,
        )
        if inquiry.proven or suspected or not self._local:
            self._timers.start(Timer.SILENCE, SOON_S)
        else:
            self._look(link)

    def _look(self, link: Link) -> None:
        if not self._looking:
            self._looking = True
            self._context.start_soon(self._look_at_work, link)

    async def _look_at_work(self, link: Link) -> None:
        connection = link.process.connection
        work = await connection.work() if connection is not None else None
        await self._context.post.tell(WorkSeen(link.number, work))

    def take(self, seen: WorkSeen, link: Link) -> None:
        """Go on after a look at what the processes of the server have done."""
        self._looking = False
        if not self._course.life.serving:
            self._inquiry = None
        if (inquiry := self._inquiry) is None:
            return
        now = trio.current_time()
        left = link.talk.exchanges.left_since(link.heard)
        busy = self._calls.in_flight > 0 or link.talk.listing or left
        received = link.counters.messages_received
        verdict = inquiry.look(Seen(said=link.said, read=link.read, received=received, busy=busy, work=seen.work))
        if verdict is not None:
            self._conclude(link, verdict)
            return
        if not (inquiry.proven or inquiry.frozen):
            self._release(now)
        self._timers.start(Timer.SILENCE, SOON_S if inquiry.frozen else self._patience_s / LOOKS)

    def _conclude(self, link: Link, verdict: Verdict) -> None:
        """End the inquiry: calls that were held go to the server, or its next process."""
        inquiry, self._inquiry = self._inquiry, None
        assert inquiry is not None
        self._timers.cancel(Timer.SILENCE)
        if inquiry.asked or verdict == "frozen":
            self._context.shared.facts.note(InquiryEnded(launch=self._context.server.name, verdict=verdict))
        now, silence = trio.current_time(), f"it answers nothing, not even a ping within {self._patience_s:g} s"
        if verdict == "unknown":
            self._breakers.give_back(self._trial)
        else:
            self._breakers.end(self._trial, now, {"frozen": FROZEN, "deaf": silence}.get(verdict, ""))
        match verdict:
            case "frozen":
                self._course.step(Violated(link.number, FROZEN))
            case "deaf" if self._local or inquiry.suspected:
                self._course.step(Violated(link.number, silence))
            case "deaf":
                self._course.step(Away(link.number, self._context.record.blame(silence)))
            case _:
                self._release(link.heard if verdict == "alive" else now)

    def _release(self, seen_at: float) -> None:
        self._looked_at = seen_at
        if self._local:  # what a remote one may have lost waits for a message of it
            self._calls.window.trust()
