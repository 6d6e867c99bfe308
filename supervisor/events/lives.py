"""From what the registry tells of servers to events: what came before is remembered for each launch. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from actors.launch import launches_of
from actors.life.states import RAN, State
from actors.registry.happening import Happening
from supervisor.events.event import timestamp
from supervisor.events.kinds import (
    DiscoveryCompleted,
    DiscoveryFailed,
    EventData,
    InstanceStatusChanged,
    ServerAway,
    ServerBack,
    ServerCrashed,
    ServerDormant,
    ServerPermanentlyFailed,
    ServerRespawned,
    ServerRestarted,
    ServerStarted,
    ServerStatusChanged,
)

MAX_LIVES: Final = 10_000
"""So many launches are remembered; the one that was met first is forgotten for one more."""
MAX_TEXT: Final = 500
"""Characters of a reason."""
_CODE: Final = re.compile(r"\bexit code (\d{1,3})\b")
_SIGNAL: Final = re.compile(r"\bkilled by signal (\d{1,2})\b")
_DOWN: Final = (State.RESPAWNING, State.FAILED)
Base = Mapping[str, Any]
"""The fields that all events of a server have."""


class LaunchLife(Struct, kw_only=True):
    """What was of a launch until now. Moments are unix seconds, None for never."""

    spawn_at: float | None = None
    ready_at: float | None = None
    called_at: float | None = None
    dormant_at: float | None = None
    listing_at: float | None = None
    away_at: float | None = None
    pid: int | None = None
    old_pid: int | None = None
    tools: int | None = None
    crashes: int = 0
    attempts: int = 0
    discoveries: int = 0
    failures: int = 0
    ended: str | None = None
    """Why the run before the present one ended; None if there was none, or it sleeps."""


class Lives(Struct):
    """The lives of all launches. `base_of` gives what all events of one say."""

    base_of: Callable[[str], Base]
    _lives: dict[str, LaunchLife] = field(default_factory=dict)

    def forget(self, server: str) -> None:
        """Forget the launches of a server that is gone."""
        for launch in launches_of(server, self._lives):
            del self._lives[launch]

    def call(self, launch: str, time: float) -> None:
        """Note that a call ended."""
        self.of(launch).called_at = time

    def of(self, launch: str) -> LaunchLife:
        if launch not in self._lives and len(self._lives) >= MAX_LIVES:
            del self._lives[next(iter(self._lives))]
        return self._lives.setdefault(launch, LaunchLife())

    # What happens ----------------------------------------------------------------------------------------------------

    def discover(self, happening: Happening, launch: str) -> Iterator[EventData]:
        """Yield what to say of lists that were read."""
        life = self.of(launch)
        life.tools, life.discoveries = happening.data.get("tools", 0), life.discoveries + 1
        yield DiscoveryCompleted(
            **self.base_of(launch),
            tool_count=life.tools,
            problems=tuple(text[:MAX_TEXT] for text in happening.data.get("problems", ())),
            duration_ms=_ms(0.0, happening.data.get("duration_s")),
            discovery_count=life.discoveries,
            failure_count=life.failures,
        )
        life.listing_at = None

    def fail_to_discover(self, happening: Happening, launch: str) -> Iterator[EventData]:
        """Yield what to say of a server that has no list of tools to give."""
        yield self._undiscovered(self.of(launch), self.base_of(launch), happening.data["reason"], happening.time)

    def _undiscovered(self, life: LaunchLife, base: Base, reason: str, time: float) -> EventData:
        life.failures += 1
        took_ms, life.listing_at = _ms(life.listing_at, time), None
        return DiscoveryFailed(
            **base,
            reason=reason[:MAX_TEXT],
            duration_ms=took_ms,
            discovery_count=life.discoveries,
            failure_count=life.failures,
        )

    def leave(self, happening: Happening, launch: str) -> Iterator[EventData]:
        life = self.of(launch)
        life.away_at = happening.time
        reason = _text(happening.data.get("reason"))
        yield ServerAway(**self.base_of(launch), tool_count=happening.data.get("tools"), reason=reason)

    def come_back(self, happening: Happening, launch: str) -> Iterator[EventData]:
        life = self.of(launch)
        away_s = _seconds(life.away_at, happening.time)
        life.away_at = None
        yield ServerBack(**self.base_of(launch), tool_count=happening.data.get("tools"), away_duration_seconds=away_s)

    def change(self, happening: Happening, launch: str) -> Iterator[EventData]:
        """Yield what to say of another state, or that users may expect something else in the same one."""
        data, life, time = happening.data, self.of(launch), happening.time
        base, state, previous = self.base_of(launch), State(data["state"]), State(data["previous"])
        reason, pid = _text(data.get("reason")), data.get("pid")
        yield ServerStatusChanged(
            **base,
            status=data["status"],
            previous_status=data["previous_status"],
            state=state.value,
            previous_state=previous.value,
            status_message=reason,
            process_id=pid,
        )
        if state is previous:
            return
        if state in _DOWN:
            yield from self._go_down(life, base, state, previous, reason or "", time)
        match state:
            case State.SPAWNING:
                life.spawn_at, life.attempts = time, life.attempts + 1
            case State.DISCOVERING:
                life.listing_at = time
            case State.DRAINING:
                life.ended = reason or "it was stopped"
            case State.READY:
                yield from self._become_ready(life, base, pid, time)
            case State.DORMANT:
                yield from self._fall_asleep(life, base, time)
            case State.STOPPED:
                life.dormant_at = None
        life.pid = pid or life.pid

    def change_instance(self, happening: Happening, launch: str) -> Iterator[EventData]:
        """Yield what to say of another state of one of several instances."""
        data = happening.data
        yield InstanceStatusChanged(
            **self.base_of(launch),
            instance=data["instance"],
            state=data["state"],
            previous_state=data["previous"],
            status_message=_text(data.get("reason")),
            process_id=data.get("pid"),
        )

    def _become_ready(self, life: LaunchLife, base: Base, pid: int | None, time: float) -> Iterator[EventData]:
        spawn_ms = _ms(life.spawn_at, time)
        if life.dormant_at is not None:
            slept_s = _seconds(life.dormant_at, life.spawn_at or time) or 0.0
            yield ServerRespawned(
                **base, dormant_duration_seconds=slept_s, respawn_duration_ms=spawn_ms, process_id=pid
            )
        elif life.ended is not None:
            yield ServerRestarted(
                **base,
                restart_reason=life.ended,
                attempt_number=max(1, life.attempts),
                old_process_id=life.old_pid if life.old_pid is not None else life.pid,
                new_process_id=pid,
                spawn_duration_ms=spawn_ms,
            )
        elif life.spawn_at is not None:
            yield ServerStarted(**base, tool_count=life.tools, spawn_duration_ms=spawn_ms, process_id=pid)
        life.ready_at, life.called_at, life.dormant_at, life.ended, life.old_pid = time, None, None, None, None
        life.attempts, life.spawn_at = 0, None

    def _fall_asleep(self, life: LaunchLife, base: Base, time: float) -> Iterator[EventData]:
        active_at = life.called_at or life.ready_at
        yield ServerDormant(
            **base,
            idle_duration_seconds=_seconds(active_at, time),
            last_activity_at=None if active_at is None else timestamp(active_at),
            process_id=life.pid,
        )
        life.dormant_at, life.ended, life.ready_at, life.pid = time, None, None, None

    def _go_down(
        self, life: LaunchLife, base: Base, state: State, previous: State, reason: str, time: float
    ) -> Iterator[EventData]:
        if previous is State.DISCOVERING:
            yield self._undiscovered(life, base, reason, time)
        if previous in RAN:
            yield self._crash(life, base, state, reason, time)
        life.listing_at, life.ended, life.dormant_at = None, reason or "it ended", None
        if state is State.FAILED:
            failed_at = timestamp(time)
            yield ServerPermanentlyFailed(**base, total_crashes=life.crashes, last_error=reason, failed_at=failed_at)

    def _crash(self, life: LaunchLife, base: Base, state: State, reason: str, time: float) -> EventData:
        life.crashes += 1
        ran_s = _seconds(life.ready_at or life.spawn_at, time)
        life.old_pid, life.ready_at = life.pid, None
        return ServerCrashed(
            **base,
            reason=reason,
            crash_count=life.crashes,
            will_restart=state is State.RESPAWNING,
            exit_code=_number(_CODE, reason),
            signal=_number(_SIGNAL, reason),
            uptime_seconds=ran_s,
            process_id=life.pid,
        )


def _text(value: object) -> str | None:
    return value[:MAX_TEXT] if isinstance(value, str) and value else None


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the number in the words of `actors.transport.base.Exit`."""
    match = pattern.search(text)
    return int(match[1]) if match else None


def _seconds(since: float | None, now: float) -> float | None:
    return None if since is None else round(max(0.0, now - since), 3)


def _ms(since: float | None, now: float | None) -> float | None:
    return None if since is None or now is None else round(max(0.0, now - since) * 1000, 1)
