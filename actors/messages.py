"""What actors say to one another: frozen structs that could cross a wire. What one says to itself is beside it. Pure.

Asks go down (front -> router -> server) and say who asks, facts go up (server -> registry).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.kit.mailbox import Address, Ask, Reply
from actors.life.breakers import OpenBreaker
from actors.life.states import Down, State, Wanted
from actors.principal import LOCAL, ClientKey, Principal
from actors.protocol.agreement.versions import Era
from actors.protocol.asking.questions import Visitor
from actors.protocol.listing import Readings
from actors.protocol.outbound import ClientRequest


class CallTrace(Protocol):
    """The trace that a call is in."""

    def send(self, meta: bytes) -> bytes:
        """The call is sent now, for the first time or again. Return its `_meta` with the context of the trace.

        Both are JSON members without braces.
        """

    def end(self, error: str, code: int = 0) -> None:
        """It is over; `error` is a value of `error.type`, empty for none, `code` that of the answer, if it has one."""


class Result(msgspec.Struct, frozen=True):
    """What a server answered: a JSON object as it wrote it, and the era it is written in.

    `run` is the incarnation that did, by a name that no other one of any server has; empty if nobody asked for it.
    `waited_s`: how long the call waited to be sent, for its turn, or for the server, where that was not up (`woke`).
    `lost`: what an earlier process held in memory for this client, which is gone and has to be said; mostly empty.
    """

    body: msgspec.Raw
    era: Era
    run: str = ""
    waited_s: float = 0.0
    woke: bool = False
    lost: str = ""


class Note(msgspec.Struct, frozen=True):
    """A notification for the client of one call; `params` is JSON text."""

    method: str
    params: bytes


class Question(msgspec.Struct, frozen=True):
    """A request for the client of one call.

    `progress`, which never waits, is called with what the client tells of its work on it, the params of a notification;
    None if its server does not want to hear that.
    """

    method: str
    params: msgspec.Raw
    progress: Callable[[bytes], None] | None = None


class Caller(Protocol):
    """The address of whoever made a call: one request of one client, until it has its result."""

    @property
    def identity(self) -> ClientKey:
        """Who that is: all requests of one client have the same, and those of nobody else, as far as can be known."""

    def note(self, note: Note) -> bool:
        """Tell the client something. Never waits; False if it was dropped, as the client cannot take it now."""

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        """Ask the client something; the reply is its result, a JSON object.

        It fails with `RemoteError` for an error of the client, with `CannotAsk` where nobody can be asked. Abandoning
        the reply takes the question back.
        """

    def visitor(self, question: Question | None = None) -> Visitor | None:
        """Return how the client hears, whenever that is, that its user is done at an address; None if it does not.

        `question` is what asked it to open that; without one it is the error that answers the call.
        """


class CallServer(Ask[Result], ClientRequest, frozen=True, kw_only=True):
    """Send one request to a server, waking it if need be.

    `deadline_s` counts from the arrival of the message; `waited_s` passed before that, somewhere else. What the server
    says and asks meanwhile goes to `exchange`, as far as `interest` goes. `definition`: the digest of the tool that is
    called, if it must not be another one by then. `resumes`: its `retry` has a state, so this goes on with a request
    that only whoever gave the state knows. `run`: the request is about what only that incarnation knows; no other one
    gets it, and none is started for it. `by_requests`: its client is asked by requests alone, as those of the legacy
    era are. `by_model`: a form is told to a model, which answers only when all calls that it made beside this one have
    ended, too. `in_turn`: it is one of several of a request, and may ask something that must not be taken for what
    another one asks. `trace` is told when it is sent. `lasts`: it is a stream, which is over when somebody ends it, and
    counts as no call in flight.
    """

    server: str
    exchange: Caller | None = None
    definition: bytes = b""
    resumes: bool = False
    by_requests: bool = False
    by_model: bool = False
    in_turn: bool = False
    lasts: bool = False
    run: str = ""
    trace: CallTrace | None = None
    deadline_s: float = 60.0
    waited_s: float = 0.0
    principal: Principal = LOCAL

    @property
    def limit_s(self) -> float:
        """Within how many seconds whoever called wants an answer."""
        return self.waited_s + self.deadline_s

    def passed_on(self, left_s: float) -> CallServer:
        """Return the same call for somebody else, when so much is left of its deadline."""
        return replace(self, deadline_s=max(0.0, left_s), waited_s=self.limit_s - max(0.0, left_s))

    @property
    def tool(self) -> str:
        """The tool that it calls, empty for other requests."""
        return self.name if self.method == "tools/call" else ""

    @property
    def client(self) -> ClientKey:
        """Who hears of it; see `Caller.identity`."""
        return (self.principal, None) if self.exchange is None else self.exchange.identity


class WakeServer(Ask[None], frozen=True, kw_only=True):
    """Bring a server up; answered when it is ready, fails when it cannot be. `operator`: forget earlier failures."""

    server: str
    operator: bool = False
    urgent: bool = True
    principal: Principal = LOCAL


class SleepServer(Ask[None], frozen=True, kw_only=True):
    """Send a server to sleep; answered when it has no process."""

    server: str
    principal: Principal = LOCAL


class RestartServer(Ask[None], frozen=True, kw_only=True):
    """Stop a server politely and start it afresh, whatever its state; earlier failures are forgotten.

    Answered when it is ready; fails when the fresh start failed, though it may be tried again.
    """

    server: str
    principal: Principal = LOCAL


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """What a reading of a server's lists found: totals, names of tools that differ from before, and problems.

    `renamed` has new names by old ones; they are among those `added` and `removed`, too.
    """

    tools: int = 0
    resources: int = 0
    prompts: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    renamed: dict[str, str] = {}
    problems: tuple[str, ...] = ()


class RefreshServer(Ask[Refreshed], frozen=True, kw_only=True):
    """Read a server's lists now, waking it if need be; answered when a reading that began afterwards is done.
    `operator`: forget earlier failures.
    """

    server: str
    operator: bool = True
    principal: Principal = LOCAL


class CloseBreakers(msgspec.Struct, frozen=True):
    """Calls of a server may fare better than before: something about it was changed."""


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """How a server leaves while the daemon goes on: its configuration has changed, or it is not configured any more.

    Calls in flight have `drain_s` seconds to end; those that have not been sent, and whoever comes later, are passed on
    to the `successor`, if there is one. `reason` is for those whose call is cut off. Nothing is reported any more: that
    is up to the successor, or the server is not there.
    """

    reason: str
    drain_s: float
    successor: Address[Any] | None = None


class StopServer(Ask[None], frozen=True):
    """End a server for good; answered when nothing of it is left."""

    departure: Departure | None = None


Activity = Literal["waiting for its turn", "waiting for room", "installing"]
"""What a server that is starting does: others start or install before it; its launcher installs it first."""


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One instance by its number, which no other one of its launch has meanwhile. Moments are of the trio clock.

    `leads`: its lists are those of the launch. `address` is that of a replica, as it may be shown. `leaving`: it gets
    no more calls, and ends. `last_error` is what is wrong now.
    """

    number: int
    state: State
    since: float
    pid: int | None = None
    leads: bool = False
    address: str = ""
    leaving: bool = False
    in_flight: int = 0
    waiting: int = 0
    calls: int = 0
    failures: int = 0
    restarts: int = 0
    last_error: str | None = None


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How one server is doing. Moments are of the trio clock, as that on the wall may be set. Calls are totals.

    `since` is when it came into its state, `used_at` when a call began or ended there last, or when it got ready,
    None before; `activity` says more where there is more to say. `next_start` is when a
    server that failed is tried again by itself, None if it is not. `disabled`: it is switched off, nothing may start
    it, and a call that names it is told so. `requires_reauth`: its operator has to log in there. `reason`: why it
    failed, in words that may reach clients; where that is how its process ended, its `exit_code` or `signal` is there,
    too. `last_error` is what is wrong now, for operators, since `last_error_at`; a
    server that recovered has none. `server_version` is what it says of its own version. `strays` are answers that
    matched nothing, `unheard` notifications about calls that went to nobody: unwanted, of no known call, or too many
    for their client. `one_at_a_time`: calls of tools that may ask take turns, as it asked something while several were
    in flight, and nothing says about which of them; `asked_since` is since when some wait for their turn until a client
    of another one answers. `legacy_session`: a session of the legacy era is open beside the modern conversation.
    `tasks`: those of clients that are not over, as far as is known. `retry_at` is when a call may find it up again,
    sooner than `next_start` where a call may try it; None where it is up or coming, and where calls do not help.
    `awaits` are values that somebody has to give before it can be started. `down`: it failed, and no start has
    succeeded since; see `Recovery.down`. `discovery`: how its lists were read. `last_sign_at` is when it last said
    anything; None if it is not there, or has not.
    `breakers` are those that are open: calls of what they are about are refused.
    `instances`: each of them, where there can be several.
    """

    server: str
    state: State
    wanted: Wanted
    since: float
    used_at: float | None = None
    transport: str = "stdio"
    incarnation: int = 0
    pid: int | None = None
    era: Era | None = None
    protocol_version: str | None = None
    server_version: str = ""
    restarts: int = 0
    last_error: str | None = None
    last_error_at: float | None = None
    activity: Activity | None = None
    next_start: float | None = None
    retry_at: float | None = None
    in_flight: int = 0
    waiting: int = 0
    calls: int = 0
    failures: int = 0
    noise: int = 0
    strays: int = 0
    unheard: int = 0
    one_at_a_time: bool = False
    legacy_session: bool = False
    asked_since: float | None = None
    tasks: int = 0
    stderr: str = ""
    disabled: bool = False
    requires_reauth: bool = False
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    awaits: tuple[str, ...] = ()
    down: Down | None = None
    discovery: Readings = Readings()
    last_sign_at: float | None = None
    breakers: tuple[OpenBreaker, ...] = ()
    instances: tuple[InstanceStatus, ...] = ()


class ReadServer(Ask[ServerStatus], frozen=True):
    """Ask for a server's status now; with the newest lines of its `stderr` only if they are asked for."""

    stderr: bool = False


class ServerChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A server moved to another state; or, where `previous` is its state, there is more to say of it than before."""

    status: ServerStatus
    previous: State
    reason: str = ""


class ServerListed(msgspec.Struct, frozen=True, kw_only=True):
    """A server was discovered, in so many `seconds`; or was not, and `failure` says why there is no list of tools."""

    server: str
    incarnation: int
    offer: Offer
    seconds: float | None = None
    failure: str = ""


class ServerRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """A server is no longer configured."""

    server: str


class EraLearned(msgspec.Struct, frozen=True, kw_only=True):
    """Which era this launch speaks, to be remembered."""

    server: str
    era: Era
