"""The settings of the daemon; those of a server are in `entry`.

Rules of this file:
- A field is a key of the configuration file, with the same name. Its unit is in its name (`_s` seconds, `_bytes`), its
  bounds are in its type, and below it is what it means: `docs/reference/configuration.md` is generated from them.
- The structs do not validate themselves: `load.py` does, and says file, line and key. Code that builds one by hand is
  trusted.
- `repr` never shows values of `env` and `headers`, arguments or addresses: they may hold secrets, and reprs get logged.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from actors.catalogue.metadata import Safety
from actors.catalogue.profiles import ViewProfile
from actors.transport.redaction import Confidential
from supervisor.config.syntax.address import split_address
from supervisor.config.syntax.units import (
    MIB,
    Confirm,
    Count,
    LogLevel,
    PositiveSeconds,
    Rerank,
    Seconds,
    Size,
    TokenBudget,
)


class Settings(Confidential, Struct, frozen=True, kw_only=True):
    """The `supervisor` object: settings of the whole daemon."""

    listen: str = "127.0.0.1:3001"
    """Address and port of the front, `host:port`; port 0 takes a free one."""
    allow_remote: bool = False
    """Listen on other than loopback addresses although nobody has to prove who they are."""
    data_dir: str | None = None
    """Directory of our files; null is `$XDG_STATE_HOME` or `~/.local/state`, `/mcpvisor`."""
    allowed_hosts: tuple[str, ...] = ()
    """Names accepted in the `Host` header besides those of the own address."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins accepted in the `Origin` header besides the own one."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of every local server; its own `envFile` and `env` go over them."""
    pass_env: tuple[str, ...] = ()
    """Names of variables that every local server gets from the daemon's environment, besides those that always pass; a
    `*` at the end stands for any rest, as in `AWS_*`."""
    max_body_bytes: Size = 4 * MIB
    """Largest HTTP request body."""
    max_buffered_bytes: Size = 128 * MIB
    """Bytes of all requests that are being read or worked on, 64 KiB of each not counted; where there is no room, the
    body that has been arriving for the longest is refused as overloaded."""
    head_timeout_s: PositiveSeconds = 10.0
    """For the head of a request to arrive, and for a kept connection to be used again."""
    body_timeout_s: PositiveSeconds = 30.0
    """For a request body, or a WebSocket message in fragments, to arrive."""
    send_timeout_s: PositiveSeconds = 10.0
    """For a client to take the next 64 KiB of an answer."""
    max_connections: Count = 1000
    """Open client connections; half of the file descriptors, less what we need, bounds it, too."""
    call_timeout_s: PositiveSeconds = 60.0
    """Deadline of a call, queueing and waking included."""
    expose: Safety = "dangerous"
    """The highest safety level of the tools that clients see and may call: `safe`, `moderate` (and safe ones), or
    `dangerous`, which is all. The level is found out from what a server says of a tool, see
    `docs/reference/metadata.md`."""
    confirm: Confirm = "none"
    """The safety level from which on a tool runs only after the user has said yes. With any but `none` that also goes
    for tools whose own words ask for it."""
    max_in_flight: Count = 1024
    """Calls in flight in the whole daemon; more are refused."""
    max_question_bytes: Size = 64 * MIB
    """Questions of servers that wait for answers, all together, in bytes; one server may have as much as it leaves
    free, so half at the most. More are refused."""
    cold_starts: Count = 4
    """Servers that may be starting at the same time; the last place is kept for one that is called."""
    cold_connects: Count = 16
    """Remote servers that may be connected to at the same time; the last place is kept for one that is called."""
    spawn_slot_s: Seconds = 1.0
    """A server that says nothing counts as starting for this long, then others may."""
    catalogue_max_age_s: Seconds = 86_400.0
    """How old the lists of a server may grow that does not say so itself, before they are read again; 0: age does not
    matter. A local server that sleeps is not woken for it (`refresh_asleep`)."""
    starts_per_s: Annotated[float, Meta(ge=0.1, le=1000)] = 10.0
    """Servers started in a second, after a first few."""
    max_installs: Count = 4
    """Servers that may be installing (npx, uvx, docker, ...) at the same time."""
    session_idle_s: PositiveSeconds = 1800.0
    """A session without traffic ends after this time."""
    session_max_age_s: PositiveSeconds = 86400.0
    """Every session ends after this time."""
    max_sessions: Count = 10000
    """Open sessions over HTTP; for one more the longest idle makes room, and comes back by its id."""
    max_sockets_queue: Count = 256
    """Messages queued for one WebSocket; while there are so many nothing is read from it."""
    websocket_stall_s: PositiveSeconds = 5.0
    """A WebSocket client that takes nothing of a full queue for this time is closed (1008)."""
    websocket_control_frames_per_s: Count = 100
    """Pings, pongs and tiny fragments a WebSocket client may send in a second; more closes (1008)."""
    websocket_max_message_bytes: Size = MIB
    """Largest message a WebSocket client may send."""
    websocket_ping_s: PositiveSeconds = 20.0
    """Pause between WebSocket pings."""
    sse_keepalive_s: PositiveSeconds = 15.0
    """Pause between comment lines on a quiet stream."""
    resume_s: PositiveSeconds = 120.0
    """What was said on an answer's stream is kept so long for a client whose connection broke."""
    resume_max_events: Count = 256
    """Events kept of one such stream; the oldest go first."""
    resume_max_session_bytes: Size = MIB
    """Bytes kept of all such streams of one session; a larger answer is kept as an error."""
    resume_max_bytes: Size = 64 * MIB
    """Bytes kept of all such streams of the daemon."""
    list_changed_min_interval_s: Seconds = 1.0
    """Least time between two `list_changed` notifications to one client."""
    list_changed_debounce_s: Seconds = 0.25
    """A change of the catalogue waits this long for more of them."""
    drain_s: Seconds = 5.0
    """At shutdown, calls in flight may take this much longer, but at most half of `shutdown_s`; those that still run
    then are answered with the error `shutdown`."""
    reload_on_change: bool = True
    """Read the configuration again when its file changes, or one of its `envFile`s; SIGHUP and `mcpvisor reload` do so
    anyway."""
    reload_poll_s: PositiveSeconds = 2.0
    """How often the files are looked at, besides when the system tells of a change: not every volume does."""
    reload_drain_s: Seconds = 30.0
    """When the configuration changes, calls in flight at a server that is replaced or removed may take this much
    longer."""
    shutdown_s: PositiveSeconds = 12.0
    """After this time of shutting down everything left is killed."""
    idle_exit_s: Seconds = 0.0
    """The daemon ends, in order, when no client has been connected for so long; 0 never. One that `mcpvisor stdio`
    starts ends after a minute."""
    tcp_user_timeout_s: PositiveSeconds = 5.0
    """A client that acknowledges nothing for this time is disconnected."""
    discover_limit_max: Count = 50
    """Most tools that one search may ask for."""
    discover_token_budget: Count = 2000
    """Tokens that the answer to one search, or one page of a list, may take."""
    result_token_budget: TokenBudget | None = None
    """Tokens that the result of a call may have at the door of the meta-tools; of a larger one a model gets the
    beginning and reads the rest by `read_mcp_resource`. null: any number."""
    max_kept_result_bytes: Size = 64 * MIB
    """Bytes of results that are kept for that, all together; what one client may have is as much as it leaves free."""
    result_kept_s: PositiveSeconds = 900.0
    """How long such a result is kept after it was read last."""
    instructions_token_budget: Count = 300
    """Tokens of the instructions that a client gets; they list the servers and what each is for."""
    first_discovery_wait_s: Seconds = 3.0
    """A search waits this long at most for servers that are being discovered for the first time."""
    notify_catalogue_changes: bool = True
    """Tell clients of changed tools, resources and prompts by `list_changed` notifications."""
    show_debug: bool = True
    """Serve the debug page of the status API."""
    log_level: LogLevel = "info"
    """Least severe records that are logged."""
    profiles: dict[str, ViewProfile] = field(default_factory=dict)
    """Named sets of servers and tools; `?profile=NAME` at an address of MCP shows one alone. See below."""
    profile: str = ""
    """The one of `profiles` that clients see who name none; empty: everything."""
    tokenizer_timeout_s: Seconds = 30.0
    """Time for loading the tokenizer; after it, token counts are estimates."""
    max_query_chars: Count = 6000
    """Longer search queries are cut at this many characters."""
    rerank: Rerank = "auto"
    """Search compares meanings, too, by a sentence model (see `docs/background/search-meanings.md`): `auto` if one is
    installed, `off` never, `neural` as `auto`, but with a warning if it is not."""

    @property
    def drain_within_s(self) -> float:
        """Return how long calls may go on at shutdown: the rest of `shutdown_s` is for stopping the servers."""
        return min(self.drain_s, self.shutdown_s / 2)

    @property
    def buffered_bytes(self) -> int:
        """The limit of the budget of requests; the largest one has room in it, when it is alone."""
        return max(self.max_buffered_bytes, self.max_body_bytes, self.websocket_max_message_bytes)

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port of `listen`. Raises `ValueError` if it is not `host:port`."""
        return split_address(self.listen)
