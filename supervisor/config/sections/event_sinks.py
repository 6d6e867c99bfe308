"""The list `event_sinks` of a configuration: where events are sent, checked.

A fault of it is one of the whole file: with less in it, events would go where nobody meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field

from actors.errors import ConfigError
from actors.transport.redaction import Confidential
from supervisor.config.syntax.address import is_loopback
from supervisor.config.syntax.jsonc import KeyPath
from supervisor.config.syntax.keys import hint_of, name_fault, suggest_name
from supervisor.config.syntax.limits import is_address, launch_faults
from supervisor.config.syntax.units import MIB, Count, PositiveSeconds, Size
from supervisor.config.syntax.values import Problem, read_members
from supervisor.events.event import key_of
from supervisor.events.kinds import KINDS

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
    written: list[Any], expand: Callable[[str], str], place: Callable[[str], str], problem: Problem
) -> list[dict[str, Any]]:
    """Return the members of each sink. `expand` fills variables in, `place` makes a path whole; both may raise
    `ConfigError`. `problem` takes keys from `supervisor` inwards.
    """
    read = [_Reading((EVENT_SINKS, at), each, problem).read(expand, place) for at, each in enumerate(written)]
    names = [each.get("name", "") for each in read]
    for at, name in enumerate(names):
        if name and name in names[:at]:
            problem((EVENT_SINKS, at, "name"), "is the name of another sink, too", "rename one of them")
    return read


class _Reading:
    """Reads one sink at its place."""

    def __init__(self, at: KeyPath, written: Mapping[str, Any], problem: Problem) -> None:
        self._at = at
        self._problem = problem
        self._own = read_members(EventSink, written, at, problem)

    def read(self, expand: Callable[[str], str], place: Callable[[str], str]) -> dict[str, Any]:
        for key, make in (("url", expand), ("secret", expand), ("path", place)):
            self._fill(self._own, key, make, key)
        headers = dict(self._own.get("headers", {}))
        for name in headers:
            self._fill(headers, name, expand, "headers", name)
        own = self._own = {**self._own, "headers": headers}
        for below, message, hint in (*_faults_of_all(own), *_faults_of_http(own)):
            self._problem((*self._at, *below), message, hint)
        return own

    def _fill(self, members: dict[str, Any], key: str, make: Callable[[str], str], *below: str) -> None:
        try:
            if members.get(key):
                members[key] = make(members[key])
        except ConfigError as error:
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
