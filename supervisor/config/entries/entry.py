"""The settings of one server: an entry of `mcpServers`. See `structs` for the rules of such a struct."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from actors.catalogue.metadata import Safety
from actors.catalogue.tool_rules import NO_RULES, ToolRules
from actors.protocol.asking.questions import Fallback
from actors.transport.mask import Mask
from actors.transport.redaction import Confidential
from supervisor.config.entries.oauth import OAuthConfig
from supervisor.config.entries.roots import MAX_ROOTS
from supervisor.config.structs import Settings
from supervisor.config.syntax.units import (
    MIB,
    Ask,
    Confirm,
    Count,
    Derived,
    Eras,
    Kind,
    PositiveSeconds,
    Restart,
    Seconds,
    Size,
    TokenBudget,
)


class ServerConfig(Confidential, Struct, frozen=True, kw_only=True):
    """One entry of `mcpServers`, expanded and validated. Unexpanded if it is `disabled`."""

    name: Derived[str]
    """The key of the entry."""
    command: str = ""
    """Program of a local server: a path, or a name looked up in `PATH`."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the program besides the basic ones."""
    cwd: str | None = None
    """Working directory; a relative one starts at the configuration file's directory."""
    url: str = ""
    """Address of a remote server: http, https, ws or wss."""
    headers: dict[str, str] = field(default_factory=dict)
    """HTTP headers sent to a remote server."""
    oauth: OAuthConfig = OAuthConfig()
    """How to log in at a remote server, where the defaults do not do; see below."""
    kind: Derived[Kind] = "stdio"
    passed: Derived[tuple[str, ...]] = ()
    """The names in `env` whose values come from the daemon's own environment (`pass_env`)."""
    slug: str | None = None
    """Name in tool paths instead of the key; the same rules as for keys."""
    description: str = ""
    """What the server is for; shown to people and found by search."""
    disabled: bool = False
    """Keep the entry but never start the server."""
    idle_timeout_s: Seconds = 180.0
    """A server without calls sleeps after this time; 0 keeps it running."""
    start_timeout_s: PositiveSeconds = 60.0
    """From the start of the process to the end of the handshake."""
    probe_timeout_s: PositiveSeconds = 20.0
    """How long the server may take to answer which protocol era it speaks."""
    install_timeout_s: PositiveSeconds = 900.0
    """A server started by a launcher that installs (npx, uvx, docker, ...) has this long instead of the two above,
    while its processes work."""
    install_quiet_s: PositiveSeconds = 90.0
    """Such a launcher that does nothing for this time at a first start is not installing any more."""
    install_grace_s: Seconds = 10.0
    """To stop it while it installs, SIGTERM, and after this time SIGKILL."""
    unresponsive_s: PositiveSeconds = 5.0
    """After a call during which it said nothing at all, the time it has for any sign of life; it is replaced after a
    quarter of it more, which is for what arrived at the end."""
    discovery_timeout_s: Annotated[float, Meta(ge=5, le=31_536_000)] = 60.0
    """Time for listing everything the server offers."""
    call_timeout_s: PositiveSeconds | None = None
    """Deadline of a call; null takes the daemon's."""
    call_max_s: PositiveSeconds = 600.0
    """Longest time of a call all the same, where progress of the server or a question to the client puts its deadline
    off."""
    task_max_s: PositiveSeconds = 3600.0
    """Longest time that a task of a client keeps the server awake, and that the client can ask for it, where the server
    itself keeps it for longer."""
    ask: Ask = "clients"
    """Whom the server may ask something while it works on a call (elicitation, sampling, roots): `clients`: the client
    that made the call; `everyone`: where that cannot be asked also a person, on a page of the daemon or through a
    result of `execute_mcp_tool`; `none`: nobody."""
    expose: Safety | None = None
    """The same as that of the daemon, for this server; null takes the daemon's."""
    confirm: Confirm | Annotated[tuple[str, ...], Meta(max_length=1000)] = ()
    """Which tools run only after the user has said yes, to the client or on a page of the daemon: names, `*` for any
    rest, beside those that the daemon's level says; or, as a word, a level of this server in place of the daemon's."""
    confirm_except: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()
    """Names of tools, `*` for any rest, that need no yes although `confirm`, or a level, says so."""
    confirm_within_s: dict[str, PositiveSeconds] = field(default_factory=dict)
    """Time for that yes by the tool's name, `*` for any rest; the first that fits counts, `question_timeout_s` for
    others."""
    tools: ToolRules = NO_RULES
    """Which tools clients see, and under which names; see below. A list is its `allow`."""
    result_token_budget: TokenBudget | dict[str, TokenBudget] | None = None
    """The same as that of the daemon, for the tools of this server; or for single ones by their names, `*` for any
    rest, of which the first that fits counts. null takes the daemon's."""
    roots: Annotated[tuple[str, ...], Meta(max_length=MAX_ROOTS)] = ()
    """Directories that the server is told of as its roots, instead of those of the client; a relative one starts at the
    configuration file's directory."""
    era: Eras = "auto"
    """The era of the protocol. `auto`: what the server is found to speak, the modern one first; `legacy`: up to
    2025-11-25; `modern`: since 2026-07-28."""
    question_timeout_s: PositiveSeconds = 300.0
    """Time for an answer; then the server gets `question_fallback`."""
    question_fallback: Fallback = "cancel"
    """What the server gets for a form that nobody answers in time: that it was cancelled, the defaults of its fields
    (if no field needs more, and none is a yes or no), or an error."""
    max_questions_per_call: Count = 256
    """Questions that the server may ask during one call, each of which costs a user's attention or tokens; it gets an
    error for more."""
    max_questions_per_min: Count = 300
    """Questions that it may ask within any minute, of all clients and calls together."""
    restart: Restart = "transient"
    """When an ended process is started again. `permanent`: always; `temporary`: never; `transient`: after a failure."""
    max_in_flight: Count = 64
    """Calls the server works on at the same time."""
    max_queued: Annotated[int, Meta(ge=0, le=1_000_000)] = 128
    """Calls that wait for their turn; more are refused."""
    max_queued_bytes: Size = 64 * MIB
    """Arguments of the calls that wait for their turn, all together; more calls are refused."""
    max_line_bytes: Size = 16 * MIB
    """Largest message of the server; a call whose answer is larger fails as `too_large`."""
    max_event_bytes: Size = 4 * MIB
    """Largest event on an event stream of a remote server; a larger answer fails as `too_large`."""
    connect_timeout_s: PositiveSeconds = 5.0
    """Time for a connection to a remote server: its name, its address, TLS."""
    write_timeout_s: PositiveSeconds = 10.0
    """A server that reads nothing of what is written to it for this time is replaced."""
    stop_eof_s: Seconds = 2.0
    """To stop it, its input is closed and this time is waited."""
    stop_term_s: Seconds = 2.0
    """Then SIGTERM, and after this time SIGKILL."""
    backoff_initial_s: PositiveSeconds = 1.0
    """Pause before the first restart; it doubles."""
    backoff_max_s: PositiveSeconds = 60.0
    """Longest pause before a restart."""
    max_restarts: Annotated[int, Meta(ge=0, le=1_000_000)] = 5
    """More failed starts within `period_s` give up."""
    period_s: PositiveSeconds = 600.0
    """The window of `max_restarts`."""
    probe_interval_s: PositiveSeconds = 300.0
    """A server given up is tried again on demand at most this often; lists that look wrong (empty, or not read to their
    end) are read again this often while the server is awake."""
    retry_max_s: PositiveSeconds = 1800.0
    """A server given up whose tools were never listed is tried again by itself, after `probe_interval_s` and then ever
    more rarely, at least this often."""
    catalogue_max_age_s: Seconds = 86_400.0
    """Lists older than this are read again, give or take a tenth. 0: age does not matter. That of the daemon, if it is
    not set."""
    catalogue_min_age_s: PositiveSeconds = 60.0
    """A server that says itself for how long its lists are good (`ttlMs`) is asked again after that while it is awake,
    but no sooner than this."""
    refresh_asleep: bool | None = None
    """Wake the server for old lists if it sleeps, when nothing else waits to start; null: only a remote one, for which
    that starts no process."""
    stable_s: PositiveSeconds = 60.0
    """A process ready for this long counts as stable and forgives one failure."""

    @property
    def path_name(self) -> str:
        return self.slug or self.name

    @property
    def is_refreshed_asleep(self) -> bool:
        return self.kind != "stdio" if self.refresh_asleep is None else self.refresh_asleep

    def deadline_s(self, settings: Settings) -> float:
        """Return the deadline of a call."""
        return settings.call_timeout_s if self.call_timeout_s is None else self.call_timeout_s

    def mask(self) -> Mask:
        """Return what hides the secrets of this entry in texts of its server."""
        given = {f"header {name}": value for name, value in self.headers.items()}
        given |= {"client secret": self.oauth.client_secret, "private key": self.oauth.private_key}
        return Mask({**{name: value for name, value in given.items() if value}, **self.env}, self.args)
