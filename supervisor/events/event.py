"""One event, and how it is written for others. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from actors.principal import LOCAL, Principal
from supervisor.events.kinds import EventData
from supervisor.events.other_kinds import TYPES, ToolExecuted

USUAL_BYTES: Final = 1000
"""More than an event has that is about one call."""
_ONE_LINE: Final = bytes.maketrans(b"\n\r", b"  ")
"""Schemas are as servers laid them out. Raw line ends occur in JSON only between tokens."""
_encode: Final = msgspec.json.Encoder().encode


class DaemonEvent(Struct, frozen=True, kw_only=True):
    """The `number`-th event since the start, at `time` (unix s); `size` is about that of its text, in bytes.

    `principal` is whose call it is about, `revision` that of the catalogue.
    """

    number: int
    time: float
    data: EventData
    size: int = USUAL_BYTES
    principal: Principal = LOCAL
    revision: int | None = None

    @property
    def type(self) -> str:
        return TYPES[type(self.data)]


class EventEnvelope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event as others get it."""

    id: str
    """The start of the daemon and the number of the event since then."""
    type: str
    """The kind."""
    timestamp: str
    """When it happened (ISO 8601, UTC)."""
    revision: int | None = None
    """That of the catalogue when it happened, for auditors and admins."""
    node: str | None = None
    """Where it happened, in the stream of a fleet."""
    data: EventData
    """The fields of the kind."""


def timestamp(moment: float) -> str:
    """Return a moment in unix seconds as ISO 8601; one that no calendar has is the epoch."""
    try:
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return "1970-01-01T00:00:00.000Z"


def size_of(data: EventData) -> int:
    """Return about how many bytes an event with these data has."""
    return USUAL_BYTES if isinstance(data, ToolExecuted) else USUAL_BYTES // 2 + len(_encode(data))


def encode(event: DaemonEvent, id_: str, data: EventData | None = None) -> bytes:
    """Return an event as JSON in one line; with other `data` it is for a member, who gets no revision."""
    envelope = EventEnvelope(
        id=id_,
        type=event.type,
        timestamp=timestamp(event.time),
        revision=event.revision if data is None else None,
        data=event.data if data is None else data,
    )
    return one_line(envelope)


class EventOccurrence(Struct, frozen=True, kw_only=True):
    """An event as clients of the Events extension get it (SEP-3415, "Event Occurrences")."""

    event_id: str = field(name="eventId")
    name: str
    timestamp: str
    data: EventData


def occurrence(event: DaemonEvent, id_: str, data: EventData, most: int) -> msgspec.Raw:
    """Return an event as an `EventOccurrence`; lists are left empty in one that has over so many bytes with them."""
    made = EventOccurrence(event_id=id_, name=event.type, timestamp=timestamp(event.time), data=data)
    text = _encode(made)
    if len(text) > most:
        lists = {each: type(value)() for each, value in asdict(data).items() if isinstance(value, tuple | dict)}
        text = _encode(replace(made, data=replace(data, **lists)))
    return msgspec.Raw(text)


def one_line(value: Any) -> bytes:
    """Return a value as JSON without a line end."""
    text = _encode(value)
    return text.translate(_ONE_LINE) if b"\n" in text or b"\r" in text else text
