"""What the calls of one actor tell the breakers of its launch, and what those tell of them. Pure.

A launch may have two actors, as its session of the legacy era has one of its own; its breakers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from actors.errors import LeftAlone
from actors.life.breaker import Probe, Trial
from actors.life.breakers import BreakerRefusal, Breakers
from actors.life.states import Life, State
from actors.observer import Observer
from actors.server.calls.call import Call
from actors.server.calls.errors import left_alone_error


class CallBreakers:
    """`all` are the breakers of the launch; nobody needs to ask while they are not `troubled`.

    `observer` is told whom they refuse. `launch` is the name that it knows, `server` that of texts.
    """

    def __init__(self, launch: str, server: str, breakers: Breakers, observer: Observer) -> None:
        self.all = breakers
        self._launch = launch
        self._server = server
        self._observer = observer
        self._blames = False
        self._start: Probe | None = None
        self._trials: list[Trial] = []

    def enter(self, life: Life) -> None:
        """Take the state that the server is in: failures while somebody ends it are not its fault."""
        at_fault = life.state is State.DRAINING and bool(life.reason) and not life.barred
        self._blames = life.state in (State.READY, State.RESPAWNING) or at_fault

    # Calls ----------------------------------------------------------------------------------------------------------

    def refuse(self, refusal: BreakerRefusal) -> LeftAlone:
        """Count somebody who is refused, and return the error."""
        self.all.note_refusal(refusal)
        self._observer.on_refused_by(self._launch, refusal.by.breaker)
        return left_alone_error(self._server, refusal)

    def pass_on(self, call: Call, now: float) -> LeftAlone | None:
        """Return why a call that has waited must not be sent; None if it may. Then it may be a probe."""
        refusal = self.all.refusal(call.tool, now, call.reply)
        if refusal is not None:
            return self.refuse(refusal)
        self.all.admit(call.tool, call.reply, now)
        return None

    def refusals(self, waiting: Sequence[Call], now: float) -> Iterator[tuple[Call, LeftAlone]]:
        """Yield the calls that need not wait any more, as a breaker has opened, and why."""
        for call in waiting:
            if (refusal := self.all.refusal(call.tool, now, call.reply)) is not None:
                yield call, self.refuse(refusal)

    def blame(self, calls: Sequence[Call], reason: str, now: float) -> None:
        """One thing has failed, and these calls with it."""
        if self._blames:
            self.all.fail([(call.tool, call.reply) for call in calls], reason, now)

    # Other probes ---------------------------------------------------------------------------------------------------

    def begin_start(self, probe: Probe, now: float) -> None:
        """Somebody who may pass wants the server up."""
        self._start = probe
        self.all.admit("", probe, now)

    def end_start(self, now: float, failure: str = "") -> None:
        """The server is up, or could not be started because of a `failure`."""
        if self._start is not None:
            probe, self._start = self._start, None
            self.all.prove(probe, now, failure)

    def begin(self, now: float, *, reads: bool = False) -> Trial:
        """The daemon asks the server for something by itself: for a sign of life, or for its lists."""
        trial = Trial()
        if self.all.troubled:
            self.all.admit("", trial, now, reads=reads)
            self._trials.append(trial)
        return trial

    def end(self, trial: Trial, now: float, failure: str = "", *, reads: bool = False) -> None:
        """What began is answered, or not, because of a `failure`. What was dropped before changes nothing."""
        if trial.settled:
            return
        (self.all.read if reads else self.all.prove)(trial, now, failure)
        self.give_back(trial)

    def give_back(self, trial: Trial) -> None:
        """What began says nothing, either way."""
        trial.settled = True
        if trial in self._trials:
            self._trials.remove(trial)

    def drop(self) -> None:
        """The process is gone: nothing that was asked of it is answered any more."""
        for trial in self._trials:
            trial.settled = True
        self._trials.clear()
