"""From what the daemon notes of itself to events. Pure, but for what `EventFacts` looks up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field

from actors.catalogue.offer import Offer, Tool
from actors.launch import launches_of, server_of
from actors.life.states import RAN, State
from actors.registry.happening import Happening
from supervisor.events.event import timestamp
from supervisor.events.kinds import (
    BreakerClosed,
    BreakerOpened,
    ConfigRefreshed,
    ConfigRefused,
    DiscoveredTool,
    DiscoveryCompleted,
    DiscoveryFailed,
    ElicitationAsked,
    ElicitationEnded,
    EventData,
    InstanceStatusChanged,
    ListUpdated,
    PluginDisabled,
    PluginRecovered,
    PromptsUpdated,
    ResourcesUpdated,
    ServerAway,
    ServerBack,
    ServerCrashed,
    ServerDormant,
    ServerPermanentlyFailed,
    ServerRegistered,
    ServerRespawned,
    ServerRestarted,
    ServerStarted,
    ServerStatusChanged,
    ServerUnregistered,
    ServerUpdated,
    ToolsDiscovered,
    ToolsUpdated,
    ToolsWaiting,
)

# From what the registry tells of servers to events: what came before is remembered for each launch.

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


MAX_TOOLS: Final = 1000
MAX_DESCRIPTION_CHARS: Final = 1000
MAX_SCHEMA_BYTES: Final = 256 * 1024
"""Of all schemas in one event."""
MAX_NAMES: Final = 1000
"""In each list of names in one event."""
_NAMED: Final = ("added", "removed", "changed")
_LISTS: Final[dict[str, type[ListUpdated]]] = {
    "resources_changed": ResourcesUpdated,
    "prompts_changed": PromptsUpdated,
}


class EventFacts(Protocol):
    """What is to be known of servers beside what happens to them."""

    def base_of(self, launch: str) -> Base:
        """Return the fields that all events of a launch have."""

    def offer_of(self, launch: str) -> Offer | None:
        """Return what clients see of a launch."""

    def configuration(self) -> tuple[str, int, int]:
        """Return the digest of the configuration, and how many servers and teams it has."""


class Translator:
    """Makes events of what happens, in its order."""

    def __init__(self, world: EventFacts) -> None:
        self._world = world
        self.lives = Lives(world.base_of)
        self._ways = {
            "server_state": self.lives.change,
            "instance_state": self.lives.change_instance,
            "discovery_completed": self.lives.discover,
            "discovery_failed": self.lives.fail_to_discover,
            "server_away": self.lives.leave,
            "server_back": self.lives.come_back,
            "breaker_opened": self._break,
            "breaker_closed": self._break,
            "tools_counted": self._count,
            "tools_changed": self._change_tools,
            "tools_waiting": self._wait,
            **dict.fromkeys(_LISTS, self._change_list),
            "configuration_loaded": self._load,
            "configuration_refused": self._refuse,
            "plugin_disabled": self._give_up,
            "plugin_recovered": self._recover,
            "elicitation_asked": self._ask,
            "elicitation_ended": self._ask,
        }

    def events(self, happening: Happening) -> Iterator[EventData]:
        """Yield what to tell; nothing of a happening that has no kind."""
        way = self._ways.get(happening.type)
        if way is not None:
            yield from way(happening, happening.server or "")

    def _count(self, happening: Happening, launch: str) -> Iterator[EventData]:
        offer, base = self._world.offer_of(launch), self._world.base_of(launch)
        if offer is not None:
            yield ToolsDiscovered(
                **base,
                installation_name=base["server_id"],
                tool_count=len(offer.tools),
                total_tokens=sum(offer.token_counts.values()),
                tokens_exact=offer.tokens_exact,
                tools=tuple(_tools(offer)),
                discovered_at=timestamp(happening.time),
            )

    def _change_tools(self, happening: Happening, launch: str) -> Iterator[EventData]:
        offer = self._world.offer_of(launch)
        names = {f"{kind}_tools": _names(happening, kind) for kind in _NAMED}
        fields: dict[str, Any] = {**self._world.base_of(launch), **names}
        yield ToolsUpdated(
            **fields,
            renamed_tools=dict([*happening.data.get("renamed", {}).items()][:MAX_NAMES]),
            total_tools=None if offer is None else len(offer.tools),
        )

    def _change_list(self, happening: Happening, launch: str) -> Iterator[EventData]:
        names = {kind: _names(happening, kind) for kind in _NAMED}
        fields: dict[str, Any] = {**self._world.base_of(launch), **names}
        yield _LISTS[happening.type](**fields)

    def _wait(self, happening: Happening, launch: str) -> Iterator[EventData]:
        data = happening.data
        tools = {name: str(reason)[:MAX_TEXT] for name, reason in data["tools"].items()}
        yield ToolsWaiting(**self._world.base_of(launch), waiting=data["waiting"], held=data["held"], tools=tools)

    def _break(self, happening: Happening, launch: str) -> Iterator[EventData]:
        kind = BreakerOpened if happening.type == "breaker_opened" else BreakerClosed
        said: dict[str, Any] = {name: _cut(value) for name, value in happening.data.items()}
        yield kind(**self._world.base_of(launch), **said)

    def _load(self, happening: Happening, launch: str) -> Iterator[EventData]:
        del launch
        named = {kind: tuple(names) for kind, names in happening.data.items()}
        changed = tuple(chain(named.get("replaced", ()), named.get("adjusted", ())))
        digest, servers, teams = self._world.configuration()
        yield ConfigRefreshed(
            config_hash=digest,
            server_count=servers,
            teams_count=teams,
            change_detected=bool(set(named) - {"restart"}),
            changed=changed,
            **{kind: named.get(kind, ()) for kind in ("added", "removed", "settings", "restart")},
        )
        yield from (ServerRegistered(**self._world.base_of(name)) for name in named.get("added", ()))
        for name in changed:
            yield ServerUpdated(**self._world.base_of(name), replaced=name in named.get("replaced", ()))
        for name in named.get("removed", ()):
            yield ServerUnregistered(**self._world.base_of(name))
            self.lives.forget(name)

    def _refuse(self, happening: Happening, launch: str) -> Iterator[EventData]:
        del launch
        text = "\n".join(str(problem)[:MAX_TEXT] for problem in happening.data["problems"][:20])
        yield ConfigRefused(error_type="config", error_message=text)

    def _give_up(self, happening: Happening, launch: str) -> Iterator[EventData]:
        del launch
        data = {**happening.data, "reason": str(happening.data["reason"])[:MAX_TEXT]}
        yield PluginDisabled(**data)

    def _recover(self, happening: Happening, launch: str) -> Iterator[EventData]:
        del launch
        yield PluginRecovered(**happening.data)

    def _ask(self, happening: Happening, launch: str) -> Iterator[EventData]:
        kind = ElicitationEnded if happening.type == "elicitation_ended" else ElicitationAsked
        said: dict[str, Any] = {name: str(value)[:MAX_TEXT] for name, value in happening.data.items()}
        yield kind(server_slug=server_of(launch), **said)


def _cut(value: object) -> object:
    return value[:MAX_TEXT] if isinstance(value, str) else value


def _names(happening: Happening, kind: str) -> tuple[str, ...]:
    return tuple(happening.data.get(kind, ())[:MAX_NAMES])


def _tools(offer: Offer) -> Iterator[DiscoveredTool]:
    left = MAX_SCHEMA_BYTES
    for tool in offer.tools[:MAX_TOOLS]:
        size = len(bytes(tool.input_schema))
        yield _tool(tool, offer.token_counts.get(tool.name), with_schema=size <= left)
        left -= min(size, left)


def _tool(tool: Tool, tokens: int | None, *, with_schema: bool) -> DiscoveredTool:
    schema: msgspec.Raw | None = tool.input_schema if with_schema else None
    description = tool.description[:MAX_DESCRIPTION_CHARS]
    return DiscoveredTool(tool_name=tool.name, description=description, input_schema=schema, token_count=tokens)
