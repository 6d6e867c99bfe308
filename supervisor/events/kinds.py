"""The kinds of events and their fields: one schema for streams, sinks and the documentation. Pure.

Rules of this file:
- A struct is a kind, a field is a member of `data`, and below it is what it means: a page of `docs/reference` is
  generated from them. A field whose default is None is left out where it is not known.
- Nothing here has room for arguments, results, texts that a server wrote to its log, or credentials.
- `audience` says which members hear of it; auditors and admins hear of everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

import msgspec
from msgspec import Struct, field

from actors.facts import Fact

MAX_TEXT: Final = 500
"""Characters of a reason, or another text that a server wrote."""
Audience = Literal["entry", "server", "launch", "caller", "auditors"]
"""Which members hear of an event: all who have the server, however it is started for them; who have that launch, both
without details; those for whom alone it is started; whoever made the call; nobody."""


class EventData(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The data of one event. Where that is all there is to say, its maker notes it as the fact."""

    audience: ClassVar[Audience] = "auditors"


class OfServer(EventData, frozen=True, kw_only=True):
    """Something about a server."""

    audience: ClassVar[Audience] = "launch"
    server_id: str
    """The key of its entry in the configuration."""
    server_slug: str
    """The name that its tools are called by; mostly the same."""
    installation_id: str
    """How it is started: the slug where all share one; else with `~` and a digest."""
    team_id: str | None = None
    """The team whose server it is, if it is that of one team."""
    user_id: str | None = None
    """The user whose launch it is, if it is that of one user."""
    transport: str | None = None
    """`stdio`, `http`, `sse` or `websocket`."""


class ServerRegistered(OfServer, frozen=True, kw_only=True):
    """A server was added to the configuration while the daemon runs."""

    audience: ClassVar[Audience] = "entry"


class ServerUnregistered(OfServer, frozen=True, kw_only=True):
    """A server was removed from the configuration."""

    audience: ClassVar[Audience] = "entry"


class ServerUpdated(OfServer, frozen=True, kw_only=True):
    """The entry of a server has changed."""

    audience: ClassVar[Audience] = "entry"
    replaced: bool | None = None
    """Whether it got a new process or session for that."""


class StateChanged(OfServer, frozen=True, kw_only=True):
    """Something came into another state."""

    state: str
    """What its process does: one of the nine states."""
    previous_state: str
    """The state before."""
    status_message: str | None = None
    """Why, where there is more to say than the state does."""
    process_id: int | None = None
    """The process, if it has one here."""


class ServerStatusChanged(StateChanged, frozen=True, kw_only=True):
    """A server came into another state, or its users may expect something else of it."""

    status: str
    """What they may expect: [one of twelve words](status.md), or `disabled`."""
    previous_status: str
    """The word before."""


class InstanceStatusChanged(StateChanged, frozen=True, kw_only=True):
    """One of several instances of a server came into another state."""

    instance: int
    """Its number."""


class ServerStarted(OfServer, frozen=True, kw_only=True):
    """A server is ready for the first time since it was added or the daemon began."""

    tool_count: int | None = None
    """How many tools it has, as far as is known."""
    spawn_duration_ms: float | None = None
    """From the start of its process or connection until it was ready."""
    process_id: int | None = None
    """Its process, if it has one here."""


class ServerRestarted(OfServer, frozen=True, kw_only=True):
    """A server is ready again after it had ended or was restarted."""

    restart_reason: str
    """What was said of the end before."""
    attempt_number: int
    """How many starts it took."""
    old_process_id: int | None = None
    """The process before."""
    new_process_id: int | None = None
    """The process now."""
    spawn_duration_ms: float | None = None
    """From the last start until it was ready."""


class ServerRespawned(OfServer, frozen=True, kw_only=True):
    """A server woke up, as somebody needed it."""

    dormant_duration_seconds: float
    """How long it slept."""
    respawn_duration_ms: float | None = None
    """From its start until it was ready."""
    process_id: int | None = None
    """Its process, if it has one here."""


class ServerDormant(OfServer, frozen=True, kw_only=True):
    """A server was put to sleep, as nobody used it or by an order."""

    idle_duration_seconds: float | None = None
    """How long nobody had called it."""
    last_activity_at: str | None = None
    """When its last call ended; if there was none since its start, when it was ready."""
    process_id: int | None = None
    """The process that ended."""


class ServerCrashed(OfServer, frozen=True, kw_only=True):
    """A process or a connection ended unasked."""

    reason: str
    """Why, in a line."""
    crash_count: int
    """How often it did since the daemon began."""
    will_restart: bool
    """Whether the daemon starts it again by itself."""
    exit_code: int | None = None
    """The code that the process ended with."""
    signal: int | None = None
    """The signal that ended it."""
    uptime_seconds: float | None = None
    """How long it had run."""
    process_id: int | None = None
    """The process that ended."""


class ServerPermanentlyFailed(OfServer, frozen=True, kw_only=True):
    """A server was given up: it cannot be started, or failed too often. An order, a change or a call may revive it."""

    total_crashes: int
    """How often it crashed since the daemon began."""
    last_error: str
    """What is wrong."""
    failed_at: str
    """When it was given up."""


class ServerAway(OfServer, frozen=True, kw_only=True):
    """The tools of a server cannot be used now, and are hidden from searches and lists."""

    audience: ClassVar[Audience] = "server"
    tool_count: int | None = None
    """How many there are."""
    reason: str | None = None
    """Why."""


class ServerBack(OfServer, frozen=True, kw_only=True):
    """The tools of a server that was away can be used again."""

    audience: ClassVar[Audience] = "server"
    tool_count: int | None = None
    """How many there are."""
    away_duration_seconds: float | None = None
    """How long they were hidden."""


class BreakerClosed(OfServer, frozen=True, kw_only=True):
    """What was left alone is used again: a call has succeeded, or an operator wants it; see [breakers](breakers.md)."""

    breaker: str
    """`server`, `tool` or `discovery`."""
    tool: str | None = None
    """The tool, if it is about one."""


class BreakerOpened(BreakerClosed, frozen=True, kw_only=True):
    """A server, a tool or lists are left alone, see [breakers](breakers.md)."""

    reason: str
    """Why the last one failed."""
    seconds: float
    """For how long, before one call is let through."""


class DiscoveryCompleted(OfServer, frozen=True, kw_only=True):
    """The lists of a server were read."""

    tool_count: int
    """How many tools it has."""
    problems: tuple[str, ...] = ()
    """What is odd about its lists."""
    duration_ms: float | None = None
    """How long that took."""
    discovery_count: int
    """How often its lists were read since the daemon began."""
    failure_count: int
    """How often that failed since then."""


class DiscoveryFailed(OfServer, frozen=True, kw_only=True):
    """The lists of a server could not be read."""

    reason: str
    """Why."""
    duration_ms: float | None = None
    """After which time."""
    discovery_count: int
    """How often its lists were read since the daemon began."""
    failure_count: int
    """How often that failed since then."""


class DiscoveredTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool of `mcp.tools.discovered`."""

    tool_name: str
    """What it is called."""
    description: str = ""
    """The first 1,000 characters of what it says of itself."""
    input_schema: msgspec.Raw | None = None
    """The schema of its arguments; left out behind the first 256 KiB of them."""
    token_count: int | None = None
    """What its definition costs a model."""


class ToolsDiscovered(OfServer, frozen=True, kw_only=True):
    """All tools of a server, with what they cost a model: after its first discovery, and after each change of them."""

    audience: ClassVar[Audience] = "auditors"
    installation_name: str
    """The key of its entry once more."""
    tool_count: int
    """How many tools there are."""
    total_tokens: int
    """What their definitions cost a model together."""
    tokens_exact: bool
    """Whether the tokens are counted, and not estimated."""
    tools: tuple[DiscoveredTool, ...]
    """The tools, 1,000 at the most."""
    discovered_at: str
    """When they were counted."""


class ListUpdated(OfServer, frozen=True, kw_only=True):
    """Names that came, went or mean something else. Members hear that it was so, without names."""

    audience: ClassVar[Audience] = "server"
    added: tuple[str, ...] = ()
    """Names that came."""
    removed: tuple[str, ...] = ()
    """Names that went."""
    changed: tuple[str, ...] = ()
    """Names that have another definition."""


# Events that are not about the life of one server, and the table of all kinds.


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

    words = "elicitation asked"
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

    words = "elicitation ended"
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
