"""The kinds of events that are not about the life of one server, and the table of all kinds. Pure.

The rules are those of `kinds.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from msgspec import field

from supervisor.events.kinds import (
    Audience,
    BreakerClosed,
    BreakerOpened,
    DiscoveryCompleted,
    DiscoveryFailed,
    EventData,
    InstanceStatusChanged,
    ListUpdated,
    OfServer,
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
)


class ToolsUpdated(OfServer, frozen=True, kw_only=True):
    """Tools of a server came, went or changed. Members hear that it was so, without names."""

    audience: ClassVar[Audience] = "server"
    added_tools: tuple[str, ...] = ()
    """Names that came."""
    removed_tools: tuple[str, ...] = ()
    """Names that went."""
    changed_tools: tuple[str, ...] = ()
    """Names that have another definition."""
    renamed_tools: dict[str, str] = field(default_factory=dict)
    """New names by old ones; they are among those that came and went, too."""
    total_tools: int | None = None
    """How many there are now."""


class ResourcesUpdated(ListUpdated, frozen=True, kw_only=True):
    """Resources, templates of them, or skills came, went or changed. Members hear that it was so, without names."""


class PromptsUpdated(ListUpdated, frozen=True, kw_only=True):
    """Prompts came, went or changed. Members hear that it was so, without names."""


class ToolsWaiting(OfServer, frozen=True, kw_only=True):
    """Definitions of tools wait for approval, or none does any more, see [trust](../guides/trust.md)."""

    waiting: int
    """How many wait."""
    held: bool
    """Whether clients do without them meanwhile."""
    tools: dict[str, str] = field(default_factory=dict)
    """Why each waits, for 500 at the most."""


class ToolExecuted(EventData, frozen=True, kw_only=True):
    """A call of a tool, or of a meta-tool, has ended. What was said in it is nowhere here."""

    audience: ClassVar[Audience] = "caller"
    server_slug: str | None = None
    """The server, `_unknown` if it is none; left out for a meta-tool."""
    tool_name: str
    """The server's own name of the tool, or `_unknown`."""
    definition_digest: str | None = None
    """The SHA-256 digest of the tool's definition, in hex, by which it is [approved](../guides/trust.md)."""
    user_id: str | None = None
    """Who called it, if people have to say who they are."""
    team_id: str | None = None
    """The team whose token they showed, if it is for one team."""
    client_name: str | None = None
    """What the client calls itself."""
    success: bool
    """Whether it ended with a result that is no error."""
    outcome: str
    """How it ended, as in [metrics](metrics.md#values-of-labels); `unknown`: nobody knows what was done."""
    error_type: str | None = None
    """The type of the [error](error-types.md)."""
    response_time_ms: float
    """How long it took at the server."""
    waited_ms: float | None = None
    """How long it had waited for the server before."""
    request_bytes: int | None = None
    """The size of its arguments."""
    response_bytes: int | None = None
    """The size of its result."""
    tokens_shown: int | None = None
    """What a model was shown of it, in tokens."""
    tokens_saved: int | None = None
    """What a model was spared, in tokens."""


class ElicitationAsked(EventData, frozen=True, kw_only=True):
    """A server, or a plugin, asks a user something, or the daemon whether a tool may run."""

    audience: ClassVar[Audience] = "caller"
    server_slug: str
    """The server."""
    tool_name: str | None = None
    """The server's own name of the tool whose call asks; left out for a prompt or a resource."""
    kind: str
    """What kind of question it is, such as `form` or `url`."""
    asked: str
    """Where it can be answered: `client` or `page`."""
    plugin: str | None = None
    """The plugin that asks; left out where the server does, or the daemon."""
    question_id: str | None = None
    """Of one on a page: what stands behind `/questions/` and `/api/questions/` for it."""


class ElicitationEnded(ElicitationAsked, frozen=True, kw_only=True):
    """A question has its answer, or nobody waits for one any more."""

    action: str
    """`accept`, `decline`, `cancel`, or `none` without an answer."""


class ConfigRefreshed(EventData, frozen=True, kw_only=True):
    """A changed configuration was taken over."""

    config_hash: str
    """The beginning of the SHA-256 of the file."""
    server_count: int
    """How many servers it has."""
    teams_count: int
    """How many teams it has."""
    change_detected: bool
    """Whether anything of the running daemon is different now."""
    added: tuple[str, ...] = ()
    """Servers that came."""
    removed: tuple[str, ...] = ()
    """Servers that went."""
    changed: tuple[str, ...] = ()
    """Servers whose entry is another one."""
    settings: tuple[str, ...] = ()
    """Settings that took effect."""
    restart: tuple[str, ...] = ()
    """Settings that take effect when the daemon is started again."""


class ConfigRefused(EventData, frozen=True, kw_only=True):
    """A changed configuration was refused; everything runs as before."""

    error_type: str
    """`config`."""
    error_message: str
    """What is wrong, one fault in a line."""


class PluginRecovered(EventData, frozen=True, kw_only=True):
    """A plugin that was given up works again, see [plugins](plugins.md)."""

    plugin: str
    """Its name."""
    hook: str
    """Its hook that works again, or is off."""


class PluginDisabled(PluginRecovered, frozen=True, kw_only=True):
    """A plugin was given up for a while, as it failed too often, see [plugins](plugins.md)."""

    guards: bool
    """Whether what it guards is refused meanwhile, and not passed on."""
    reason: str
    """How it failed."""


class AuthFailed(EventData, frozen=True, kw_only=True):
    """Somebody showed a wrong credential, or asked for a page that their role may not see."""

    reason: str
    """`credential` or `role`."""
    target: str | None = None
    """What was asked for, without a query."""
    user_id: str | None = None
    """Who, if that is proven."""
    ip_address: str | None = None
    """Where it came from."""
    count: int
    """How often: what is equal within a minute is one event."""


class LimitExceeded(EventData, frozen=True, kw_only=True):
    """The daemon lacks something of the system, and works only in part until it has it. Or its database was damaged,
    and it goes on with a fresh one."""

    resource: str
    """What does not work."""
    reason: str
    """Why."""


KINDS: Final[Mapping[str, type[EventData]]] = {
    "mcp.server.registered": ServerRegistered,
    "mcp.server.unregistered": ServerUnregistered,
    "mcp.server.updated": ServerUpdated,
    "mcp.server.status_changed": ServerStatusChanged,
    "mcp.server.instance_changed": InstanceStatusChanged,
    "mcp.server.started": ServerStarted,
    "mcp.server.restarted": ServerRestarted,
    "mcp.server.respawned": ServerRespawned,
    "mcp.server.dormant": ServerDormant,
    "mcp.server.crashed": ServerCrashed,
    "mcp.server.permanently_failed": ServerPermanentlyFailed,
    "mcp.server.away": ServerAway,
    "mcp.server.back": ServerBack,
    "mcp.breaker.opened": BreakerOpened,
    "mcp.breaker.closed": BreakerClosed,
    "mcp.discovery.completed": DiscoveryCompleted,
    "mcp.discovery.failed": DiscoveryFailed,
    "mcp.tools.discovered": ToolsDiscovered,
    "mcp.tools.updated": ToolsUpdated,
    "mcp.tools.waiting": ToolsWaiting,
    "mcp.resources.updated": ResourcesUpdated,
    "mcp.prompts.updated": PromptsUpdated,
    "mcp.tool.executed": ToolExecuted,
    "mcp.elicitation.asked": ElicitationAsked,
    "mcp.elicitation.ended": ElicitationEnded,
    "config.refreshed": ConfigRefreshed,
    "config.error": ConfigRefused,
    "plugin.disabled": PluginDisabled,
    "plugin.recovered": PluginRecovered,
    "security.auth.failed": AuthFailed,
    "resource.limit.exceeded": LimitExceeded,
}
"""Every kind by its type."""
TYPES: Final[Mapping[type[EventData], str]] = {kind: name for name, kind in KINDS.items()}
