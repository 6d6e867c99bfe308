"""What becomes of a server that failed: when it is tried again, by itself or on demand, and what callers are told.

The restart log decides; the timers of back-off and retry say when. No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping

import trio

from actors.command_line import command
from actors.errors import (
    LoginRequired,
    ServerGaveUp,
    ServerStarting,
    ShuttingDown,
    Starved,
    SupervisorError,
    UnknownServer,
)
from actors.kit.timers import Timers
from actors.life.lifecycle import AskPolicy
from actors.life.policy import RestartLog
from actors.life.states import Down, Life, State, Timer
from actors.messages import Activity
from actors.server.calls.calls import Calls
from actors.server.calls.errors import Delay, down_error, log_hint, when_again
from actors.server.inbox import Seat
from actors.server.operators.orders import Handover, Orders

STARTING_RETRY_S = 5.0
ASK_AGAIN_S = 15.0
"""A call tries a server that is away at once, unless that was done such a short time ago."""
DEMAND_S = 5.0
"""A call brings the next start of a server that failed forward, to so long after the failure: it may be mended."""
WORTH_WAITING_S = 2.0
"""Calls wait for a server that is away if it is tried again so soon: it may only be restarted."""
LOOPING_S = 10.0
"""Calls do not wait for a server that fails again and again, once it is left alone for longer than this."""
DELAYS: Mapping[Activity, tuple[str, float]] = {
    "waiting for its turn": (": other servers are started or installed before it", 10.0),
    "waiting for room": (": the machine has too little memory, or too few descriptors, to start it", 5.0),
    "installing": (": it is being installed, which can take minutes", 30.0),
}
"""What callers are told, and after how many seconds to ask again."""


class Recovery:
    """The recovery of one server."""

    def __init__(
        self,
        server: str,
        restarts: RestartLog,
        timers: Timers[Timer],
        calls: Calls,
        orders: Orders,
        handover: Handover,
        seat: Seat,
    ) -> None:
        self._server = server
        self._seat = seat
        self._restarts = restarts
        self._timers = timers
        self._calls = calls
        self._orders = orders
        self._handover = handover
        self._left_alone_until = 0.0
        self._failing = False
        self.down: Down | None = None
        """That it failed, and is not back. A single failure is none yet: a call waits for the start that follows."""

    def fail(self, failure: AskPolicy, delay_s: float | None) -> None:
        """Note that it failed, and is tried again in `delay_s`, or never by itself."""
        if self._failing or delay_s is None or delay_s > WORTH_WAITING_S:
            # A server that was given up stays so while it is probed, and one that is away while it is tried: only a
            # start that succeeds changes what users may expect.
            given_up = self.down == "permanently_failed" or delay_s is None
            self.down = "permanently_failed" if given_up else "error" if failure.away_s is None else "offline"
        self._failing = True

    def give_up(self) -> None:
        self.down = "permanently_failed"

    def recover(self) -> None:
        """Note that it is up, or sleeps: a call wakes it."""
        self.down, self._failing = None, False

    def delay_s(self, failure: AskPolicy) -> float | None:
        """Return in how many seconds the next process may be started, or None to give up."""
        if failure.scarce:
            return self._restarts.postpone()
        if failure.away_s is None:
            self._left_alone_until = trio.current_time() + DEMAND_S
            return self._restarts.admit(trio.current_time())
        self._left_alone_until = trio.current_time() + max(failure.away_s, ASK_AGAIN_S)
        return max(failure.away_s, self._restarts.absent())

    def may_hasten(self, life: Life) -> bool:
        """Return whether a call may try a server that failed, or is away, before its time."""
        failed = life.state is State.RESPAWNING and not life.scarce
        return failed and trio.current_time() >= self._left_alone_until

    def hasten(self, life: Life) -> None:
        """Somebody waits for a server that failed: start it as soon as that may be."""
        if life.state is State.RESPAWNING and life.away_s is None and not life.scarce:
            self._timers.start_by(Timer.BACKOFF, self._left_alone_until)

    def next_start_s(self) -> float | None:
        """Return in how many seconds the server is tried again by itself, None if it is not."""
        remaining_s = self._timers.remaining_s(Timer.BACKOFF)
        return remaining_s if remaining_s is not None else self._timers.remaining_s(Timer.RETRY)

    def call_retry_s(self, life: Life) -> float | None:
        """Return in how many seconds a call may find the server up again; see `ServerStatus.retry_at`."""
        left, now = self.next_start_s(), trio.current_time()
        if life.barred:
            return None
        if life.state is State.FAILED:
            due = self._restarts.probe_due(now)
            return due if left is None else min(left, due)
        if life.state is not State.RESPAWNING or left is None or life.scarce:
            return left
        return min(left, max(0.0, self._left_alone_until - now))

    def refusal(self, life: Life, *, operator: bool = False) -> SupervisorError | None:
        """Why nothing can be asked of this server now, None if it can. Grants the probe that is due.

        An operator may always ask, unless it is being stopped.
        """
        if life.state is State.FAILED and not operator and self._restarts.probe(trio.current_time()) > 0:
            return self.unavailable_error(life)
        if life.ending:
            return self._leaving_error("is being stopped")
        return None

    def refusal_by_breaker(self, life: Life, tool: str = "", *, reads: bool = False) -> SupervisorError | None:
        """Why this is left alone, see `Breakers.refusal`; None if it is not. To be asked before a probe is granted.

        Who has to wait for longer than the breaker says is told that.
        """
        breakers = self._calls.breakers
        refusal = breakers.all.refusal(tool, trio.current_time(), reads=reads)
        if refusal is None:
            return None
        later = (self.call_retry_s(life) or 0.0) > refusal.wait_s
        if life.ending:
            return self._leaving_error("is being stopped")
        if life.state is State.FAILED and (life.barred or later):
            return self.unavailable_error(life)
        if life.state is State.RESPAWNING and later:
            return self.starting_error(life)
        return breakers.refuse(refusal)

    def refusal_of_call(self, life: Life, deadline: float) -> SupervisorError | None:
        """Why a call with this deadline, a moment of the trio clock, need not wait for the server; None if it may."""
        if (refusal := self.refusal(life)) is not None or life.state is not State.RESPAWNING or self.may_hasten(life):
            return refusal
        # A call brings the start of one that failed forward; one that is away keeps its time.
        left = self.call_retry_s(life) if life.away_s is None else self.next_start_s()
        waits = not self._seat.replaceable
        if left is None or (waits and trio.current_time() + left < deadline):
            return None
        return self.starting_error(life)

    def delay(self, life: Life, activity: Activity | None) -> Delay:
        """Return why a server is not ready yet, and when to ask again."""
        wait = self.call_retry_s(life)
        if activity is not None:
            return Delay(*DELAYS[activity], scarce=activity == "waiting for room")
        if wait is None:
            return Delay("", STARTING_RETRY_S)
        return Delay(f": {life.reason}; {when_again(wait, self.next_start_s())}", wait, life.scarce)

    def fail_waiting(self, life: Life, reason: str) -> None:
        def error() -> SupervisorError:
            if life.over:
                return self._leaving_error("was stopped")
            if life.state is State.FAILED:
                return self.unavailable_error(life)
            if life.state is State.RESPAWNING:
                return self.starting_error(life)
            return ServerGaveUp(f"server {self._server!r} is not available: {reason}", server=self._server)

        self._calls.fail_waiting(error)
        self._orders.fail_wakers(error)

    def _leaving_error(self, what: str) -> ShuttingDown | UnknownServer:
        if (departure := self._handover.departure) is not None:
            return UnknownServer(f"server {self._server!r} is gone: {departure.reason}", server=self._server)
        return ShuttingDown(f"server {self._server!r} {what}", server=self._server)

    def starting_error(self, life: Life) -> ServerStarting | Starved:
        wait, left = self.call_retry_s(life) or 0.0, self.next_start_s()
        if life.scarce:
            text = f"server {self._server!r} cannot be started now: {life.reason}; {when_again(wait, left)}"
            return Starved(text, server=self._server, outcome="not_sent", retry_after_s=wait)
        return down_error(self._server, life.reason, wait, left, away=life.away_s is not None)

    def unavailable_error(self, life: Life) -> ServerGaveUp | LoginRequired:
        reason = life.reason
        if life.barred:
            return LoginRequired(f"server {self._server!r} wants a login: {reason}", server=self._server)
        wait = self.call_retry_s(life) or 0.0
        text = (
            f"server {self._server!r} is not available: {reason}; {when_again(wait, self.next_start_s())}, "
            f"`{command('restart', self._server)}` at once; {log_hint(self._server)}"
        )
        return ServerGaveUp(text, server=self._server, retry_after_s=wait)
