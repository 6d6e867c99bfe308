"""From facts to events, which also say whose server that is, and what was before. Pure, but for `EventFacts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field

from actors import facts
from actors.catalogue.offer import Offer, Tool
from actors.facts import ConfigurationLoaded, ListChange, ListsRead, Logged, StateChange, ToolsChange
from actors.launch import launches_of
from actors.life.states import RAN, State
from supervisor.events import kinds
from supervisor.events.event import timestamp
from supervisor.events.kinds import MAX_TEXT, EventData

MAX_LIVES: Final = 10_000
"""So many launches are remembered; the one that was met first is forgotten for one more."""
MAX_TOOLS: Final = 1000
MAX_DESCRIPTION_CHARS: Final = 1000
MAX_SCHEMA_BYTES: Final = 256 * 1024
"""Of all schemas in one event."""
MAX_NAMES: Final = 1000
"""In each list of names in one event."""
Base = Mapping[str, Any]
"""The fields that all events of a server have."""


class EventFacts(Protocol):
    """What is to be known of servers beside what happens to them."""

    def base_of(self, launch: str) -> Base:
        """Return the fields that all events of a launch have."""

    def offer_of(self, launch: str) -> Offer | None:
        """Return what clients see of a launch."""

    def configuration(self) -> tuple[str, int, int]:
        """Return the digest of the configuration, and how many servers and teams it has."""


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
    """The lives of all launches."""

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


class Translator:
    """Makes events of facts, in their order."""

    def __init__(self, world: EventFacts) -> None:
        self._world = world
        self.lives = Lives()

    def events(self, noted: Logged) -> Iterator[EventData]:
        """Yield what to tell of a fact: itself, where it says all that there is to say."""
        fact, time, base_of = noted.fact, noted.time, self._world.base_of
        match fact:
            case EventData():
                yield fact
            case StateChange(launch=launch):
                yield from _change(fact, self.lives.of(launch), base_of(launch), time)
            case facts.InstanceChanged(launch=launch, instance=instance):
                yield kinds.InstanceStatusChanged(
                    **base_of(launch),
                    instance=instance.number,
                    state=instance.state.value,
                    previous_state=fact.previous.value,
                    status_message=_text(fact.reason),
                    process_id=instance.pid,
                )
            case ListsRead(launch=launch):
                yield _discovery(fact, self.lives.of(launch), base_of(launch))
            case facts.ListsUnread(launch=launch, reason=reason):
                yield _undiscovered(self.lives.of(launch), base_of(launch), reason, time)
            case facts.Unavailable(launch=launch, tools=tools, reason=reason):
                self.lives.of(launch).away_at = time
                yield kinds.ServerAway(**base_of(launch), tool_count=tools, reason=_text(reason))
            case facts.Available(launch=launch, tools=tools):
                life = self.lives.of(launch)
                away_s, life.away_at = _seconds(life.away_at, time), None
                yield kinds.ServerBack(**base_of(launch), tool_count=tools, away_duration_seconds=away_s)
            case facts.BreakerTripped(launch=launch, breaker=breaker):
                yield kinds.BreakerOpened(
                    **base_of(launch),
                    breaker=breaker.breaker,
                    tool=_text(breaker.tool),
                    reason=fact.reason[:MAX_TEXT],
                    seconds=round(breaker.seconds, 3),
                )
            case facts.BreakerReset(launch=launch, breaker=breaker):
                yield kinds.BreakerClosed(**base_of(launch), breaker=breaker.breaker, tool=_text(breaker.tool))
            case facts.ToolsCounted(launch=launch) if (offer := self._world.offer_of(launch)) is not None:
                yield _discovered(offer, base_of(launch), time)
            case ToolsChange(launch=launch):
                yield _tools_updated(fact, base_of(launch), self._world.offer_of(launch))
            case facts.ResourcesChange(launch=launch):
                yield kinds.ResourcesUpdated(**base_of(launch), **_names(fact))
            case facts.PromptsChange(launch=launch):
                yield kinds.PromptsUpdated(**base_of(launch), **_names(fact))
            case facts.ApprovalsWanted(launch=launch, waiting=waiting, held=held):
                whys = {name: why[:MAX_TEXT] for name, why in fact.tools.items()}
                yield kinds.ToolsWaiting(**base_of(launch), waiting=waiting, held=held, tools=whys)
            case ConfigurationLoaded():
                yield from self._loaded(fact)

    def _loaded(self, fact: ConfigurationLoaded) -> Iterator[EventData]:
        changed = (*fact.replaced, *fact.adjusted)
        digest, servers, teams = self._world.configuration()
        yield kinds.ConfigRefreshed(
            config_hash=digest,
            server_count=servers,
            teams_count=teams,
            change_detected=bool(fact.added or fact.removed or changed or fact.settings),
            added=fact.added,
            removed=fact.removed,
            changed=changed,
            settings=fact.settings,
            restart=fact.restart,
        )
        for name in fact.added:
            yield kinds.ServerRegistered(**self._world.base_of(name))
        for name in changed:
            yield kinds.ServerUpdated(**self._world.base_of(name), replaced=name in fact.replaced)
        for name in fact.removed:
            yield kinds.ServerUnregistered(**self._world.base_of(name))
            self.lives.forget(name)


def _change(fact: StateChange, life: LaunchLife, base: Base, time: float) -> Iterator[EventData]:
    """Yield what to say of another state, or that users may expect something else in the same one."""
    state, previous, reason, pid = fact.state, fact.previous, fact.reason[:MAX_TEXT], fact.pid
    yield kinds.ServerStatusChanged(
        **base,
        status=fact.status,
        previous_status=fact.previous_status,
        state=state.value,
        previous_state=previous.value,
        status_message=reason or None,
        process_id=pid,
    )
    if state is previous:
        return
    if state in (State.RESPAWNING, State.FAILED):
        yield from _go_down(fact, life, base, reason, time)
    match state:
        case State.SPAWNING:
            life.spawn_at, life.attempts = time, life.attempts + 1
        case State.DISCOVERING:
            life.listing_at = time
        case State.DRAINING:
            life.ended = reason or "it was stopped"
        case State.READY:
            yield from _become_ready(life, base, pid, time)
        case State.DORMANT:
            yield _fall_asleep(life, base, time)
        case State.STOPPED:
            life.dormant_at = None
    life.pid = pid or life.pid


def _become_ready(life: LaunchLife, base: Base, pid: int | None, time: float) -> Iterator[EventData]:
    spawn_ms = _ms(life.spawn_at, time)
    if life.dormant_at is not None:
        slept_s = _seconds(life.dormant_at, life.spawn_at or time) or 0.0
        yield kinds.ServerRespawned(
            **base, dormant_duration_seconds=slept_s, respawn_duration_ms=spawn_ms, process_id=pid
        )
    elif life.ended is not None:
        yield kinds.ServerRestarted(
            **base,
            restart_reason=life.ended,
            attempt_number=max(1, life.attempts),
            old_process_id=life.old_pid if life.old_pid is not None else life.pid,
            new_process_id=pid,
            spawn_duration_ms=spawn_ms,
        )
    elif life.spawn_at is not None:
        yield kinds.ServerStarted(**base, tool_count=life.tools, spawn_duration_ms=spawn_ms, process_id=pid)
    life.ready_at, life.called_at, life.dormant_at, life.ended, life.old_pid = time, None, None, None, None
    life.attempts, life.spawn_at = 0, None


def _fall_asleep(life: LaunchLife, base: Base, time: float) -> EventData:
    active_at, pid = life.called_at or life.ready_at, life.pid
    life.dormant_at, life.ended, life.ready_at, life.pid = time, None, None, None
    return kinds.ServerDormant(
        **base,
        idle_duration_seconds=_seconds(active_at, time),
        last_activity_at=None if active_at is None else timestamp(active_at),
        process_id=pid,
    )


def _go_down(fact: StateChange, life: LaunchLife, base: Base, reason: str, time: float) -> Iterator[EventData]:
    if fact.previous is State.DISCOVERING:
        yield _undiscovered(life, base, reason, time)
    if fact.previous in RAN:
        yield _crash(fact, life, base, reason, time)
    life.listing_at, life.ended, life.dormant_at = None, reason or "it ended", None
    if fact.state is State.FAILED:
        failed_at = timestamp(time)
        yield kinds.ServerPermanentlyFailed(**base, total_crashes=life.crashes, last_error=reason, failed_at=failed_at)


def _crash(fact: StateChange, life: LaunchLife, base: Base, reason: str, time: float) -> EventData:
    life.crashes += 1
    ran_s = _seconds(life.ready_at or life.spawn_at, time)
    life.old_pid, life.ready_at = life.pid, None
    return kinds.ServerCrashed(
        **base,
        reason=reason,
        crash_count=life.crashes,
        will_restart=fact.state is State.RESPAWNING,
        exit_code=fact.exit_code,
        signal=fact.signal,
        uptime_seconds=ran_s,
        process_id=life.pid,
    )


def _discovery(fact: ListsRead, life: LaunchLife, base: Base) -> EventData:
    life.tools, life.listing_at, life.discoveries = fact.tools, None, life.discoveries + 1
    return kinds.DiscoveryCompleted(
        **base,
        tool_count=fact.tools,
        problems=tuple(text[:MAX_TEXT] for text in fact.problems),
        duration_ms=_ms(0.0, fact.seconds),
        discovery_count=life.discoveries,
        failure_count=life.failures,
    )


def _undiscovered(life: LaunchLife, base: Base, reason: str, time: float) -> EventData:
    life.failures += 1
    took_ms, life.listing_at = _ms(life.listing_at, time), None
    return kinds.DiscoveryFailed(
        **base,
        reason=reason[:MAX_TEXT],
        duration_ms=took_ms,
        discovery_count=life.discoveries,
        failure_count=life.failures,
    )


def _text(value: str) -> str | None:
    return value[:MAX_TEXT] or None


def _seconds(since: float | None, now: float) -> float | None:
    return None if since is None else round(max(0.0, now - since), 3)


def _ms(since: float | None, now: float | None) -> float | None:
    return None if since is None or now is None else round(max(0.0, now - since) * 1000, 1)


def _names(fact: ListChange) -> Base:
    return {kind: getattr(fact.change, kind)[:MAX_NAMES] for kind in ("added", "removed", "changed")}


def _tools_updated(fact: ToolsChange, base: Base, offer: Offer | None) -> EventData:
    return kinds.ToolsUpdated(
        **base,
        **{f"{kind}_tools": names for kind, names in _names(fact).items()},
        renamed_tools=dict([*fact.change.renamed.items()][:MAX_NAMES]),
        total_tools=None if offer is None else len(offer.tools),
    )


def _discovered(offer: Offer, base: Base, time: float) -> EventData:
    return kinds.ToolsDiscovered(
        **base,
        installation_name=base["server_id"],
        tool_count=len(offer.tools),
        total_tokens=sum(offer.token_counts.values()),
        tokens_exact=offer.tokens_exact,
        tools=tuple(_tools(offer)),
        discovered_at=timestamp(time),
    )


def _tools(offer: Offer) -> Iterator[kinds.DiscoveredTool]:
    left = MAX_SCHEMA_BYTES
    for tool in offer.tools[:MAX_TOOLS]:
        size = len(bytes(tool.input_schema))
        yield _tool(tool, offer.token_counts.get(tool.name), with_schema=size <= left)
        left -= min(size, left)


def _tool(tool: Tool, tokens: int | None, *, with_schema: bool) -> kinds.DiscoveredTool:
    schema: msgspec.Raw | None = tool.input_schema if with_schema else None
    description = tool.description[:MAX_DESCRIPTION_CHARS]
    return kinds.DiscoveredTool(tool_name=tool.name, description=description, input_schema=schema, token_count=tokens)
