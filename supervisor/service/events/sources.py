"""Where occurrences come from: a source has types, and follows topics of them. Pure.

A topic is one event type with some arguments, as one launch of a server has it; who wants the same shares it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Final, Literal, Protocol

import msgspec

from actors.principal import LOCAL, Principal
from actors.protocol.definitions import fit
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, encode
from supervisor.operations import Role
from supervisor.service.events.limits import MAX_EVENT_BYTES, MAX_ID_CHARS, MAX_LISTED, MAX_LISTED_BYTES
from supervisor.service.lookup.visible import Visible

# Event types at the doors of many servers (SEP-3415, "Listing Available Events"): what they are called there.

Mode = Literal["poll", "push", "webhook"]
KEPT: Final[tuple[Mode, ...]] = ("poll", "push")
"""How every type is delivered here, however its source does it: what it pushes is kept, what it keeps is pushed."""
WEBHOOK: Final[Mode] = "webhook"
SEPARATOR: Final = ":"
"""Between the name of a server, which has none, and what that calls a type of its."""


class Viewpoint(msgspec.Struct, frozen=True):
    """Whose eyes events are looked at with: a principal, the role of its credential, and what is seen at its door."""

    principal: Principal
    visible: Visible
    role: Role = "member"

    @property
    def modes(self) -> tuple[Mode, ...]:
        """How it can have events: to an address only if it is known who asked for that."""
        return KEPT if self.principal == LOCAL else (*KEPT, WEBHOOK)

    @property
    def hears_all(self) -> bool:
        """Whether it hears everything that the daemon tells of itself, as at `/api/events`."""
        return self.principal == LOCAL or self.role != "member"


class EventType(msgspec.Struct, frozen=True):
    """One type. `name` is what it is called at these doors: that of its server, a colon, and its own.

    `definition` is the entry of `events/list` as its source has it, a JSON object; its name and its ways of delivery
    do not count.
    """

    name: str
    definition: msgspec.Raw

    def shown(self, modes: tuple[Mode, ...]) -> msgspec.Raw:
        """Return the entry for a client that can have events in these ways, as the schema of the extension has it."""
        entry = {**json.members(self.definition), "name": self.name, "delivery": modes}
        return fit(msgspec.Raw(encode(entry)), "events", "modern").definition


def event_name(server: str, own: str) -> str:
    return f"{server}{SEPARATOR}{own}"


def list_result(types: Iterable[EventType], modes: tuple[Mode, ...], cursor: str | None) -> bytes:
    """Return a page of `events/list`, a JSON object: the types by name, from behind the one that the cursor names.

    So a cursor means the same whatever came or went meanwhile.
    """
    left = sorted((each for each in types if cursor is None or each.name > cursor), key=attrgetter("name"))
    page: list[msgspec.Raw] = []
    size = 0
    for each in left[:MAX_LISTED]:
        size += len(each.definition)
        if page and size > MAX_LISTED_BYTES:
            break
        page.append(each.shown(modes))
    more = {"nextCursor": left[len(page) - 1].name} if len(page) < len(left) else {}
    return encode({"events": page, **more})


_ID_BYTES = 16


class Origin(msgspec.Struct, frozen=True):
    """What a topic is of.

    `name` is that of its type at the doors of many servers, `own` what its source calls it. `launch` is that of its
    server, empty for the daemon's own events. `arguments` are a JSON object in one form (`canonical`). `timeout_s`: how
    long whoever begins to follow it waits at most until its source has confirmed it. `opener` is who asks.
    """

    name: str
    launch: str
    own: str
    arguments: bytes
    timeout_s: float = 60.0
    opener: Principal = LOCAL

    @property
    def id(self) -> str:
        """The same for the same launch, type and arguments, whoever asks, and in each life of the daemon."""
        return hashlib.blake2b(encode([self.launch, self.own]) + self.arguments, digest_size=_ID_BYTES).hexdigest()


class Terminated(Exception):
    """The source does not have this topic (any more), and says so by an error of the extension: NotFound, Forbidden,
    Unsupported, or InvalidParams."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(error.message)
        self.error = error


class Told(Protocol):
    """Who is told of a topic. Neither waits nor raises.

    A `cursor` is the source's own: where it goes on from later. None: it cannot be asked for what was before.
    """

    def active(self, cursor: str | None, *, truncated: bool) -> None:
        """It is followed from now on; `truncated`: some of what happened since the given cursor is missing.

        Told again whenever there was a gap.
        """

    def event(self, occurrence: msgspec.Raw, cursor: str | None) -> None:
        """Something happened: an `EventOccurrence`, a JSON object as its source wrote it."""

    def checked(self, cursor: str | None) -> None:
        """Nothing else happened until now."""

    def error(self, error: ErrorObject) -> None:
        """Something could not be had for the moment; it goes on."""

    def asked_every(self, milliseconds: int) -> None:
        """The source is asked so often, so nobody needs to ask more often for what it says."""


class Source(Protocol):
    """Some event types, and the topics of these."""

    def types(self, at: Viewpoint) -> Iterable[EventType]:
        """Return the types that somebody sees, always in the same order."""

    def find(self, at: Viewpoint, name: str, arguments: bytes) -> Origin | None:
        """Return what a type with arguments is, by its name at these doors; None if somebody sees no such type here.

        Raises `SupervisorError` where it cannot be followed for them now.
        """

    async def follow(self, origin: Origin, cursor: str | None, told: Told) -> None:
        """Follow a topic from a cursor of its own, or from now on, until that is cancelled.

        Before it has been `active`, it raises why it cannot be: `Terminated`, `RemoteError`, `SupervisorError`.
        Afterwards it begins again by itself whatever happens, from the last cursor, and raises nothing but
        `Terminated`. A checkpoint.
        """


def canonical(arguments: msgspec.Raw) -> bytes:
    """Return a JSON value in one form: without white space, members sorted by name, numbers and texts as written."""
    text = bytes(arguments).strip()
    if text[:1] == b"{":
        members = sorted(json.read(json.MEMBERS, text).items())
        return b"{%b}" % b",".join(encode(name) + b":" + canonical(value) for name, value in members)
    if text[:1] == b"[":
        return b"[%b]" % b",".join([canonical(each) for each in json.read(json.ELEMENTS, text)])
    return text


# What a source says that happened, read: what clients get of it is as it was written, but for its name.


class Unusable(ValueError):
    """Why an occurrence is none; the text is for clients."""


class Occurrence(msgspec.Struct, frozen=True):
    """One that can be kept; see `Kept`."""

    event_id: str
    time: float
    body: bytes


def read_occurrence(said: msgspec.Raw, name: str, now: float) -> Occurrence:
    """Read an `EventOccurrence`, which gets another name (SEP-3415, "Event Occurrences"). Raises `Unusable`.

    `now` in unix seconds: of something that says another time than in ISO 8601, or one to come, it is the time.
    """
    if len(said) > MAX_EVENT_BYTES:
        raise Unusable(f"an event of over {MAX_EVENT_BYTES} bytes was dropped")
    members = json.members(said)
    id_, data = json.text_at(members.get("eventId")), bytes(members.get("data", b"")).lstrip()
    timestamp = json.read_or(json.STRING, members.get("timestamp", b""), None)
    if not id_ or len(id_) > MAX_ID_CHARS or data[:1] != b"{" or timestamp is None:
        raise Unusable("something was dropped that is no event: it needs an eventId, a timestamp, and data")
    members.pop("cursor", None)
    return Occurrence(id_, _time_of(timestamp, now), encode({**members, "name": name}))


def _time_of(timestamp: str, now: float) -> float:
    try:
        moment = datetime.fromisoformat(timestamp)
        return min(now, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return now
