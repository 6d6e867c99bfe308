"""The settings of the daemon; those of a server are in `entry`.

Rules of this file:
- A field is a key of the configuration file, with the same name. Its unit is in its name (`_s` seconds, `_bytes`), its
  bounds are in its type, and below it is what it means: pages of `docs/reference` are generated from them. A comment
  above a field is the heading of it and those that follow there.
- The structs do not validate themselves: `load.py` does, and says file, line and key.
- `repr` never shows values of `env` and `headers`, arguments or addresses: they may hold secrets, and reprs get logged.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from actors.catalogue.metadata import Safety
from actors.catalogue.trust import Trust
from actors.catalogue.views import ViewProfile
from actors.transport.redaction import Confidential
from supervisor.config.address import split_address
from supervisor.config.sections import (
    MAX_SINKS,
    DescribeSettings,
    EventSink,
    FleetSettings,
    MemorySettings,
    PluginEntry,
)
from supervisor.config.values import (
    MIB,
    Auth,
    Confirm,
    Count,
    LogFormat,
    LogLevel,
    PositiveSeconds,
    Rerank,
    Seconds,
    Size,
    Structured,
    TokenBudget,
)
from supervisor.identity.people import People


class Settings(Confidential, Struct, frozen=True, kw_only=True):
    """The `supervisor` object: settings of the whole daemon."""

    # Address
    listen: str = "127.0.0.1:3001"
    """Where the daemon listens, `host:port`; port 0 takes a free one."""
    public_url: str = ""
    """The address that clients use, `https://NAME[:PORT]`: tokens of an identity provider are for addresses below it.
    Empty: the daemon's own address, which will do on this machine alone."""
    insecure_http: bool = False
    """Allow an address in `listen` that other machines can reach without encryption: whoever reads along on the way can
    use the tokens of others."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses, or networks as `10.0.0.0/8`, of proxies that encrypt in front of the daemon. They are believed where a
    request comes from. Without a certificate, and beyond this machine, only they may connect."""
    tls_certificate: str = ""
    """File of the certificate (PEM, with its chain) by which the daemon encrypts. It is read again when it changes."""
    tls_key: str = ""
    """File of the key of that certificate (PEM); empty: it is in the same file."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that the daemon accepts in the `Host` header besides those of its own address."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins that the daemon accepts in the `Origin` header besides its own."""

    # People
    auth: Auth = "none"
    """Who comes in: `none` asks nobody who they are, which is for loopback addresses. `tokens` takes requests with a
    token alone, see `mcpvisor token`. `oauth` takes those with a token of an identity provider, `both` either."""
    identity: People = People()
    """Users and teams, which servers are theirs, and identity providers."""
    audit_days: Annotated[int, Meta(ge=0, le=3650)] = 90
    """For so many days the daemon keeps who did what (`mcpvisor audit`): as long as a token lives that is made without
    another time. 0: it records nothing, and removes what it had recorded."""
    audit_calls: bool = False
    """Record each call of a tool, too: who called it and how that ended, never with what."""

    # Files and log
    data_dir: str | None = None
    """Directory of the daemon's own files. null: `$XDG_STATE_HOME/mcpvisor`, or `~/.local/state/mcpvisor` where that
    variable is not set."""
    log_level: LogLevel = "info"
    """Least severe records that the daemon logs."""
    log_format: LogFormat = "text"
    """How the daemon writes its log: `text`, or `json`, an object on each line with `time`, `level`, `logger`,
    `message`, and `trace` where there is a traceback."""
    server_log_bytes: Annotated[int, Meta(ge=0, le=64 * MIB)] = MIB
    """Size of the log of each server on the disk, its old files included. 0: none is kept, and what was is removed."""
    server_log_files: Annotated[int, Meta(ge=0, le=100)] = 3
    """Old files of such a log beside the newest; each takes an equal part of `server_log_bytes`."""
    show_debug: bool = True
    """Serve the page `/api/status/debug`."""
    reload_on_change: bool = True
    """Read the configuration again when its file changes, or one of its `envFile`s. SIGHUP and `mcpvisor reload` have
    it read in any case."""
    reload_poll_s: PositiveSeconds = 2.0
    """How often the daemon looks at the files by itself, as not every volume tells of a change."""
    reload_drain_s: Seconds = 30.0
    """When a new configuration replaces or removes a server, calls in flight there may take this much longer."""

    # Environment of local servers
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of every local server. `envFile` and `env` of the server win over them."""
    pass_env: tuple[str, ...] = ()
    """Names of variables that every local server gets from the daemon's environment, besides those that always pass. A
    `*` at the end stands for any rest, as in `AWS_*`."""

    # Tools
    expose: Safety = "dangerous"
    """The highest safety level of the tools that clients see and may call: `safe`, `moderate` (and safe ones), or
    `dangerous`, which is all. `docs/reference/metadata.md` says how the daemon finds the level of a tool."""
    confirm: Confirm = "none"
    """The safety level from which on a tool runs only after the user has said yes. Any level but `none` also holds back
    the tools whose own words ask for a yes."""
    trust: Trust = "open"
    """What becomes of a tool that is new, defined otherwise than was approved, or suspicious. `open`: people and models
    are told if it has become suspicious. `notice`: they are told in any case. `strict`: nobody sees or calls it before
    `mcpvisor approve`; see `docs/guides/trust.md`."""
    profiles: dict[str, ViewProfile] = field(default_factory=dict)
    """Named sets of servers and tools. A client sees one alone by `?profile=NAME` at an address of MCP."""
    profile: str = ""
    """The name in `profiles` that holds for clients that name none; empty: they see everything."""
    client_hints: bool = True
    """Mark the four tools at `/mcp` for clients that hold tools back until their model searches for them: they show
    these from the start. See `docs/guides/choosing-tools.md`."""
    notify_catalogue_changes: bool = True
    """Tell clients of changed tools, resources and prompts by `list_changed` notifications."""
    list_changed_min_interval_s: Seconds = 1.0
    """Shortest time between two `list_changed` notifications to one client."""
    list_changed_debounce_s: Seconds = 0.05
    """After a change of the catalogue the daemon waits this long for more of them, and notifies once."""
    catalogue_max_age_s: Seconds = 86_400.0
    """The daemon reads the lists of a server again when they are older than this. 0: age does not matter. A local
    server that sleeps is not woken for it (`refresh_asleep`)."""

    # Search
    discover_limit_max: Count = 50
    """Most tools that one search may ask for. The answer to one that asks for more says how many it was taken for."""
    discover_token_budget: Count = 2000
    """Most tokens that the answer to one search, or one page of a list, may take."""
    discover_structured: Structured = "auto"
    """Whether the answer to a search has all its members as `structuredContent`, too; its text has only those that a
    model uses. `auto`: not for clients that show a model structured content in place of the text (Claude Code, Codex,
    VS Code). See `docs/background/search-answers.md`."""
    instructions_token_budget: Count = 300
    """Most tokens of the instructions that a client gets; they list the servers and what each is for."""
    first_discovery_wait_s: Seconds = 3.0
    """A search waits this long at most for servers whose tools are being listed for the first time."""
    max_query_chars: Count = 6000
    """A longer query is cut to this many characters, which several needs of one search share."""
    rank_by_use: bool = False
    """Of tools that a search finds equal, those come first whose calls by the same user succeeded, and then those used
    more. See `docs/background/search-ties.md`."""
    rerank: Rerank = "auto"
    """Search compares meanings, too, by a sentence model (see `docs/background/search-meanings.md`): `auto` if one is
    installed, `off` never, `neural` as `auto`, but with a warning if it is not."""
    phrases: bool = True
    """Search finds tools also by sentences with which people ask for them, as the phrase book has them; see
    `docs/background/search-phrases.md`."""
    phrases_file: str = ""
    """A file with sentences of your own, or a folder of such, which go before the book."""
    describe: DescribeSettings = DescribeSettings()
    """A model that writes such sentences; see `docs/background/search-phrases.md`."""
    tokenizer_timeout_s: Seconds = 30.0
    """Time for loading the tokenizer; after it, token counts are estimates."""

    # Calls
    call_timeout_s: PositiveSeconds = 60.0
    """Deadline of a call, with its time in queues and the start of its server."""
    max_in_flight: Count = 1024
    """Most calls in flight in the whole daemon; more are refused."""
    max_question_bytes: Size = 64 * MIB
    """Size of all questions of servers that wait for answers. One server may have as much as it leaves free, so half
    at the most. More are refused."""
    result_token_budget: TokenBudget | None = None
    """Most tokens of a result for a model, at the door of the meta-tools. Of a larger one the model gets the beginning,
    and reads the rest by `read_mcp_resource`. null: any number."""
    max_kept_result_bytes: Size = 64 * MIB
    """Size of all results that the daemon keeps for such a reader. One user may have as much as they leave free,
    and so may each of their clients of that."""
    result_kept_s: PositiveSeconds = 900.0
    """How long the daemon keeps such a result after it was read last."""
    max_kept_calls: Count = 2000
    """The newest calls, which are remembered one by one, without what was said."""
    calls_keep_arguments: bool = False
    """Keep their arguments, too, short and masked."""

    # Plugins
    plugins: dict[str, PluginEntry] = field(default_factory=dict)
    """Plugins that are loaded, in this order, by the names that their packages give them, each with its options. See
    `docs/reference/plugins.md`."""
    plugin_call_timeout_s: PositiveSeconds = 2.0
    """Time for one plugin before a call, and after it. One that takes longer failed."""
    plugin_discovery_timeout_s: PositiveSeconds = 10.0
    """Time for one plugin to look at a server, or at all tools of it."""
    plugin_threads: Count = 8
    """Threads of each plugin whose hooks are no coroutines."""
    # Metrics and traces
    metrics_tools: bool = False
    """Count calls by tool in `/metrics`, too: of the first 500 tools that are called, and of all others together."""
    tracing: bool = False
    """Send traces by OpenTelemetry, as OTLP over HTTP. It takes the extra `otel`; see `docs/guides/observing.md`."""
    trace_endpoint: str = ""
    """The address that takes them, as `http://localhost:4318/v1/traces`. Empty: what `OTEL_EXPORTER_OTLP_ENDPOINT` of
    the environment says, or this machine."""
    trace_headers: dict[str, str] = field(default_factory=dict)
    """Headers of those requests, for a token say; write `${VARIABLE}` for what is secret. Empty: those in
    `OTEL_EXPORTER_OTLP_HEADERS`."""
    trace_ratio: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """The share of the requests that are traced, of those that come without a trace."""
    trace_remote_per_s: Annotated[float, Meta(ge=0, le=1_000_000)] = 100.0
    """Most requests a second that are traced because their client says so in `_meta`."""
    trace_baggage: bool = False
    """Pass the `baggage` of a client's trace on to servers."""
    trace_queue: Count = 2048
    """Most spans that wait to be sent; more are dropped, and counted."""

    # Events
    event_sinks: Annotated[tuple[EventSink, ...], Meta(max_length=MAX_SINKS)] = ()
    """Where events are sent, see `docs/reference/events.md`."""
    max_kept_events: Count = 10_000
    """The newest events, kept in memory for those who come again on `/api/events`."""
    webhook_origins: tuple[str, ...] = ()
    """Origins of addresses that clients may have events of servers posted to although they are not on the public
    internet, as `https://hooks.internal:8443`; see `docs/developers/server-events.md`."""
    max_event_streams: Count = 32
    """Open event streams at `/api/events`. One user may have as many as they leave free for others."""

    # Starts of servers
    cold_starts: Count = 4
    """Local servers that may start at once. The last place is for one that a call waits for."""
    cold_connects: Count = 16
    """Remote servers that the daemon may be connecting to at once. The last place is for one that a call waits for."""
    spawn_slot_s: Seconds = 1.0
    """A server that says nothing counts as starting for this long; then the next one may start."""
    starts_per_s: Annotated[float, Meta(ge=0.1, le=1000)] = 10.0
    """Most local servers that the daemon starts in a second, after a first few."""
    max_installs: Count = 4
    """Servers that may be installing at the same time, started by npx, uvx, docker and the like."""

    warm_up: Annotated[int, Meta(ge=0, le=100)] = 0
    """Most servers that searches start ahead; see `docs/background/warm-up.md`."""
    warm_up_unused_s: PositiveSeconds = 30.0
    """Such a server sleeps again if nobody calls it for this time."""
    memory: MemorySettings = MemorySettings()
    """What local servers may take together; see `docs/guides/budgets.md`."""

    # Other daemons
    fleet: FleetSettings = FleetSettings()
    """Other daemons behind the same address; see `docs/guides/fleet.md`."""

    # Requests and connections
    max_body_bytes: Size = 4 * MIB
    """Largest body of an HTTP request."""
    max_buffered_bytes: Size = 128 * MIB
    """Size of all requests that the daemon is reading or working on; 64 KiB of each do not count. Where there is no
    room, it refuses the body that has been arriving for the longest, as overloaded."""
    head_timeout_s: PositiveSeconds = 10.0
    """Time for the head of a request to arrive, and for a kept connection to be used again."""
    body_timeout_s: PositiveSeconds = 30.0
    """Time for the body of a request, or a WebSocket message in fragments, to arrive."""
    send_timeout_s: PositiveSeconds = 10.0
    """Time for a client to take the next 64 KiB of an answer."""
    tcp_user_timeout_s: PositiveSeconds = 5.0
    """A client whose machine acknowledges nothing for this time is disconnected."""
    max_connections: Count = 1000
    """Most open connections of clients, and at most half of the descriptors to spare."""

    # Sessions and streams
    session_idle_s: PositiveSeconds = 1800.0
    """A session without traffic ends after this time."""
    session_max_age_s: PositiveSeconds = 86400.0
    """Every session ends after this time."""
    max_sessions: Count = 10000
    """Most open sessions over HTTP. For one more, the longest idle session of whoever has most makes room; it comes
    back when its client uses its id."""
    sse_keepalive_s: PositiveSeconds = 15.0
    """Pause between comment lines on a quiet stream."""
    resume_s: PositiveSeconds = 120.0
    """For this long the daemon keeps what it said on the stream of an answer, for a client whose connection broke."""
    resume_max_events: Count = 256
    """Most events kept of one such stream; the oldest go first."""
    resume_max_session_bytes: Size = MIB
    """Size of all such streams of one session; a larger answer is kept as an error."""
    resume_max_bytes: Size = 64 * MIB
    """Size of all such streams of the daemon."""

    # WebSocket
    max_sockets_queue: Count = 256
    """Most messages that wait for one client. While there are so many, the daemon reads nothing from it."""
    websocket_stall_s: PositiveSeconds = 5.0
    """A client that takes nothing of a full queue for this time is disconnected (1008)."""
    websocket_control_frames_per_s: Count = 100
    """Pings, pongs and tiny fragments that a client may send in a second; more disconnects it (1008)."""
    websocket_max_message_bytes: Size = MIB
    """Largest message that a client may send."""
    websocket_ping_s: PositiveSeconds = 20.0
    """Pause between two pings. A client that says nothing from one to the next is disconnected (1008)."""

    # End of the daemon
    drain_s: Seconds = 5.0
    """At shutdown, calls in flight may take this much longer, but at most half of `shutdown_s`. Those that still run
    then are answered with the error `shutdown`."""
    shutdown_s: PositiveSeconds = 12.0
    """When a shutdown has taken this time, the daemon kills what is left."""
    idle_exit_s: Seconds = 0.0
    """The daemon ends, in order, when no client has been connected for this time; 0: never. A daemon that `mcpvisor
    stdio` starts has a minute, if this is not set."""

    @property
    def drain_within_s(self) -> float:
        """Return how long calls may go on at shutdown: the rest of `shutdown_s` is for stopping the servers."""
        return min(self.drain_s, self.shutdown_s / 2)

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port of `listen`. Raises `ValueError` if it is not `host:port`."""
        return split_address(self.listen)
