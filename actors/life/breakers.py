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

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, Protocol

import msgspec

BreakerScope = Literal["server", "tool", "discovery"]
"""What a breaker is about."""

SPREAD: Final = 0.2
"""By this share a pause is longer or shorter, so that not all servers are probed at once."""
PROBE_RETRY_S: Final = 5.0
"""When to ask again while a probe is under way. Nobody knows how long that takes."""
SLOTS: Final = 12
"""In so many parts the time is cut whose calls count; the oldest part is forgotten as a whole."""


class Probe(Protocol):
    """Whoever was let through: a call, an order, or something that the daemon asks for itself."""

    @property
    def settled(self) -> bool:
        """Whether it is over, however it ended."""


class Trial(msgspec.Struct, eq=False):
    """A probe that nobody has asked for."""

    settled: bool = False


class Breaker:
    """A circuit breaker: after failures in a row nothing is let through for a while, then one probe. Pure.

    Closed, open, half-open, as in Nygard's "Release It!". Values: a pause that grows with each opening and shrinks with
    success is Envoy's outlier detection (`base_ejection_time`, its multiplier, `max_ejection_time`, with jitter).

    - *Closed*: everything is let through. So many failures in a row open it, or whoever has another reason to (`trip`).
    - *Open*: nothing is let through before the pause is over. What was let through earlier may still end, either way:
      that says nothing new, and changes nothing.
    - *Half-open*: the first who asks is the probe, and all others wait for what becomes of it. Its success closes, its
      failure opens again for longer. A probe that settles without either has given its place back.

    The pauses are n times the first one, within a fifth of that. n counts openings, and loses one for each `open_s`
    that it was closed for, as soon as something succeeds.

    One breaker. `jitter` returns a number in 0..1; moments are seconds of one steady clock.

    `until` is when the pause ends, None while it is closed; `seconds` is how long it is. `failures` are those in a row,
    `reason` is that of the last one. `refused` counts who was not let through since it opened.
    """

    def __init__(self, most_failures: int, open_s: float, max_open_s: float, jitter: Callable[[], float]) -> None:
        self._most_failures = most_failures
        self._open_s = open_s
        self._max_open_s = max_open_s
        self._jitter = jitter
        self._openings = 0
        self._eased_at = 0.0
        self._probe: Probe | None = None
        self.until: float | None = None
        self.seconds = 0.0
        self.failures = self.refused = 0
        self.reason = ""

    @property
    def closed(self) -> bool:
        return self.until is None

    @property
    def fresh(self) -> bool:
        """Whether it is as one that never saw a failure."""
        return self.until is None and not self.failures and not self._openings

    def is_probe(self, probe: Probe) -> bool:
        return self._probe is probe

    def wait_s(self, now: float, probe: Probe | None = None) -> float | None:
        """Return in how many seconds to ask again; None if whoever asks, or is the probe already, may pass."""
        if self.until is None or (probe is not None and self._probe is probe):
            return None
        if now < self.until:
            return self.until - now
        return None if self._free else PROBE_RETRY_S

    @property
    def _free(self) -> bool:
        return self._probe is None or self._probe.settled

    def admit(self, probe: Probe, now: float) -> None:
        """Let somebody through who may pass; see `wait_s`. Who is the first after a pause is the probe."""
        if self.until is not None and now >= self.until and self._free:
            self._probe = probe

    def succeed(self, probe: Probe, now: float) -> bool:
        """Take a success; return whether it closed the breaker."""
        if self.until is None:
            self.failures = 0
            self._ease(now)
            return False
        if self._probe is not probe:
            return False
        self.until = self._probe = None
        self.failures, self._eased_at = 0, now
        return True

    def fail(self, probe: Probe, now: float, reason: str, *, trip: bool = False) -> bool:
        """Take a failure, which opens a closed one in any case if it is to `trip`; return whether it is open by it."""
        if self.until is not None and self._probe is not probe:
            return False
        self.failures, self.reason = self.failures + 1, reason
        if self.until is None and self.failures < self._most_failures and not trip:
            return False
        self._openings = min(self._openings + 1, math.ceil(self._max_open_s / self._open_s))
        self.seconds = pause_s(self._openings, self._open_s, self._max_open_s, self._jitter())
        self.until, self._probe, self.refused = now + self.seconds, None, 0
        return True

    def reset(self) -> bool:
        """Forget everything; return whether that closed it."""
        was_open, self.until, self._probe = self.until is not None, None, None
        self.failures = self._openings = 0
        return was_open

    def _ease(self, now: float) -> None:
        if self._openings:
            steps = int((now - self._eased_at) // self._open_s)
            self._openings = max(0, self._openings - steps)
            self._eased_at += steps * self._open_s


def pause_s(openings: int, open_s: float, max_open_s: float, jitter: float) -> float:
    """Return the pause after so many openings, never more than `max_open_s`; `jitter` is in 0..1.

    The longest one has jitter, too: it is cut before that comes to it.
    """
    return min(open_s * openings, max_open_s / (1 + SPREAD)) * (1 - SPREAD + 2 * SPREAD * jitter)


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
