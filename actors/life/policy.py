"""Restart policy: how often a server may come back, and how long to wait. Pure.

Time forgives, success does not: a server that starts well and dies again uses up its budget all the same
(Erlang/OTP `supervisor:add_restart`). Only time spent *ready* lowers the level of the back-off.
Values: exponential from 1 s to 60 s with equal jitter (Kubernetes' reduced curve, Envoy's jitter); five failed starts
within ten minutes give up (systemd); afterwards one probe per 300 s on demand, and one failed probe gives up again. A
failure that is the only one of its period starts the back-off from the beginning.

- A process that ended before it answered in which era it speaks, if the next one fails too, is one of the five.
- A server of which nothing is known yet cannot be asked for by tool, so nobody would probe it: it is tried again by
  itself, after `probe_interval_s` first, then ever more rarely up to `retry_max_s`.
- Want of resources (descriptors, processes, memory) is not the server's failure: it backs off by a level of its own,
  for at most `WANT_MAX_S`, counts nothing and never gives up.
- Nor does it count that a remote server cannot be reached: the pauses grow as after failures, and nothing is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec.structs import replace

RestartType = Literal["permanent", "transient", "temporary"]
"""OTP's words: always restarted, restarted only after a failure, never restarted."""


WANT_MAX_S = 2.0
"""The longest pause after an attempt that failed for want of resources."""


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds throughout. More than `max_restarts` failures within `period_s` means give up."""

    restart: RestartType = "transient"
    max_restarts: int = 4
    period_s: float = 600.0
    backoff_initial_s: float = 1.0
    backoff_max_s: float = 60.0
    stable_s: float = 60.0
    probe_interval_s: float = 300.0
    retry_max_s: float = 1800.0


class RestartLog:
    """When one server failed lately. `jitter` returns a number in 0..1; seconds are those of the trio clock."""

    def __init__(self, policy: RestartPolicy, jitter: Callable[[], float]) -> None:
        self.policy = policy
        self.jitter = jitter
        self._failures: list[float] = []
        self._level = 0
        self._wants = 0
        self._retries = 0
        self._absences = 0
        self._ready_since: float | None = None
        self._last_probe: float | None = None
        self._probing = False
        self._ruined = False
        self.failing = False
        """Whether it has failed since it was ready last, and was not only short of what a start takes."""
        self.total = 0

    def without_restarts(self) -> RestartLog:
        """Return the log of something that is not started again by itself, under the same policy otherwise."""
        return RestartLog(replace(self.policy, max_restarts=0), self.jitter)

    def ready(self, now: float) -> None:
        self._ready_since = now
        self._probing = self._ruined = self.failing = False
        self._wants = self._retries = self._absences = 0

    @property
    def probing(self) -> bool:
        """Whether a server that was given up is tried once."""
        return self._probing

    def ruin(self) -> None:
        """Note that the probe of the era ruined a process: the next begins at once, and fails for both if it fails."""
        self._ruined = True

    def admit(self, now: float) -> float | None:
        """Record a failure; return the delay in seconds before the next start, or None to give up."""
        stable = self._forgive(now)
        self.failing = True
        self._ready_since = None
        self._wants = 0
        self.total += 1
        recent = [moment for moment in self._failures if moment > now - self.policy.period_s]
        if not recent:
            self._level = 0
        ruined, self._ruined = self._ruined, False
        self._failures = [*recent, *[now] * (1 + ruined)]
        probing, self._probing = self._probing, False
        if probing or self.policy.restart == "temporary" or len(self._failures) > self.policy.max_restarts:
            self.give_up(now)
            return None
        if stable and self._level == 0:
            self._level = 1
            return 0.0
        self._level += 1 + ruined
        return self._delay(self.policy.backoff_initial_s, self._level, self.policy.backoff_max_s)

    def postpone(self) -> float:
        """Return the delay in seconds before the next attempt, after one that failed for want of resources.

        Short throughout: such an attempt costs next to nothing, and want ends for all servers at once.
        """
        self._wants += 1
        most = min(WANT_MAX_S, self.policy.backoff_max_s)
        return self._delay(min(self.policy.backoff_initial_s, most), self._wants, most)

    def absent(self) -> float:
        """Return the delay in seconds before a remote server that cannot be reached is tried again."""
        self._absences += 1
        self.failing = True
        self._probing = False
        return self.pause_s(self._absences)

    def give_up(self, now: float) -> None:
        """Note that the server was tried in vain just now: the next probe is due in `probe_interval_s`."""
        self._last_probe = now

    def retry(self) -> float | None:
        """Return the delay in seconds before a server that was given up is tried again by itself, None for never."""
        if self.policy.restart == "temporary":
            return None
        self._retries += 1
        return self._delay(self.policy.probe_interval_s, self._retries, self.policy.retry_max_s)

    def pause_s(self, number: int) -> float:
        """Return the `number`th pause, from 1, before something is tried again whose failure costs no restart."""
        return self._delay(self.policy.backoff_initial_s, number, self.policy.backoff_max_s)

    def _delay(self, first_s: float, number: int, most_s: float) -> float:
        """Return the `number`th (from 1) of the delays that double from `first_s` to `most_s`, with equal jitter."""
        delay = min(most_s, first_s * 2.0 ** min(number - 1, 60))
        return delay / 2 + delay / 2 * self.jitter()

    def _forgive(self, now: float) -> bool:
        """Lower the level for time spent ready; return whether the run was stable."""
        if self._ready_since is None:
            return False
        lasted = now - self._ready_since
        self._level = max(0, self._level - int(lasted // self.policy.stable_s))
        if lasted >= self.policy.period_s:
            self._level = 0
            self._failures.clear()
        return lasted >= self.policy.stable_s

    def forget(self) -> None:
        """Start afresh: an operator or a changed configuration asks for it."""
        self._failures.clear()
        self._level = self._wants = self._retries = self._absences = 0
        self._last_probe = None
        self._probing = self._ruined = self.failing = False

    def probe(self, now: float) -> float:
        """Ask for one demand probe of a failed server: 0.0 grants it, else the seconds until the next is due."""
        wait = self.probe_due(now)
        if wait > 0:
            return wait
        self.begin_probe(now)
        return 0.0

    def probe_due(self, now: float) -> float:
        """Return in how many seconds a demand probe would be granted, 0.0 for now."""
        if self._last_probe is None:
            return 0.0
        wait = self._last_probe + self.policy.probe_interval_s - now
        return max(0.0, min(wait, self.policy.probe_interval_s))

    def begin_probe(self, now: float) -> None:
        """Note that a server that was given up is tried once: one failure gives up again."""
        self._last_probe = now
        self._probing = True
        # Should the probe succeed, the next failure finds room in the window, but little.
        self._failures = self._failures[1 - self.policy.max_restarts :] if self.policy.max_restarts > 1 else []
