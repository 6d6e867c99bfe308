"""The settings of the daemon; those of a server are in `entry`.

Rules of this file:
- A field is a key of the configuration file, with the same name. Its unit is in its name (`_s` seconds, `_bytes`), its
  bounds and its one-sentence description are in its annotation: `docs/configuration.md` is generated from them.
- The structs do not validate themselves: `load.py` does, and says file, line and key. Code that builds one by hand is
  trusted.
- `repr` never shows values of `env` and `headers`, arguments or addresses: they may hold secrets, and reprs get logged.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from supervisor.config.syntax.address import split_address
from supervisor.config.syntax.units import MIB, Count, LogLevel, PositiveSeconds, Rerank, Seconds, Size


class Settings(Struct, frozen=True, kw_only=True):
    """The `supervisor` object: settings of the whole daemon."""

    listen: Annotated[str, Meta(description="Address and port of the front, `host:port`; port 0 takes a free one.")] = (
        "127.0.0.1:3001"
    )
    allow_remote: Annotated[
        bool, Meta(description="Listen on other than loopback addresses although nobody has to prove who they are.")
    ] = False
    data_dir: Annotated[
        str | None,
        Meta(description="Directory of our files; null is `$XDG_STATE_HOME` or `~/.local/state`, `/mcpvisor`."),
    ] = None
    allowed_hosts: Annotated[
        tuple[str, ...], Meta(description="Names accepted in the `Host` header besides those of the own address.")
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...], Meta(description="Web origins accepted in the `Origin` header besides the own one.")
    ] = ()
    env: Annotated[
        dict[str, str],
        Meta(description="Environment variables of every local server; its own `envFile` and `env` go over them."),
    ] = field(default_factory=dict)
    pass_env: Annotated[
        tuple[str, ...],
        Meta(
            description="Names of variables that every local server gets from the daemon's environment, besides those "
            "that always pass; a `*` at the end stands for any rest, as in `AWS_*`."
        ),
    ] = ()
    max_body_bytes: Annotated[Size, Meta(description="Largest HTTP request body.")] = 4 * MIB
    max_buffered_bytes: Annotated[
        Size,
        Meta(
            description="Bytes of all requests that are being read or worked on, 64 KiB of each not counted; where "
            "there is no room, the body that has been arriving for the longest is refused as overloaded."
        ),
    ] = 128 * MIB
    head_timeout_s: Annotated[
        PositiveSeconds,
        Meta(description="For the head of a request to arrive, and for a kept connection to be used again."),
    ] = 10.0
    body_timeout_s: Annotated[
        PositiveSeconds, Meta(description="For a request body, or a WebSocket message in fragments, to arrive.")
    ] = 30.0
    max_connections: Annotated[
        Count,
        Meta(description="Open client connections; half of the file descriptors, less what we need, bounds it, too."),
    ] = 1000
    call_timeout_s: Annotated[
        PositiveSeconds, Meta(description="Deadline of a call, queueing and waking included.")
    ] = 60.0
    max_in_flight: Annotated[Count, Meta(description="Calls in flight in the whole daemon; more are refused.")] = 1024
    max_question_bytes: Annotated[
        Size,
        Meta(
            description="Questions of servers that wait for answers, all together, in bytes; one server may have as "
            "much as it leaves free, so half at the most. More are refused."
        ),
    ] = 64 * MIB
    cold_starts: Annotated[
        Count,
        Meta(
            description="Servers that may be starting at the same time; the last place is kept for one that is called."
        ),
    ] = 4
    cold_connects: Annotated[
        Count,
        Meta(
            description="Remote servers that may be connected to at the same time; the last place is kept for one that "
            "is called."
        ),
    ] = 16
    spawn_slot_s: Annotated[
        Seconds, Meta(description="A server that says nothing counts as starting for this long, then others may.")
    ] = 1.0
    starts_per_s: Annotated[
        Annotated[float, Meta(ge=0.1, le=1000)], Meta(description="Servers started in a second, after a first few.")
    ] = 10.0
    max_installs: Annotated[
        Count, Meta(description="Servers that may be installing (npx, uvx, docker, ...) at the same time.")
    ] = 4
    session_idle_s: Annotated[PositiveSeconds, Meta(description="A session without traffic ends after this time.")] = (
        1800.0
    )
    session_max_age_s: Annotated[PositiveSeconds, Meta(description="Every session ends after this time.")] = 86400.0
    max_sessions: Annotated[
        Count,
        Meta(
            description="Open sessions over HTTP; for one more the longest idle makes room, and comes back by its id."
        ),
    ] = 10000
    max_sockets_queue: Annotated[
        Count, Meta(description="Messages queued for one WebSocket; while there are so many nothing is read from it.")
    ] = 256
    websocket_stall_s: Annotated[
        PositiveSeconds,
        Meta(description="A WebSocket client that takes nothing of a full queue for this time is closed (1008)."),
    ] = 5.0
    websocket_control_frames_per_s: Annotated[
        Count,
        Meta(
            description="Pings, pongs and tiny fragments a WebSocket client may send in a second; more closes (1008)."
        ),
    ] = 100
    websocket_max_message_bytes: Annotated[Size, Meta(description="Largest message a WebSocket client may send.")] = MIB
    websocket_ping_s: Annotated[PositiveSeconds, Meta(description="Pause between WebSocket pings.")] = 20.0
    sse_keepalive_s: Annotated[PositiveSeconds, Meta(description="Pause between comment lines on a quiet stream.")] = (
        15.0
    )
    resume_s: Annotated[
        PositiveSeconds,
        Meta(description="What was said on an answer's stream is kept so long for a client whose connection broke."),
    ] = 120.0
    resume_max_events: Annotated[Count, Meta(description="Events kept of one such stream; the oldest go first.")] = 256
    resume_max_session_bytes: Annotated[
        Size, Meta(description="Bytes kept of all such streams of one session; a larger answer is kept as an error.")
    ] = MIB
    resume_max_bytes: Annotated[Size, Meta(description="Bytes kept of all such streams of the daemon.")] = 64 * MIB
    list_changed_min_interval_s: Annotated[
        Seconds, Meta(description="Least time between two `list_changed` notifications to one client.")
    ] = 1.0
    list_changed_debounce_s: Annotated[
        Seconds, Meta(description="A change of the catalogue waits this long for more of them.")
    ] = 0.25
    drain_s: Annotated[
        Seconds,
        Meta(
            description="At shutdown, calls in flight may take this much longer, but at most half of `shutdown_s`; "
            "those that still run then are answered with the error `shutdown`."
        ),
    ] = 5.0
    shutdown_s: Annotated[
        PositiveSeconds, Meta(description="After this time of shutting down everything left is killed.")
    ] = 12.0
    tcp_user_timeout_s: Annotated[
        PositiveSeconds, Meta(description="A client that acknowledges nothing for this time is disconnected.")
    ] = 5.0
    discover_limit_max: Annotated[Count, Meta(description="Most tools that one search may ask for.")] = 50
    discover_token_budget: Annotated[
        Count, Meta(description="Tokens that the answer to one search, or one page of a list, may take.")
    ] = 2000
    instructions_token_budget: Annotated[
        Count,
        Meta(description="Tokens of the instructions that a client gets; they list the servers and what each is for."),
    ] = 300
    first_discovery_wait_s: Annotated[
        Seconds,
        Meta(description="A search waits this long at most for servers that are being discovered for the first time."),
    ] = 3.0
    notify_catalogue_changes: Annotated[
        bool,
        Meta(description="Tell clients of changed tools, resources and prompts by `list_changed` notifications."),
    ] = True
    show_debug: Annotated[bool, Meta(description="Serve the debug page of the status API.")] = True
    log_level: Annotated[LogLevel, Meta(description="Least severe records that are logged.")] = "info"
    tokenizer_timeout_s: Annotated[
        Seconds, Meta(description="Time for loading the tokenizer; after it, token counts are estimates.")
    ] = 30.0
    max_query_chars: Annotated[Count, Meta(description="Longer search queries are cut at this many characters.")] = 6000
    rerank: Annotated[
        Rerank,
        Meta(
            description="Search compares meanings, too, by a sentence model (see `docs/search.md`): `auto` if one is "
            "installed, `off` never, `neural` as `auto`, but with a warning if it is not."
        ),
    ] = "auto"

    def __repr__(self) -> str:
        return f"Settings(listen={self.listen!r}, ...)"

    @property
    def drain_within_s(self) -> float:
        """Return how long calls may go on at shutdown: the rest of `shutdown_s` is for stopping the servers."""
        return min(self.drain_s, self.shutdown_s / 2)

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port of `listen`. Raises `ValueError` if it is not `host:port`."""
        return split_address(self.listen)
