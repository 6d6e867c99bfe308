"""From what the daemon notes of itself to events. Pure, but for what `EventFacts` looks up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, Protocol

import msgspec

from actors.catalogue.offer import Offer, Tool
from actors.launch import server_of
from actors.registry.happening import Happening
from supervisor.events.event import timestamp
from supervisor.events.kinds import (
    BreakerClosed,
    BreakerOpened,
    DiscoveredTool,
    EventData,
    ListUpdated,
    ServerRegistered,
    ServerUnregistered,
    ServerUpdated,
    ToolsDiscovered,
)
from supervisor.events.lives import MAX_TEXT, Base, Lives
from supervisor.events.other_kinds import (
    ConfigRefreshed,
    ConfigRefused,
    ElicitationAsked,
    ElicitationEnded,
    PluginDisabled,
    PluginRecovered,
    PromptsUpdated,
    ResourcesUpdated,
    ToolsUpdated,
    ToolsWaiting,
)

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
