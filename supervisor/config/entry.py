"""The settings of one server: an entry of `mcpServers`, with its `oauth`, `sandbox` and roots, and its digest.

The rules of such a struct are those of `settings`. Other programs write an object `oauth`, too: what they call
otherwise is read as ours.

Equal launches may share one process, different ones never do. By the digest of a launch (`launch_digest`):
- Everything of the configuration that the started process can see goes in: program, arguments, directory, environment,
  address, headers, as whom we log in, what it is told that it may ask. What it inherits from us as it happens to be
  (`passed`: a display, a socket of an agent) stays out. Settings of ours (timeouts, limits) stay out: changing them
  needs no new process.
- What came after the first version goes in only where it is not its default: else an update of the daemon would give
  every launch another digest, and what is known of every server would be lost.
- The digest is keyed, so that it may be shown or stored: without the key, guesses of a secret cannot be tried against
  it. The key stays in the data directory.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Meta, Struct, field, structs

from actors.catalogue.metadata import Safety
from actors.catalogue.tool_rules import NO_RULES, EntryRules, ToolRules
from actors.catalogue.trust import Trust
from actors.errors import ConfigError
from actors.instances.settings import MAX_INSTANCES
from actors.protocol.asking.questions import Fallback
from actors.transport.redaction import Confidential, Mask
from actors.transport.stdio.command import Launch
from actors.transport.stdio.sandbox import Sandbox, objection_to_place
from supervisor.config.client_table import keys_by_name
from supervisor.config.expansion import TieredText
from supervisor.config.jsonc import KeyPath
from supervisor.config.keys import hint_of, is_comment, translate
from supervisor.config.settings import Settings
from supervisor.config.value_rules import ValueRule
from supervisor.config.values import (
    MIB,
    Ask,
    Confirm,
    Count,
    Derived,
    Eras,
    Grant,
    Kind,
    Mebibytes,
    PositiveSeconds,
    Problem,
    Restart,
    SandboxKind,
    Seconds,
    SigningAlgorithm,
    Size,
    TokenBudget,
    Whose,
    is_address,
    keys_of,
    read_members,
)

_KEYS: Final = {name.removeprefix("oauth."): each for name, each in keys_by_name().items() if name.startswith("oauth.")}
_SPELLINGS: Final = {
    name: key.to for name, clients in _KEYS.items() for key in clients.values() if key.meaning == "renamed"
}
"""What clients write in place of our keys."""
_ADDRESSES: Final = ("client_metadata_url", "issuer", "redirect_uri")


class OAuthConfig(Confidential, Struct, frozen=True, kw_only=True):
    """How to log in at a remote server, expanded and validated. Most servers need none of it."""

    enabled: bool = True
    """Log in where the server asks for it. A header `Authorization` in `headers` wins."""
    login: Whose = "everyone"
    """Whose the login is. `everyone`: one login, made by an operator, for all who have the server. `user`: each user
    logs in, and nobody uses the login of another one."""
    grant: Grant = "authorization_code"
    """`authorization_code`: a user says yes in a browser (`mcpvisor login`). `client_credentials`: the daemon logs in
    for itself, without a user."""
    client_id: str = ""
    """The client as which the daemon was registered; empty: it registers itself."""
    client_secret: str = ""
    """The secret of that client, best as `${NAME}`."""
    private_key: str = ""
    """A private key in PEM in place of the secret (`private_key_jwt`), best as `${NAME}`."""
    signing_alg: SigningAlgorithm = "RS256"
    """The algorithm by which that key signs."""
    scope: str = ""
    """What to ask for, words with blanks between them; empty: what the server wants."""
    issuer: str = ""
    """The authorization server that knows the client. No other one gets its secret."""
    client_metadata_url: str = ""
    """Address of a client ID metadata document of yours, for authorization servers that take one."""
    redirect_uri: str = ""
    """Where the browser comes back to; empty: the daemon's own address and `/oauth/callback`."""


_Report = Callable[[str, str, str], None]
"""Records a fault of one key: the key, what is wrong, and what to do."""


def translate_oauth(members: Mapping[str, Any], problem: _Report) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the members under our keys, and for those spelt otherwise how; an unknown one is a problem."""
    ours = keys_of(OAuthConfig)
    for name in members:
        if name not in ours and name not in _KEYS and not is_comment(name):
            problem(name, "unknown key", hint_of(name, [*ours, *_KEYS], f"known are {', '.join(ours)}"))
    own, spelled = translate(members, ours, _SPELLINGS)
    own = {key: value for key, value in own.items() if value is not None}
    scope = own.get("scope")
    if isinstance(scope, list) and all(isinstance(word, str) for word in scope):
        own["scope"] = " ".join(scope)
    return own, spelled


def check(own: Mapping[str, Any], problem: _Report) -> None:
    """Record what is of the right type, but of no use."""
    for key in _ADDRESSES:
        text = own.get(key, "")
        insecure = key == "client_metadata_url" and not text.lower().startswith("https:")
        if text and (insecure or not is_address(text, "http")):
            problem(key, "is not an address", "it begins with https://")
    machine = own.get("grant") == "client_credentials"
    if machine and not (own.get("client_id") and (own.get("client_secret") or own.get("private_key"))):
        problem("grant", "a client that logs in for itself has to be known", 'give "client_id" and "client_secret"')
    if machine and own.get("login") == "user":
        problem("login", "a client that logs in for itself has no user", 'leave "login" or "grant" out')
    if (own.get("client_secret") or own.get("private_key")) and not own.get("client_id"):
        problem("client_id", "a secret is of a client", 'give "client_id", too')


SANDBOX: Final = "sandbox"
_MAX_PLACES: Final = 64
_PLACES: Final = ("read", "write")

Places = Annotated[tuple[str, ...], Meta(max_length=_MAX_PLACES)]


class SandboxConfig(Struct, frozen=True, kw_only=True):
    """What a local server may do, expanded and validated."""

    kind: SandboxKind = "none"
    """`bubblewrap`: the server runs in a sandbox that `bwrap` makes, or not at all. `none`: it may do all that
    the daemon may."""
    read: Places = ()
    """Files and directories that the server may read beside system files; a relative one starts at the directory of the
    configuration file."""
    write: Places = ()
    """Directories, or files, that it may read and write beside its working directory."""
    network: bool = False
    """Let it use the network, and all that listens on this machine."""

    @property
    def sandbox(self) -> Sandbox | None:
        if self.kind == "none":
            return None
        return Sandbox(read=self.read, write=self.write, network=self.network)


def read_sandbox(
    written: Mapping[str, Any], place_of: Callable[[KeyPath, str], str], home: str, problem: Problem
) -> dict[str, Any]:
    """Return the members of a sandbox. `place_of` gives what a path means: variables, `~`, and where it starts."""
    own = read_members(SandboxConfig, written, (SANDBOX,), problem)
    if "kind" not in written:
        problem((SANDBOX,), "says nothing without a kind", 'write "kind": "bubblewrap"')
    for key in _PLACES:
        own[key] = [posixpath.normpath(place_of((SANDBOX, key, at), text)) for at, text in enumerate(own.get(key, ()))]
        for at, place in enumerate(own[key]):
            if objection := _objection(place, posixpath.normpath(home)):
                problem((SANDBOX, key, at), *objection)
    return own


def check_sandbox(own: Mapping[str, Any], home: str, problem: Problem, *, process: bool) -> None:
    """Note why a server cannot have the sandbox of its entry: it is no process, or it may not write where it works."""
    cwd = own.get("cwd") or ""
    if own[SANDBOX].get("kind", "none") == "none":
        return
    if not process:
        problem((SANDBOX,), "only a server that is a process has a sandbox", "remove it")
    elif cwd and (objection := objection_to_place(posixpath.normpath(cwd), posixpath.normpath(home))):
        problem(("cwd",), f"a sandbox cannot have it: {objection}", "")


def _objection(place: str, home: str) -> tuple[str, str] | None:
    """Say what is wrong with a path, and what to do."""
    if not place.startswith("/"):
        return "is no absolute path", "write one that begins with / or ~/"
    if "\0" in place:
        return "holds a NUL character", "remove it"
    objection = objection_to_place(place, home)
    return (f"a sandbox cannot have it: {objection}", "") if objection else None


_MAX_ROOTS: Final = 64
_SCHEME: Final = "file://"


def root_uri(text: str, directory: PurePath) -> str:
    """Return the URI of a root; a relative path starts at `directory`. Raises `ConfigError` for another kind of URI."""
    if text.startswith(_SCHEME):
        return text
    if "://" in text:
        raise ConfigError("a root is a directory, or a URI that begins with file://")
    path = directory / text
    if not path.is_absolute():
        raise ConfigError("a relative path needs a configuration file to start at: write an absolute path")
    return path.as_uri()


def roots_result(uris: tuple[str, ...]) -> dict[str, Any]:
    return {"roots": [{"uri": uri, "name": _name(uri)} for uri in uris]}


def _name(uri: str) -> str:
    path = unquote(urlsplit(uri).path).rstrip("/")
    return path.rpartition("/")[2] or "/"


class ServerConfig(Confidential, Struct, frozen=True, kw_only=True):
    """One entry of `mcpServers`, expanded and validated. Unexpanded if it is `disabled`."""

    name: Derived[str]
    """The key of the entry."""
    kind: Derived[Kind] = "stdio"
    passed: Derived[tuple[str, ...]] = ()
    """The names in `env` whose values come from the daemon's own environment (`pass_env`)."""
    tiered: Derived[tuple[TieredText, ...]] = ()
    """The texts with places for values of teams and users; in the fields they stand with the defaults of these."""

    # Local servers
    command: str = ""
    """Program to start: a path, or a name that is looked up in `PATH`."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the program, besides those that always pass."""
    cwd: str | None = None
    """Working directory of the program; a relative one starts at the directory of the configuration file."""
    sandbox: SandboxConfig = SandboxConfig()
    """What the program may read, write and connect to; a word is the `kind`. See `docs/guides/sandbox.md`."""

    # Remote servers
    url: str = ""
    """Address of the server: http, https, ws or wss."""
    headers: dict[str, str] = field(default_factory=dict)
    """HTTP headers that the daemon sends with every request."""
    oauth: OAuthConfig = OAuthConfig()
    """How to log in, where the defaults do not do; see `docs/reference/logins.md`."""
    replicas: Annotated[tuple[str, ...], Meta(max_length=MAX_INSTANCES - 1)] = ()
    """Further addresses of the same server. A call goes to the one with the fewest calls; one that is away gets none.
    They get the same headers and logins as `url`, and are reached the same way."""
    connect_timeout_s: PositiveSeconds = 5.0
    """Time to connect: to look up its name, reach its address and agree on TLS."""
    max_event_bytes: Size | None = None
    """Largest event on an event stream; a larger answer fails as `too_large`. null: `max_line_bytes`."""

    # Name and purpose
    slug: str | None = None
    """Name in the paths of tools, in place of the key; the same rules hold for it."""
    description: str = ""
    """What the server is for. People see it, and search finds the server by it."""
    users: tuple[str, ...] = ()
    """Users that the server is for. Empty: those of the teams that have it, or everybody."""
    values: dict[str, ValueRule] = field(default_factory=dict)
    """What holds for the values that teams and users give: those of `${team:NAME}` and `${user:NAME}`, by name. See
    `docs/reference/values.md`."""
    disabled: bool = False
    """Keep the entry, but never start the server."""

    # Tools
    tools: ToolRules = NO_RULES
    """Which tools clients see, and under which names; see `docs/reference/tools.md`. A list is its `allow`."""
    expose: Safety | None = None
    """The highest safety level of the tools that clients see, as that of the daemon; null takes the daemon's."""
    trust: Trust | None = None
    """What becomes of tools that nobody has approved, as that of the daemon; null takes the daemon's."""
    confirm: Confirm | Annotated[tuple[str, ...], Meta(max_length=1000)] = ()
    """Which tools run only after the user has said yes. A list has names, `*` for any rest, which count beside the
    level of the daemon. A word is a level, for this server in place of the daemon's."""
    confirm_except: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()
    """Names of tools, `*` for any rest, that need no yes although `confirm`, or a level, says so."""
    confirm_within_s: dict[str, PositiveSeconds] = field(default_factory=dict)
    """Time for that yes by the name of the tool, `*` for any rest. The first name that fits counts; other tools have
    `question_timeout_s`."""
    read_only: Annotated[tuple[str, ...], Meta(max_length=1000)] | None = None
    """Names of tools, `*` for any rest, that only read by your word: `execute_read_only_mcp_tool` runs these alone.
    null: those that `docs/guides/trust.md` says."""

    # Calls
    call_timeout_s: PositiveSeconds | None = None
    """Deadline of a call; null takes the daemon's."""
    call_max_s: PositiveSeconds = 600.0
    """Longest time of a call, whatever puts its deadline off: progress of the server, or a question to the client."""
    task_max_s: PositiveSeconds = 3600.0
    """Longest time that a task of a client keeps the server awake. A client cannot ask for more, although the server
    itself may keep the task for longer."""
    max_in_flight: Count = 64
    """Most calls that the server works on at the same time."""
    max_queued: Annotated[int, Meta(ge=0, le=1_000_000)] = 128
    """Most calls that wait for their turn; more are refused."""
    max_queued_bytes: Size = 64 * MIB
    """Size of the arguments of all calls that wait for their turn; more calls are refused."""
    max_line_bytes: Size = 16 * MIB
    """Largest message of the server; a call whose answer is larger fails as `too_large`."""
    max_lines_per_s: Annotated[int, Meta(ge=100, le=10_000_000)] = 10_000
    """Lines that are read of a local server in a second, beside as many at once. Others wait in its pipes."""
    result_token_budget: TokenBudget | dict[str, TokenBudget] | None = None
    """Most tokens of a result for a model, as that of the daemon, for the tools of this server. An object has single
    tools by their names, `*` for any rest; the first name that fits counts. null takes the daemon's."""

    # What it may take of the machine
    max_memory_mib: Mebibytes | None = None
    """Memory of all processes of the server together, in MiB. One that is over it is replaced; null: as much as there
    is. See `docs/guides/budgets.md`."""
    max_processes: Count | None = None
    """Processes of the server, itself included. In a control group it gets no more; elsewhere it is replaced."""
    max_open_files: Annotated[int, Meta(ge=16, le=1_000_000_000)] | None = None
    """Files that each of its processes may have open (RLIMIT_NOFILE)."""
    max_processors: Annotated[float, Meta(ge=0.01, le=10_000)] | None = None
    """Processors that it may keep busy, 0.5 for half of one. Only in a control group; elsewhere without effect."""

    # Questions of the server
    ask: Ask = "clients"
    """Whom the server may ask something while it works on a call (elicitation, sampling, roots). `clients`: the client
    that made the call. `everyone`: where that client cannot be asked also a person, on a page of the daemon or through
    a result of `execute_mcp_tool`. `none`: nobody."""
    roots: Annotated[tuple[str, ...], Meta(max_length=_MAX_ROOTS)] = ()
    """Directories that the server is told of as its roots, instead of those of the client. A relative one starts at the
    directory of the configuration file."""
    question_timeout_s: PositiveSeconds = 300.0
    """Time for an answer; then the server gets `question_fallback`."""
    question_fallback: Fallback = "cancel"
    """What the server gets for a form that nobody answers in time. `cancel`: that it was cancelled. `default`: the
    defaults of its fields, if no field needs more and none is a yes or no. `error`: an error."""
    max_questions_per_call: Count = 256
    """Most questions during one call, as each costs a user's attention or tokens. For more the server gets an error."""
    max_questions_per_min: Count = 300
    """Most questions of the server within any minute, of all clients and calls together."""

    # Start and sleep
    idle_timeout_s: Seconds | None = None
    """A server without calls sleeps after this time. 0 keeps it running: it starts with the daemon, after a reload that
    changes it, and when it is switched on, without a call (with `instances` at `per_client`, when its client comes).
    null: after 180, and after 3600 one that holds something in memory (`stateful`)."""
    stateful: bool | Literal["auto", "learn"] = "auto"
    """Whether the server holds something in memory from one call to the next that ends with its process: open pages, a
    shell, thoughts so far. Then whoever called it is told with the first answer of a new process. `auto`: it does if it
    is one of the published servers that are known to. `learn`: also if a call that had worked fails after two wakes."""
    start_timeout_s: PositiveSeconds = 60.0
    """Time from the start of the process to the end of the handshake."""
    era: Eras = "auto"
    """The era of the protocol. `auto`: what the server is found to speak, the modern one first. `legacy`: up to
    2025-11-25. `modern`: since 2026-07-28."""
    probe_timeout_s: PositiveSeconds = 20.0
    """Time for the server to show which era of the protocol it speaks."""
    install_timeout_s: PositiveSeconds = 900.0
    """A launcher that installs (npx, uvx, docker, ...) has this long instead of `start_timeout_s` and
    `probe_timeout_s`, while its processes work."""
    install_quiet_s: PositiveSeconds = 90.0
    """At a first start, such a launcher that does nothing for this time is not installing any more."""
    install_grace_s: Seconds = 10.0
    """Time between SIGTERM and SIGKILL when such a launcher is stopped while it installs."""

    instances: Annotated[int, Meta(ge=1, le=MAX_INSTANCES)] | Literal["per_client"] = 1
    """Most processes of a local server at a time. Another one is started when all that run are busy, and each sleeps by
    itself. `per_client`: each client has a process of its own, so that nobody is asked for somebody else."""
    max_instances: Annotated[int, Meta(ge=1, le=MAX_INSTANCES)] = 16
    """Most processes for clients with `per_client`, of one user half of them with `auth`; calls of further clients are
    refused."""

    # Stop and restart
    stop_eof_s: Seconds = 2.0
    """To stop a server, the daemon closes its input and waits this long."""
    stop_term_s: Seconds = 2.0
    """Then it sends SIGTERM, and after this time SIGKILL."""
    unresponsive_s: PositiveSeconds = 5.0
    """After a call that timed out while the server said nothing at all, it has this time for any sign of life, and a
    quarter of it more for what arrived at the end. Then it is replaced."""
    watch_interval_s: Seconds = 60.0
    """A server that is awake and says nothing for this time is asked for a sign of life. A call to one that said
    nothing for 5 s waits for that, too, and one that is found frozen is replaced first. 0: it is not watched."""
    write_timeout_s: PositiveSeconds = 10.0
    """A server that reads nothing of what is written to it for this time is replaced."""
    restart: Restart = "transient"
    """When a process that ended is started again. `permanent`: always. `temporary`: never. `transient`: after a
    failure."""
    backoff_initial_s: PositiveSeconds = 1.0
    """Pause before the first restart; it doubles with each further one."""
    backoff_max_s: PositiveSeconds = 60.0
    """Longest pause before a restart."""
    stable_s: PositiveSeconds = 60.0
    """A process that was ready for this long counts as stable. Each such time takes back one doubling of the pause."""
    max_restarts: Annotated[int, Meta(ge=0, le=1_000_000)] = 4
    """After more failed starts than this within `period_s`, the daemon gives the server up."""
    period_s: PositiveSeconds = 600.0
    """The time in which `max_restarts` counts."""
    probe_interval_s: PositiveSeconds = 300.0
    """How often a call may start a server again that was given up. As often, the lists of a server that is awake are
    read again if they look wrong (empty, or not read to their end)."""
    retry_max_s: PositiveSeconds = 1800.0
    """A server that was given up before its tools were ever listed is tried again by itself: after `probe_interval_s`,
    then ever more rarely, but at least this often."""

    # Failing calls
    breaker: bool = True
    """Refuse calls at once for a while after too many have failed: had no answer in time, or lost their server.
    Whatever the server answers is no failure, an error neither."""
    breaker_failures: Count = 5
    """After so many failures in a row the server is left alone for `breaker_open_s`; then one call is let through."""
    breaker_percent: Annotated[float, Meta(ge=1, le=100)] = 50.0
    """So is it when this share of its calls within `breaker_window_s` has failed, ..."""
    breaker_min_calls: Count = 10
    """... if there were so many."""
    breaker_window_s: PositiveSeconds = 60.0
    """The time in which `breaker_percent` counts."""
    breaker_open_s: PositiveSeconds = 30.0
    """The first such pause, give or take a fifth. The next ones are two, three, ... times as long, and shorter again
    after success."""
    breaker_max_open_s: PositiveSeconds = 300.0
    """The longest such pause."""
    breaker_tool_failures: Count = 3
    """After so many failures in a row of one tool, that tool alone is left alone in the same way."""
    breaker_max_tools: Count = 256
    """So many tools with failures are remembered; then those whose last failure is longest ago are forgotten."""
    breaker_discovery_failures: Count = 2
    """After so many readings of its lists in a row that did not come to their end, the lists are left alone ..."""
    breaker_discovery_open_s: PositiveSeconds = 60.0
    """... for this time, the first time."""

    # Lists
    discovery_timeout_s: Annotated[float, Meta(ge=5, le=31_536_000)] = 60.0
    """Time for listing everything that the server offers."""
    catalogue_max_age_s: Seconds = 86_400.0
    """The daemon reads the lists again when they are older than this, give or take a tenth. 0: age does not matter. Not
    set, it is that of the daemon."""
    catalogue_min_age_s: PositiveSeconds = 60.0
    """A server that says for how long its lists are good (`ttlMs`) is asked again after that time while it is awake,
    but no sooner than this."""
    refresh_asleep: bool | None = None
    """Wake a server that sleeps to read lists that are too old, when nothing else waits to start. null: only a remote
    server, for which that starts no process."""

    @property
    def path_name(self) -> str:
        return self.slug or self.name

    @property
    def tool_rules(self) -> ToolRules:
        """What the entry says of tools by their names; all else that does so beside `tools` is only looked at."""
        budgets = self.result_token_budget
        lists = {
            "confirm": () if isinstance(self.confirm, str) else self.confirm,
            "confirm_except": self.confirm_except,
            "confirm_within_s": tuple(self.confirm_within_s),
            "read_only": self.read_only or (),
            "result_token_budget": tuple(budgets) if isinstance(budgets, dict) else (),
        }
        beside = {key: patterns for key, patterns in lists.items() if patterns}
        return EntryRules(**structs.asdict(self.tools), beside=beside) if beside else self.tools

    @property
    def launch(self) -> Launch:
        env, cwd, sandbox = dict(self.env), self.cwd or "", self.sandbox.sandbox
        return Launch(command=self.command, args=self.args, env=env, cwd=cwd, sandbox=sandbox)

    @property
    def is_refreshed_asleep(self) -> bool:
        return self.kind != "stdio" if self.refresh_asleep is None else self.refresh_asleep

    @property
    def logs_in(self) -> bool:
        """Whether we may log in there: it is reached by HTTP, and the configuration has no credential for it."""
        given = any(name.lower() == "authorization" for name in self.headers)
        return self.kind in ("http", "sse") and self.oauth.enabled and not given

    @property
    def logs_in_each(self) -> bool:
        """Whether each user logs in there."""
        return self.logs_in and self.oauth.login == "user" and not self.disabled

    def deadline_s(self, settings: Settings) -> float:
        """Return the deadline of a call."""
        return settings.call_timeout_s if self.call_timeout_s is None else self.call_timeout_s

    def mask(self) -> Mask:
        """Return what hides the secrets of this entry in texts of its server."""
        given = {f"header {name}": value for name, value in self.headers.items()}
        given |= {"client secret": self.oauth.client_secret, "private key": self.oauth.private_key}
        given |= _parts_of(self.url)
        for number, each in enumerate(self.replicas, 1):
            given |= {f"{name} of replica {number}": text for name, text in _parts_of(each).items()}
        return Mask({**{name: value for name, value in given.items() if value}, **self.env}, self.args)


def _parts_of(url: str) -> dict[str, str]:
    """Return what stands behind the host of an address, by what it is called there: some take their key there."""
    try:
        parts = urlsplit(url)
        fields = parse_qsl(parts.query)
    except ValueError:
        return {}
    return {**{f"part {number}": unquote(each) for number, each in enumerate(parts.path.split("/"))}, **dict(fields)}


_MIN_KEY_BYTES = 16
"""A shorter key could be guessed."""

_MAX_KEY_BYTES = 64
"""The most that BLAKE2b takes (RFC 7693)."""


def launch_digest(server: ServerConfig, environ: Mapping[str, str], *, key: bytes, owner: str = "") -> str:
    """Return 64 hexadecimal digits for the process that `server` would be started as.

    `environ` is the environment that the process inherits, already reduced to what is passed on; `server.env` goes
    over it. `owner`: whose secret is in it, or whose login it uses, so that nobody shares it, not even who gives an
    equal one. `key` has 16 to 64 bytes; `ValueError` otherwise.
    """
    if not _MIN_KEY_BYTES <= len(key) <= _MAX_KEY_BYTES:
        raise ValueError(f"the key must have {_MIN_KEY_BYTES} to {_MAX_KEY_BYTES} bytes")
    configured = {name: value for name, value in server.env.items() if name not in server.passed}
    environment = {**environ, **configured}
    login = _login(server.oauth)
    later: dict[str, object] = {} if login == _login(OAuthConfig()) else {"oauth": login}
    if server.roots:
        later["roots"] = server.roots
    if server.era != "auto":
        later["era"] = (server.era,)
    if server.ask != "clients":
        later["ask"] = server.ask
    if server.sandbox.kind != "none":
        later["sandbox"] = msgspec.to_builtins(server.sandbox)
    if owner:
        later["owner"] = owner
    # JSON with sorted keys: no two launches give the same text. Its \u escapes take values that are not UTF-8, too.
    launch = json.dumps(
        {
            "kind": server.kind,
            "command": server.command,
            "args": server.args,
            "cwd": server.cwd,
            "env": environment,
            "url": server.url,
            "headers": dict(server.headers),
            **later,
        },
        sort_keys=True,
    )
    return hashlib.blake2b(launch.encode(), key=key, digest_size=32, person=b"mcp-launch").hexdigest()


def _login(oauth: OAuthConfig) -> dict[str, object]:
    """Return as whom we log in, but for the user: who that is the owner says."""
    return {name: value for name, value in msgspec.to_builtins(oauth).items() if name != "login"}
