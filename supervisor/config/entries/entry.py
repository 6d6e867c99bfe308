"""The settings of one server: an entry of `mcpServers`. See `structs` for the rules of such a struct."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from actors.protocol.asking.questions import Fallback
from supervisor.config.entries.oauth import OAuthConfig
from supervisor.config.entries.roots import MAX_ROOTS
from supervisor.config.syntax.units import MIB, Ask, Count, Eras, Kind, PositiveSeconds, Restart, Seconds, Size


class ServerConfig(Struct, frozen=True, kw_only=True):
    """One entry of `mcpServers`, expanded and validated. Unexpanded if it is `disabled`."""

    name: Annotated[str, Meta(description="The key of the entry.")]
    command: Annotated[str, Meta(description="Program of a local server: a path, or a name looked up in `PATH`.")] = ""
    args: Annotated[tuple[str, ...], Meta(description="Arguments of the program.")] = ()
    env: Annotated[dict[str, str], Meta(description="Environment variables of the program besides the basic ones.")] = (
        field(default_factory=dict)
    )
    cwd: Annotated[
        str | None, Meta(description="Working directory; a relative one starts at the configuration file's directory.")
    ] = None
    url: Annotated[str, Meta(description="Address of a remote server: http, https, ws or wss.")] = ""
    headers: Annotated[dict[str, str], Meta(description="HTTP headers sent to a remote server.")] = field(
        default_factory=dict
    )
    oauth: Annotated[
        OAuthConfig, Meta(description="How to log in at a remote server, where the defaults do not do; see below.")
    ] = OAuthConfig()
    kind: Kind = "stdio"
    passed: tuple[str, ...] = ()
    """The names in `env` whose values come from the daemon's own environment (`pass_env`)."""
    slug: Annotated[
        str | None, Meta(description="Name in tool paths instead of the key; the same rules as for keys.")
    ] = None
    description: Annotated[str, Meta(description="What the server is for; shown to people and found by search.")] = ""
    disabled: Annotated[bool, Meta(description="Keep the entry but never start the server.")] = False
    idle_timeout_s: Annotated[
        Seconds, Meta(description="A server without calls sleeps after this time; 0 keeps it running.")
    ] = 180.0
    start_timeout_s: Annotated[
        PositiveSeconds, Meta(description="From the start of the process to the end of the handshake.")
    ] = 60.0
    probe_timeout_s: Annotated[
        PositiveSeconds, Meta(description="How long the server may take to answer which protocol era it speaks.")
    ] = 20.0
    install_timeout_s: Annotated[
        PositiveSeconds,
        Meta(
            description="A server started by a launcher that installs (npx, uvx, docker, ...) has this long instead of "
            "the two above, while its processes work."
        ),
    ] = 900.0
    install_quiet_s: Annotated[
        PositiveSeconds,
        Meta(
            description="Such a launcher that does nothing for this time at a first start is not installing any more."
        ),
    ] = 90.0
    install_grace_s: Annotated[
        Seconds, Meta(description="To stop it while it installs, SIGTERM, and after this time SIGKILL.")
    ] = 10.0
    unresponsive_s: Annotated[
        PositiveSeconds,
        Meta(
            description="After a call during which it said nothing at all, the time it has for any sign of life; "
            "it is replaced after a quarter of it more, which is for what arrived at the end."
        ),
    ] = 5.0
    discovery_timeout_s: Annotated[
        Annotated[float, Meta(ge=5, le=31_536_000)], Meta(description="Time for listing everything the server offers.")
    ] = 60.0
    call_timeout_s: Annotated[
        PositiveSeconds | None, Meta(description="Deadline of a call; null takes the daemon's.")
    ] = None
    call_max_s: Annotated[
        PositiveSeconds,
        Meta(
            description="Longest time of a call all the same, where progress of the server or a question to the client "
            "puts its deadline off."
        ),
    ] = 600.0
    task_max_s: Annotated[
        PositiveSeconds,
        Meta(
            description="Longest time that a task of a client keeps the server awake, and that the client can ask for "
            "it, where the server itself keeps it for longer."
        ),
    ] = 3600.0
    ask: Annotated[
        Ask,
        Meta(
            description="Whom the server may ask something while it works on a call (elicitation, sampling, roots): "
            "`clients`: the client that made the call; `everyone`: where that cannot be asked also a person, on a page "
            "of the daemon or through a result of `execute_mcp_tool`; `none`: nobody."
        ),
    ] = "clients"
    confirm: Annotated[
        Annotated[tuple[str, ...], Meta(max_length=1000)],
        Meta(
            description="Names of tools, `*` for any rest, that run only after the user has said yes: to the "
            "client, or on a page of the daemon."
        ),
    ] = ()
    roots: Annotated[
        Annotated[tuple[str, ...], Meta(max_length=MAX_ROOTS)],
        Meta(
            description="Directories that the server is told of as its roots, instead of those of the client; "
            "a relative one starts at the configuration file's directory."
        ),
    ] = ()
    era: Annotated[
        Eras,
        Meta(
            description="The era of the protocol. `auto`: what the server is found to speak, the modern one first; "
            "`legacy`: up to 2025-11-25; `modern`: since 2026-07-28."
        ),
    ] = "auto"
    question_timeout_s: Annotated[
        PositiveSeconds, Meta(description="Time for an answer; then the server gets `question_fallback`.")
    ] = 300.0
    question_fallback: Annotated[
        Fallback,
        Meta(
            description="What the server gets for a form that nobody answers in time: that it was cancelled, the "
            "defaults of its fields (if no field needs more, and none is a yes or no), or an error."
        ),
    ] = "cancel"
    max_questions_per_call: Annotated[
        Count,
        Meta(
            description="Questions that the server may ask during one call, each of which costs a user's attention or "
            "tokens; it gets an error for more."
        ),
    ] = 256
    max_questions_per_min: Annotated[
        Count, Meta(description="Questions that it may ask within any minute, of all clients and calls together.")
    ] = 300
    restart: Annotated[
        Restart,
        Meta(
            description="When an ended process is started again. `permanent`: always; `temporary`: never; "
            "`transient`: after a failure."
        ),
    ] = "transient"
    max_in_flight: Annotated[Count, Meta(description="Calls the server works on at the same time.")] = 64
    max_queued: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)], Meta(description="Calls that wait for their turn; more are refused.")
    ] = 128
    max_queued_bytes: Annotated[
        Size, Meta(description="Arguments of the calls that wait for their turn, all together; more calls are refused.")
    ] = 64 * MIB
    max_line_bytes: Annotated[
        Size, Meta(description="Largest message of the server; a call whose answer is larger fails as `too_large`.")
    ] = 16 * MIB
    max_event_bytes: Annotated[
        Size,
        Meta(description="Largest event on an event stream of a remote server; a larger answer fails as `too_large`."),
    ] = 4 * MIB
    connect_timeout_s: Annotated[
        PositiveSeconds,
        Meta(description="Time for a connection to a remote server: its name, its address, TLS."),
    ] = 5.0
    write_timeout_s: Annotated[
        PositiveSeconds,
        Meta(description="A server that reads nothing of what is written to it for this time is replaced."),
    ] = 10.0
    stop_eof_s: Annotated[Seconds, Meta(description="To stop it, its input is closed and this time is waited.")] = 2.0
    stop_term_s: Annotated[Seconds, Meta(description="Then SIGTERM, and after this time SIGKILL.")] = 2.0
    backoff_initial_s: Annotated[PositiveSeconds, Meta(description="Pause before the first restart; it doubles.")] = 1.0
    backoff_max_s: Annotated[PositiveSeconds, Meta(description="Longest pause before a restart.")] = 60.0
    max_restarts: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)], Meta(description="More failed starts within `period_s` give up.")
    ] = 5
    period_s: Annotated[PositiveSeconds, Meta(description="The window of `max_restarts`.")] = 600.0
    probe_interval_s: Annotated[
        PositiveSeconds,
        Meta(
            description="A server given up is tried again on demand at most this often; lists that look wrong (empty, "
            "or not read to their end) are read again this often while the server is awake."
        ),
    ] = 300.0
    retry_max_s: Annotated[
        PositiveSeconds,
        Meta(
            description="A server given up whose tools were never listed is tried again by itself, after "
            "`probe_interval_s` and then ever more rarely, at least this often."
        ),
    ] = 1800.0
    catalogue_max_age_s: Annotated[
        Seconds,
        Meta(description="Lists older than this are read again, give or take a tenth. 0: age does not matter."),
    ] = 86_400.0
    catalogue_min_age_s: Annotated[
        PositiveSeconds,
        Meta(
            description="A server that says itself for how long its lists are good (`ttlMs`) is asked again after that "
            "while it is awake, but no sooner than this."
        ),
    ] = 60.0
    refresh_asleep: Annotated[
        bool | None,
        Meta(
            description="Wake the server for old lists if it sleeps, when nothing else waits to start; null: only a "
            "remote one, for which that starts no process."
        ),
    ] = None
    stable_s: Annotated[
        PositiveSeconds, Meta(description="A process ready for this long counts as stable and forgives one failure.")
    ] = 60.0

    @property
    def path_name(self) -> str:
        return self.slug or self.name

    def __repr__(self) -> str:
        return f"ServerConfig(name={self.name!r}, kind={self.kind!r}, disabled={self.disabled!r}, ...)"
