"""Restart policy: how often a server may come back, and how long to wait. Pure.

Time forgives, success does not: a server that starts well and dies again uses up its budget all the same
(Erlang/OTP `supervisor:add_restart`). Only time spent *ready* lowers the level of the back-off.
Values: exponential from 1 s to 60 s with equal jitter (Kubernetes' reduced curve, Envoy's jitter); five failed starts
within ten minutes give up (systemd); afterwards one probe per 300 s, on demand only, and one failed probe gives up
again. A failure that is the only one of its period starts the back-off from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

RestartType = Literal["permanent", "transient", "temporary"]
"""OTP's words: always restarted, restarted only after a failure, never restarted."""


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds throughout. More than `max_restarts` failures within `period_s` means give up."""

    restart: RestartType = "transient"
    max_restarts: int = 5
    period_s: float = 600.0
    backoff_initial_s: float = 1.0
    backoff_max_s: float = 60.0
    stable_s: float = 60.0
    probe_interval_s: float = 300.0


class RestartLog:
    """When one server failed lately. `jitter` returns a number in 0..1; seconds are those of the trio clock."""

    def __init__(self, policy: RestartPolicy, jitter: Callable[[], float]) -> None:
        self.policy = policy
        self._jitter = jitter
        self._failures: list[float] = []
        self._level = 0
        self._ready_since: float | None = None
        self._last_probe: float | None = None
        self._probing = False
        self.total = 0

    def ready(self, now: float) -> None:
        """Note that the server is ready from now on."""
        self._ready_since = now
        self._probing = False

    def admit(self, now: float) -> float | None:
        """Record a failure; return the delay in seconds before the next start, or None to give up."""
        stable = self._forgive(now)
        self._ready_since = None
        self.total += 1
        recent = [moment for moment in self._failures if moment > now - self.policy.period_s]
        if not recent:
            self._level = 0
        self._failures = [*recent, now]
        probing, self._probing = self._probing, False
        if probing or self.policy.restart == "temporary" or len(self._failures) > self.policy.max_restarts:
            self._last_probe = now
            return None
        if stable and self._level == 0:
            self._level = 1
            return 0.0
        delay = min(self.policy.backoff_max_s, self.policy.backoff_initial_s * 2.0**self._level)
        self._level += 1
        return delay / 2 + delay / 2 * self._jitter()

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
        self._level = 0
        self._last_probe = None
        self._probing = False

    def probe(self, now: float) -> float:
        """Ask for one demand probe of a failed server: 0.0 grants it, else the seconds until the next is due."""
        if self._last_probe is not None:
            wait = self._last_probe + self.policy.probe_interval_s - now
            if wait > 0:
                return min(wait, self.policy.probe_interval_s)
        self._last_probe = now
        self._probing = True
        # Should the probe succeed, the next failure finds room in the window, but little.
        self._failures = self._failures[1 - self.policy.max_restarts :] if self.policy.max_restarts > 1 else []
        return 0.0
