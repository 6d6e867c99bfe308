"""Who is told of what servers do, as it happens: for metrics and traces."""

from __future__ import annotations

from typing import Literal, Protocol

ExitReason = Literal["ordered", "idle", "exit", "signal", "silent"]
"""Why a process or connection ended: somebody ordered it; nobody needs it; by itself; by a signal that was not ours; we
ended it, as it did not do what it has to."""

InquiryVerdict = Literal["alive", "frozen", "deaf", "away", "unknown"]
"""What was found out about a server that was quiet: it says something; its process is stopped; it says nothing, though
it used to, and does nothing; it cannot be reached; it says nothing, which proves nothing."""
BreakerScope = Literal["server", "tool", "discovery"]
"""What a breaker is about."""


class Observer(Protocol):
    """Is told in the task of an actor: it neither waits nor raises. A `server` may be a launch; times are seconds."""

    def on_start(self, server: str, seconds: float, *, good: bool) -> None:
        """A start is over: the server is ready, or it has failed."""

    def on_restart(self, server: str) -> None:
        """It is started again after a failure."""

    def on_exit(self, server: str, reason: ExitReason) -> None: ...

    def on_reading(self, server: str, seconds: float, *, good: bool) -> None:
        """A reading of its lists is over."""

    def on_inquiry(self, server: str, verdict: InquiryVerdict) -> None:
        """It is known whether it lives, as far as that can be known."""

    def on_refused_by(self, server: str, breaker: BreakerScope) -> None:
        """Something was refused, as a breaker is open."""


class CallTrace(Protocol):
    """The trace that a call is in."""

    def send(self, meta: bytes) -> bytes:
        """The call is sent now, for the first time or again. Return its `_meta` with the context of the trace.

        Both are JSON members without braces.
        """

    def end(self, error: str, code: int = 0) -> None:
        """It is over; `error` is a value of `error.type`, empty for none, `code` that of the answer, if it has one."""


class NoObserver:
    """Implements `Observer` where nobody is told."""

    def on_start(self, server: str, seconds: float, *, good: bool) -> None:
        del server, seconds, good

    def on_restart(self, server: str) -> None:
        del server

    def on_exit(self, server: str, reason: ExitReason) -> None:
        del server, reason

    def on_reading(self, server: str, seconds: float, *, good: bool) -> None:
        del server, seconds, good

    def on_inquiry(self, server: str, verdict: InquiryVerdict) -> None:
        del server, verdict

    def on_refused_by(self, server: str, breaker: BreakerScope) -> None:
        del server, breaker


NO_OBSERVER = NoObserver()
