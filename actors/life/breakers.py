"""The breakers of one launch: of the server as a whole, of the reading of its lists, and of single tools. Pure.

What starts a server is the business of its restart policy (`policy.py`); what is said to one that was started is that
of its breakers. A failure is what was sent and has no answer, or found nobody: a timeout, a connection or process that
was lost, what is no MCP. Whatever a server answers is none, an error neither.

- *Server*: after some failures in a row, or when too many of its recent calls have failed.
- *Tool*: after fewer failures in a row of calls of that tool. One that fails as a probe is known to be bad, which says
  nothing of its server.
- *Discovery*: after some readings of the lists in a row that did not come to their end.

The end of a process is one failure of its server, however many calls it took with it, and one of each of their tools.
So is what takes several calls of a remote server that were under way together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import msgspec

from actors.life.breaker import Breaker, Probe
from actors.observer import BreakerScope

SLOTS: Final = 12
"""In so many parts the time is cut whose calls count; the oldest part is forgotten as a whole."""


class RecentCalls:
    """How many calls succeeded and failed within the last `window_s` seconds, to a twelfth of that."""

    def __init__(self, window_s: float) -> None:
        self._slot_s = window_s / SLOTS
        self._ends = 0.0
        self._good = [0] * SLOTS
        self._bad = [0] * SLOTS

    def succeed(self, now: float) -> None:
        if now >= self._ends:
            self._turn(now)
        self._good[-1] += 1

    def fail(self, now: float) -> tuple[int, int]:
        """Count a failure; return how many failed, of how many."""
        if now >= self._ends:
            self._turn(now)
        self._bad[-1] += 1
        failed = sum(self._bad)
        return failed, failed + sum(self._good)

    def clear(self) -> None:
        self._good, self._bad = [0] * SLOTS, [0] * SLOTS

    def _turn(self, now: float) -> None:
        number = int(now // self._slot_s)
        steps = min(SLOTS, number + 1 - round(self._ends / self._slot_s))
        self._good = [*self._good[steps:], *[0] * steps]
        self._bad = [*self._bad[steps:], *[0] * steps]
        self._ends = (number + 1) * self._slot_s


class BreakerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When the breakers of one launch open, and for how long; each as `docs/reference/servers.md` has it."""

    breaker: bool = True
    breaker_failures: int = 5
    breaker_percent: float = 50.0
    breaker_min_calls: int = 10
    breaker_window_s: float = 60.0
    breaker_open_s: float = 30.0
    breaker_max_open_s: float = 300.0
    breaker_tool_failures: int = 3
    breaker_max_tools: int = 256
    breaker_discovery_failures: int = 2
    breaker_discovery_open_s: float = 60.0


class OpenBreaker(msgspec.Struct, frozen=True, kw_only=True):
    """A breaker that is open, or tried. `until` is a moment of the trio clock: then one probe is let through.

    It was opened for `seconds` after so many `failures` in a row, the last one for a `reason` that may reach clients,
    and has `refused` so many calls and orders since.
    """

    breaker: BreakerScope
    tool: str = ""
    until: float
    seconds: float
    failures: int
    reason: str
    refused: int = 0


class BreakerRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing is let through now, by the breaker that says so for the longest time: `wait_s` seconds."""

    by: OpenBreaker
    wait_s: float


class TellBreaker(Protocol):
    """Told of a breaker that has opened, or was open and is closed again."""

    def __call__(self, breaker: OpenBreaker, *, opened: bool) -> None: ...


def _tell_nobody(breaker: OpenBreaker, *, opened: bool) -> None:
    del breaker, opened


class Breakers:
    """All breakers of one launch. `tell` is told of each that opened, or has closed again.

    `troubled`: one of them is not closed; as long as none is, nobody needs to ask before a call.
    """

    def __init__(
        self,
        policy: BreakerPolicy,
        jitter: Callable[[], float],
        tell: TellBreaker | None = None,
    ) -> None:
        self._policy = policy
        self._jitter = jitter
        self._tell = tell or _tell_nobody
        self._server = self._make(policy.breaker_failures)
        self._discovery = Breaker(
            policy.breaker_discovery_failures, policy.breaker_discovery_open_s, policy.breaker_max_open_s, jitter
        )
        self._tools: dict[str, Breaker] = {}
        self._recent = RecentCalls(policy.breaker_window_s)
        self._calm = True
        self.troubled = False

    def _make(self, failures: int) -> Breaker:
        policy = self._policy
        return Breaker(failures, policy.breaker_open_s, policy.breaker_max_open_s, self._jitter)

    # Who may pass ---------------------------------------------------------------------------------------------------

    def refusal(
        self, tool: str, now: float, probe: Probe | None = None, *, reads: bool = False
    ) -> BreakerRefusal | None:
        """Return why a call of a tool may not pass, or anything else about the server, with an empty name.

        None if it may. `reads`: it needs the lists of the server to be read.
        """
        waits = [
            (wait_s, scope, name, breaker)
            for scope, name, breaker in self._breakers_of(tool, reads=reads)
            if (wait_s := breaker.wait_s(now, probe)) is not None
        ]
        if not waits:
            return None
        wait_s, scope, name, breaker = max(waits, key=lambda each: each[0])
        return BreakerRefusal(by=_row(scope, name, breaker), wait_s=wait_s)

    def refusal_to_read(self, now: float) -> BreakerRefusal | None:
        """Return why the daemon should not read the lists by itself; None if it may."""
        wait_s = self._discovery.wait_s(now)
        return None if wait_s is None else BreakerRefusal(by=_row("discovery", "", self._discovery), wait_s=wait_s)

    def admit(self, tool: str, probe: Probe, now: float, *, reads: bool = False) -> None:
        """Let something through that `refusal` does not refuse: it may become a probe."""
        for _, _, breaker in self._breakers_of(tool, reads=reads):
            breaker.admit(probe, now)

    def note_refusal(self, refusal: BreakerRefusal) -> None:
        """Count somebody who was refused."""
        breaker = self._find(refusal.by)
        if breaker is not None:
            breaker.refused += 1

    def _find(self, row: OpenBreaker) -> Breaker | None:
        return {"server": self._server, "discovery": self._discovery}.get(row.breaker) or self._tools.get(row.tool)

    def _breakers_of(self, tool: str, *, reads: bool) -> Iterator[tuple[BreakerScope, str, Breaker]]:
        yield "server", "", self._server
        if tool in self._tools:
            yield "tool", tool, self._tools[tool]
        if reads:
            yield "discovery", "", self._discovery

    # What became of it ----------------------------------------------------------------------------------------------

    def succeed(self, tool: str, probe: Probe, now: float) -> None:
        """Something was answered: a call of a tool, or with an empty name anything else."""
        self._recent.succeed(now)
        if not self._calm:  # else there is nothing to forgive
            self._forgive(tool, probe, now)

    def _forgive(self, tool: str, probe: Probe, now: float) -> None:
        before = _row("server", "", self._server)
        if self._server.succeed(probe, now):
            self._recent.clear()
            self._settle(before, opened=False)
        if (breaker := self._tools.get(tool)) is not None:
            before = _row("tool", tool, breaker)
            if breaker.succeed(probe, now):
                self._settle(before, opened=False)
            if breaker.fresh:
                del self._tools[tool]
        self._calm = self._server.fresh and not self._tools

    def fail(self, calls: Sequence[tuple[str, Probe]], reason: str, now: float) -> None:
        """One thing has failed, and these calls with it, each of a tool or with an empty name of none."""
        if not self._policy.breaker or not calls:
            return
        self._calm = False
        known = all(self._is_tool_probe(tool, probe) for tool, probe in calls)
        tools: dict[str, Probe] = {}
        for tool, probe in calls:
            if tool and (tool not in tools or self._is_tool_probe(tool, probe)):
                tools[tool] = probe
        for tool, probe in tools.items():
            self._fail_tool(tool, probe, reason, now)
        ours = next((probe for _, probe in calls if self._server.is_probe(probe)), None)
        if ours is not None or not known:
            self._fail_server(ours or calls[0][1], reason, now)

    def _fail_tool(self, tool: str, probe: Probe, reason: str, now: float) -> None:
        breaker = self._tools.pop(tool, None) or self._make(self._policy.breaker_tool_failures)
        if len(self._tools) >= self._policy.breaker_max_tools:
            forgotten = next((name for name, each in self._tools.items() if each.closed), None)
            if forgotten is None:
                return
            del self._tools[forgotten]
        self._tools[tool] = breaker
        if breaker.fail(probe, now, reason):
            self._settle(_row("tool", tool, breaker), opened=True)

    def _fail_server(self, probe: Probe, reason: str, now: float) -> None:
        failed, total = self._recent.fail(now)
        policy = self._policy
        trip = total >= policy.breaker_min_calls and failed * 100 >= policy.breaker_percent * total
        if self._server.fail(probe, now, reason, trip=trip):
            self._settle(_row("server", "", self._server), opened=True)

    def _is_tool_probe(self, tool: str, probe: Probe) -> bool:
        return tool in self._tools and self._tools[tool].is_probe(probe)

    def read(self, probe: Probe, now: float, failure: str = "") -> None:
        """The lists were read to their end, or not, because of a `failure`. That is a probe of the server, too."""
        if not self._policy.breaker:
            return
        before = _row("discovery", "", self._discovery)
        if failure:
            if self._discovery.fail(probe, now, failure):
                self._settle(_row("discovery", "", self._discovery), opened=True)
        elif self._discovery.succeed(probe, now):
            self._settle(before, opened=False)
        self.prove(probe, now, failure)

    def prove(self, probe: Probe, now: float, failure: str = "") -> None:
        """Something that is no call has shown that the server works, or not: that counts only of a probe."""
        if not self._server.is_probe(probe):
            return
        if failure:
            self.fail([("", probe)], failure, now)
        else:
            self._forgive("", probe, now)

    def close(self) -> None:
        """Close all, and forget every failure."""
        was_open = self.rows()
        for _, _, breaker in self._all():
            breaker.reset()
        self._tools.clear()
        self._recent.clear()
        self._calm = True
        for row in was_open:
            self._settle(row, opened=False)

    def end(self) -> None:
        """Forget who is told: nothing follows from anything any more."""
        self._tell = _tell_nobody

    # What is told ---------------------------------------------------------------------------------------------------

    def rows(self) -> tuple[OpenBreaker, ...]:
        """Return all that are not closed."""
        return tuple(_row(*each) for each in self._all() if not each[2].closed) if self.troubled else ()

    def _all(self) -> Iterator[tuple[BreakerScope, str, Breaker]]:
        yield "server", "", self._server
        yield "discovery", "", self._discovery
        for tool, breaker in self._tools.items():
            yield "tool", tool, breaker

    def _settle(self, row: OpenBreaker, *, opened: bool) -> None:
        self.troubled = any(not breaker.closed for _, _, breaker in self._all())
        self._tell(row, opened=opened)


def _row(scope: BreakerScope, tool: str, breaker: Breaker) -> OpenBreaker:
    return OpenBreaker(
        breaker=scope,
        tool=tool,
        until=breaker.until or 0.0,
        seconds=breaker.seconds,
        failures=breaker.failures,
        reason=breaker.reason,
        refused=breaker.refused,
    )
