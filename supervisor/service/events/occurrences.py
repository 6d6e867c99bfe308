"""What a source says that happened, read: what clients get of it is as it was written, but for its name. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.events.limits import MAX_EVENT_BYTES, MAX_ID_CHARS


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
