"""The objects of a configuration's `supervisor` that have a form of their own: each its struct, and how it is read.
Pure.

`describe` (whose model is asked for sentences), `event_sinks` (where events are sent), `fleet` (with which daemons this
one works), `memory` (how much of the machine servers may take), `plugins` (which are loaded, with which options).

A fault of one is one of the whole file: with less in it, or more, definitions and events would go where nobody meant,
and calls would pass that must not. A message says what is expected, never what was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, field, structs

from actors.errors import ConfigError
from actors.protocol.wire.json import fault
from actors.transport.redaction import Confidential
from actors.transport.stdio.resources.allotment import MemoryBounds
from supervisor.config.address import is_loopback, split_address
from supervisor.config.expansion import expand, expand_home
from supervisor.config.jsonc import KeyPath
from supervisor.config.keys import hint_of, is_comment, name_fault, suggest_name
from supervisor.config.values import (
    MIB,
    Count,
    Mebibytes,
    PositiveSeconds,
    Problem,
    Size,
    is_address,
    launch_faults,
    read_members,
)
from supervisor.events.event import key_of
from supervisor.events.kinds import KINDS

DESCRIBE: Final = "describe"
_CLIENTS: Final = "the model of a client"
"""What a model is called that is a client's."""


class DescribeSettings(Confidential, Struct, frozen=True, kw_only=True):
    """A model that writes sentences for tools which have none; see `docs/background/search-phrases.md`."""

    url: str = ""
    """The address of an OpenAI-compatible service, as `https://api.openai.com/v1`: what is asked is its
    `/chat/completions`. Variables are filled in."""
    model: str = ""
    """The name of the model there."""
    key: str = ""
    """What the service lets you in by, best as `${NAME}`. Empty: it asks for nothing."""
    insecure_http: bool = False
    """Allow an address on another machine without encryption: whoever reads along on the way reads the key."""
    command: tuple[str, ...] = ()
    """A program that is asked in place of a service, with its arguments; no shell reads them. Variables are filled
    in."""
    sampling: bool = False
    """Ask the models of clients in place of one of yours, where a client of an admin offers that."""
    tools_per_day: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    """For so many definitions the model is asked within 24 hours, at most. One takes some hundred tokens, about 1,000
    at the most, with its answer."""
    batch: Annotated[int, Meta(ge=1, le=50)] = 10
    """Definitions that it is asked for at once, with `sampling` 5 at the most; all are of one server."""
    timeout_s: PositiveSeconds = 120.0
    """Time for one answer; with `sampling` 20 seconds at the most."""

    @property
    def has_model(self) -> bool:
        """Whether a model is named."""
        return bool(self.url or self.command)

    @property
    def is_on(self) -> bool:
        """Whether there is anybody to ask."""
        return self.has_model or self.sampling

    @property
    def called(self) -> str:
        """Return what is asked as it may be shown."""
        return _CLIENTS if self.sampling else self.model or self.command[0].rpartition("/")[2]


def read_describe(written: Mapping[str, Any], environ: Mapping[str, str], problem: Problem) -> dict[str, Any]:
    """Return the members of the object. `problem` takes keys from `supervisor` on."""
    own = read_members(DescribeSettings, written, (DESCRIBE,), problem)
    try:
        own |= {name: expand(own[name], environ) for name in ("url", "model", "key") if name in own}
        if "command" in own:
            own["command"] = [expand(word, environ) for word in own["command"]]
    except ConfigError as error:
        problem((DESCRIBE,), error.message, error.hint)
        return own
    for below, message, hint in _faults(own):
        problem((DESCRIBE, *below), message, hint)
    return own


def _faults(own: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, str]]:
    url, command, sampling = own.get("url", ""), own.get("command"), own.get("sampling")
    if own and not url and not command and not sampling:
        yield (), "asks nobody", 'add "url" and "model", "command", or "sampling": true'
    if sampling and (url or command):
        yield ("sampling",), "stands beside a model", "remove one of them"
    if url and command:
        yield ("command",), "stands beside a url", "remove one of them"
    if command is not None and not all(command):
        yield ("command",), "has an empty word", 'for example ["my-model", "--json"]'
    if url:
        parts = urlsplit(url)
        if not is_address(url, "http") or parts.query or parts.fragment or "@" in parts.netloc:
            yield ("url",), "is not an address", 'for example "https://api.openai.com/v1"'
        elif parts.scheme != "https" and not is_loopback(parts.hostname or "") and not own.get("insecure_http"):
            yield ("url",), "is not encrypted", 'begin it with https://, or set "insecure_http": true'
        if not own.get("model"):
            yield ("model",), "is missing", "name the model that the service is to use"
    if [*launch_faults({"headers": {"authorization": own.get("key", "")}})]:
        yield ("key",), "cannot be sent in a header", "write it on one line, in ASCII"


EVENT_SINKS: Final = "event_sinks"
MAX_SINKS: Final = 8
SinkType = Literal["http", "file", "store"]
_NEEDED: Final[Mapping[SinkType, str]] = {"http": "url", "file": "path"}
_OF_TYPE: Final[Mapping[str, SinkType]] = {
    **dict.fromkeys(("url", "secret", "headers", "insecure_http"), "http"),
    **dict.fromkeys(("path", "max_bytes", "files"), "file"),
    **dict.fromkeys(("days", "rows"), "store"),
}
"""Keys that mean something to one type alone."""
_RESERVED: Final = frozenset(
    {"content-type", "content-length", "host", "webhook-id", "webhook-timestamp", "webhook-signature"}
)


class EventSink(Confidential, Struct, frozen=True, kw_only=True):
    """One place that events are sent to."""

    name: str = ""
    """What the status calls it; needed, and used by no other one."""
    type: SinkType = "http"
    """`http`: an address that they are posted to. `file`: a file, with a line of JSON for each. `store`: the database
    of the daemon, for `/api/events/kept`."""
    events: tuple[str, ...] = ("*",)
    """Which kinds it gets: types, or beginnings of them with a `*`, as `mcp.server.*`."""
    # Of the type `http`
    url: str = ""
    """The address, `https://...`; `${NAME}` may stand in it."""
    secret: str = ""
    """What the daemon signs by, best as `${NAME}`: `whsec_` and at least 24 bytes in base64, or a text of that length.
    Empty: nothing is signed."""
    headers: dict[str, str] = field(default_factory=dict)
    """More headers; `${NAME}` may stand in their values."""
    insecure_http: bool = False
    """Allow an address on another machine without encryption: whoever reads along on the way reads the events."""
    # Of the type `file`
    path: str = ""
    """The file, from the directory of the configuration; it is made for its owner alone."""
    max_bytes: Size = 10 * MIB
    """A file of this size is renamed, and another one begun."""
    files: Annotated[int, Meta(ge=0, le=100)] = 5
    """How many renamed files are kept."""
    # Of the type `store`
    days: Annotated[int, Meta(ge=1, le=3650)] = 30
    """For how many days an event is kept."""
    rows: Annotated[int, Meta(ge=100, le=10_000_000)] = 100_000
    """How many events are kept at most."""
    # Of all types
    interval_s: PositiveSeconds = 3.0
    """The pause between two batches. Each answer 429 doubles it, up to 16-fold; another answer ends that."""
    batch_events: Annotated[int, Meta(ge=1, le=1000)] = 100
    """Most events in one batch."""
    queue_events: Count = 10_000
    """Most events that wait for it. For one more the oldest is dropped, and counted."""
    timeout_s: PositiveSeconds = 10.0
    """Time for one batch to be taken."""

    def wants(self, type_: str) -> bool:
        """Say whether it gets events of a kind."""
        return any(fnmatchcase(type_, pattern) for pattern in self.events)


def read_event_sinks(
    written: list[Any], directory: Path, environ: Mapping[str, str], problem: Problem
) -> list[dict[str, Any]]:
    """Return the members of each sink; relative paths start at the directory. `problem` takes keys from `supervisor`
    inwards.
    """
    read = [_Reading((EVENT_SINKS, at), each, directory, environ, problem).read() for at, each in enumerate(written)]
    names = [each.get("name", "") for each in read]
    for at, name in enumerate(names):
        if name and name in names[:at]:
            problem((EVENT_SINKS, at, "name"), "is the name of another sink, too", "rename one of them")
    return read


class _Reading:
    """Reads one sink at its place."""

    def __init__(
        self, at: KeyPath, written: Mapping[str, Any], directory: Path, environ: Mapping[str, str], problem: Problem
    ) -> None:
        self._at = at
        self._directory = directory
        self._environ = environ
        self._problem = problem
        self._own = read_members(EventSink, written, at, problem)
        self._unread = set[KeyPath]()  # what refers to something that is not there: nothing more is said of it

    def read(self) -> dict[str, Any]:
        for key in ("url", "secret", "path"):
            self._fill(self._own, key, key)
        headers = dict(self._own.get("headers", {}))
        for name in headers:
            self._fill(headers, name, "headers", name)
        own = self._own = {**self._own, "headers": headers}
        for below, message, hint in (*_faults_of_all(own), *_faults_of_http(own)):
            if below not in self._unread:
                self._problem((*self._at, *below), message, hint)
        return own

    def _fill(self, members: dict[str, Any], key: str, *below: str) -> None:
        try:
            if members.get(key):
                text = expand(members[key], self._environ)
                whole = below == ("path",)
                members[key] = str(self._directory / expand_home(text, self._environ)) if whole else text
        except ConfigError as error:
            self._unread.add(below)
            self._problem((*self._at, *below), error.message, error.hint)


def _faults_of_all(own: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, str]]:
    name, type_ = own.get("name", ""), own.get("type", EventSink().type)
    if not name:
        yield (), "has no name", 'add "name", which the status calls it by'
    elif fault := name_fault(name):
        yield ("name",), fault, f'rename it, for example to "{suggest_name(name)}"'
    needed = _NEEDED.get(type_, "")
    if needed and not own.get(needed):
        yield (), f'has the type "{type_}" and no "{needed}"', f'add "{needed}"'
    for key, of in _OF_TYPE.items():
        if own.get(key) and of != type_ and type_ in get_args(SinkType):
            yield (key,), f'is for the type "{of}"', f'remove it, or set "type": "{of}"'
    if own.get("queue_events", EventSink().queue_events) < 2 * own.get("batch_events", EventSink().batch_events):
        yield ("queue_events",), "is less than two batches", "make it larger, or batch_events smaller"
    for at, pattern in enumerate(own.get("events", ())):
        if not any(fnmatchcase(kind, pattern) for kind in KINDS):
            yield ("events", at), "fits no kind of event", hint_of(pattern, KINDS, 'for example "mcp.server.*"')


def _faults_of_http(own: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, str]]:
    if url := own.get("url"):
        if not is_address(url, "http") or "#" in url or "@" in urlsplit(url).netloc:
            yield ("url",), "is not an address", 'for example "https://events.example.com/mcp"'
        elif not (_is_confidential(url) or own.get("insecure_http")):
            yield ("url",), "is not encrypted", 'begin it with https://, or set "insecure_http": true'
    try:
        key_of(own.get("secret") or "x" * 24)
    except ValueError as error:
        yield ("secret",), str(error), "make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
    yield from (
        (("headers", name), "is set by the daemon", "remove it") for name in own["headers"] if name.lower() in _RESERVED
    )
    yield from launch_faults({"headers": own["headers"]})


def _is_confidential(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


FLEET: Final = "fleet"
_SCHEMES: Final = ("redis", "rediss", "unix")
_ANY_ADDRESS: Final = ("0.0.0.0", "::")
_MIN_KEY_CHARS: Final = 32
_MAX_PORT: Final = 65_535
_NODE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_PREFIX: Final = re.compile(r"[A-Za-z0-9:._-]{1,64}")


class FleetSettings(Confidential, Struct, frozen=True, kw_only=True):
    """Other daemons behind the same address; see `docs/guides/fleet.md`."""

    engine: str = ""
    """Address of a Valkey or Redis server that all nodes use: `rediss://USER:PASSWORD@HOST:PORT`, without encryption
    `redis://`, or `unix:///PATH`. Variables are filled in. Empty: this daemon is alone."""
    node: str = ""
    """The name of this node, unlike that of every other one. Empty: the name of the machine. Variables are filled in,
    so that all nodes can have one file."""
    listen: str = "127.0.0.1:0"
    """Where other nodes reach this one, `host:port`: an address of this machine that they can reach. It is always
    encrypted. Variables are filled in."""
    keys: Annotated[tuple[str, ...], Meta(max_length=8)] = ()
    """Secrets of the fleet, the newest first, with 32 characters each at least; all nodes have the same. Variables are
    filled in."""
    prefix: str = "mcpvisor:"
    """How the names of all keys in the engine begin; another fleet on the same server has another prefix."""
    lease_s: Annotated[float, Meta(ge=2, le=600)] = 20.0
    """How long a node owns its servers without hearing from the engine. When it ends, others take them over."""
    max_commands_per_s: Annotated[float, Meta(ge=10, le=100_000)] = 1000.0
    """How often this node asks the engine in a second. What is more waits, for five seconds at most, and has
    `EngineAway` then; what keeps the lease never waits."""
    configuration: Literal["own", "published"] = "own"
    """`own`: this node reads its own file alone. `published`: what that file does not have, servers and settings, it
    takes from what was published last (`mcpvisor fleet publish`)."""
    nodes: Annotated[int, Meta(ge=1, le=64)] = 1
    """How many nodes `mcpvisor run` starts on this machine, behind its one address; see `docs/guides/cores.md`. They
    are called as `node` says, with `-1` and so on behind it. Without an `engine` they have one of their own."""


def read_fleet(written: Mapping[str, Any], environ: Mapping[str, str], problem: Problem) -> dict[str, Any]:
    """Return the members of the object. `problem` takes keys from `supervisor` inwards."""
    own = read_members(FleetSettings, written, (FLEET,), problem)
    try:
        own |= {name: expand(own[name], environ) for name in ("engine", "node", "listen") if name in own}
        if "keys" in own:
            own["keys"] = [expand(key, environ) for key in own["keys"]]
    except ConfigError as error:
        problem((FLEET,), error.message, error.hint)
        return own
    nodes = own.get("nodes", FleetSettings().nodes)
    if own.get("engine") or nodes > 1:
        _check_fleet(own, nodes, problem)
    return own


def _check_fleet(own: Mapping[str, Any], nodes: int, problem: Problem) -> None:
    engine, keys = own.get("engine", ""), own.get("keys", ())
    if engine and urlsplit(engine).scheme not in _SCHEMES:
        problem((FLEET, "engine"), "is no address of an engine", 'for example "rediss://valkey.example.com:6379"')
    if engine and not keys:
        hint = 'write "keys": ["${MCPVISOR_FLEET_KEY}"], and give all nodes the same: openssl rand -hex 32'
        problem((FLEET, "keys"), "is missing", hint)
    for at, key in enumerate(keys):
        if len(key) < _MIN_KEY_CHARS:
            problem((FLEET, "keys", at), f"has less than {_MIN_KEY_CHARS} characters", "openssl rand -hex 32")
    if own.get("node") and not _NODE_NAME.fullmatch(own["node"]):
        problem((FLEET, "node"), "is no name of a node", "letters, digits, dots, dashes, underscores, 63 at most")
    if not _PREFIX.fullmatch(own.get("prefix", FleetSettings().prefix)):
        problem((FLEET, "prefix"), "is no prefix", "letters, digits, colons, dots, dashes, underscores, 64 at most")
    try:
        host, port = split_address(own.get("listen", FleetSettings().listen))
    except ValueError as error:
        problem((FLEET, "listen"), str(error), 'for example "10.0.0.1:3002"')
    else:
        if host in _ANY_ADDRESS:
            hint = "name the address of this machine by which the other nodes reach it"
            problem((FLEET, "listen"), "is no address that others can reach", hint)
        if port and port + nodes - 1 > _MAX_PORT:
            problem(
                (FLEET, "listen"), "has no port left for each node", "they have as many in a row; 0 takes free ones"
            )


MEMORY: Final = "memory"


class MemorySettings(Struct, frozen=True, kw_only=True):
    """How much memory servers may take together; see `docs/guides/budgets.md`."""

    limit_mib: Mebibytes | None = None
    """Memory that all local servers together may take, in MiB. Over it, those that were used longest ago sleep, and no
    other one starts. null: as much as there is."""
    reserve_mib: Annotated[int, Meta(ge=0, le=1_073_741_824)] | None = None
    """Memory that stays free, in MiB: of the machine, or of the container that the daemon is in. Where less is free,
    servers sleep and none starts; with half of it no call begins. null: a twentieth of all, at most 512; 0: nothing."""
    pressure_percent: Annotated[float, Meta(ge=0, le=100)] = 20.0
    """Servers sleep, too, if for so much of the last ten seconds somebody waited for memory (`some avg10` in
    `/proc/pressure/memory`). 0: that does not matter."""

    @property
    def bounds(self) -> MemoryBounds:
        """The same in bytes."""
        return MemoryBounds(
            limit_bytes=None if self.limit_mib is None else self.limit_mib * MIB,
            reserve_bytes=None if self.reserve_mib is None else self.reserve_mib * MIB,
            pressure_percent=self.pressure_percent,
        )


def read_memory(written: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return the members of the object. `problem` takes keys from `supervisor` inwards."""
    return read_members(MemorySettings, written, (MEMORY,), problem)


PLUGINS: Final = "plugins"
OptionsOf = Callable[[str], type[Struct]]
"""Gives the options of a plugin by its name. Imports it; raises `ConfigError` if there is no such plugin of any use."""


class PluginEntry(Confidential, Struct, frozen=True):
    """What the configuration says of one plugin: the options that it is made of, as JSON values."""

    options: dict[str, Any] = {}


def read_plugins(
    written: Mapping[str, Any], options_of: OptionsOf, environ: Mapping[str, str], problem: Problem
) -> dict[str, dict[str, Any]]:
    """Return the members of each plugin, objects as the file has them. `problem` takes keys from `supervisor` inwards.

    Variables in the texts are filled in.
    """
    read: dict[str, dict[str, Any]] = {}
    for name, members in written.items():
        if is_comment(name):
            continue
        place: KeyPath = (PLUGINS, name)
        try:
            declared = options_of(name)
            options = {key: _expand(value, environ) for key, value in members.items() if not is_comment(key)}
        except ConfigError as error:
            problem(place, error.message, error.hint)
            continue
        _check_options(declared, options, partial(_below, problem, place))
        read[name] = {"options": options}
    return read


def _below(problem: Problem, place: KeyPath, below: KeyPath, message: str, hint: str) -> None:
    problem((*place, *below), message, hint)


def _expand(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _expand(each, environ) for key, each in value.items()}
    if isinstance(value, list):
        return [_expand(each, environ) for each in value]
    return expand(value, environ) if isinstance(value, str) else value


def _check_options(declared: type[Struct], options: Mapping[str, Any], problem: Problem) -> None:
    """Record what is wrong with options: all unknown keys, else the first fault of a value."""
    known = [field.encode_name for field in structs.fields(declared)]
    unknown = [key for key in options if key not in known]
    for key in unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        problem((key,), "unknown key", hint_of(key, known, takes))
    if unknown:
        return
    try:
        msgspec.convert(options, declared)
    except msgspec.ValidationError as error:
        problem(*fault(error), "")
    except Exception as error:  # noqa: BLE001 - the plugin's own checks are foreign code
        problem((), f"its options cannot be checked ({type(error).__name__})", "ask whoever wrote the plugin")
