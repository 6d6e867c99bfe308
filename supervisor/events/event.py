"""One event: how it is written for others and signed, what its id is, and who hears of it. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from actors.principal import LOCAL, Principal
from supervisor.events.kinds import TYPES, EventData, OfServer, ServerUnregistered, ToolExecuted

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


# What somebody hears of an event.
#
# - Auditors and admins hear of everything. A member hears of servers that are theirs alone: of one that is started for
#   them, all that can be said; of one that others have, too, no more than that it came, went, changed, or is away.
# - How others use a shared server is none of that: when it starts, sleeps or crashes depends on their calls.

SHARED = ("server_id", "server_slug", "transport")
"""What a member is told of a server that others have, too."""


class EventReader(Struct, frozen=True, kw_only=True):
    """A member: the servers that they have, and the launches of those that are not started for all alike, by server.

    `gone` are servers that they had and that are not there any more. `is_alone` says of a launch whether it is that of
    this user alone.
    """

    principal: Principal
    user: str
    servers: frozenset[str]
    launches: Mapping[str, str]
    is_alone: Callable[[str], bool]
    gone: frozenset[str] = frozenset()

    def hears(self, event: DaemonEvent) -> EventData | None:
        """Return what the member hears of an event; None for nothing."""
        data = event.data
        if data.audience == "caller":
            return data if event.principal == self.principal else None
        if not isinstance(data, OfServer) or data.audience == "auditors" or not self._has(data):
            return None
        slug = data.server_slug
        if data.installation_id != slug and self.is_alone(data.installation_id):
            return replace(data, installation_id=slug, team_id=None, user_id=self.user)
        if data.audience == "launch":
            return None
        return type(data)(installation_id=slug, **{name: getattr(data, name) for name in SHARED})

    def _has(self, data: OfServer) -> bool:
        slug = data.server_slug
        if isinstance(data, ServerUnregistered):
            return slug in self.gone
        return slug in self.servers and (
            data.audience == "entry" or data.installation_id == self.launches.get(slug, slug)
        )


# The ids of events: the start of the daemon, and a number.
#
# The numbers count what happens to everybody: a member gets them in another order.

_HALF_BITS: Final = 24
_MASK: Final = (1 << _HALF_BITS) - 1
_ROUNDS: Final = 4
MAX_NUMBER: Final = (1 << 2 * _HALF_BITS) - 1


class MemberNumbers:
    """Numbers that count what happens to everybody, as a member is shown them: in another order, up to `MAX_NUMBER`.

    Two of them tell nothing of how much was between them, and nothing to anybody else: they go through a Feistel
    network. `key` is secret.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def show(self, number: int, member: Principal | None) -> int:
        """Return what a number is for a member; None: for those who may know how much happens."""
        return number if member is None else self._turn(number, member, range(_ROUNDS))

    def read(self, number: int, member: Principal | None) -> int:
        """Return the number that is shown so; one that is too large is none, and as it is."""
        if member is None or number > MAX_NUMBER:
            return number
        return self._turn(number, member, range(_ROUNDS)[::-1])

    def _turn(self, number: int, member: Principal, rounds: range) -> int:
        left, right = number >> _HALF_BITS, number & _MASK
        for each in rounds if rounds.step > 0 else ():
            left, right = right, left ^ self._mix(right, member, each)
        for each in rounds if rounds.step < 0 else ():
            left, right = right ^ self._mix(left, member, each), left
        return left << _HALF_BITS | right

    def _mix(self, half: int, member: Principal, number: int) -> int:
        text = b"%d %d " % (number, half) + member.encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, key=self._key, digest_size=_HALF_BITS // 8).digest(), "big")


MAX_ID_CHARS: Final = 64


class Places:
    """Writes and reads ids. `start` has digits alone, `key` is a secret of this run of the daemon."""

    def __init__(self, start: str, key: bytes) -> None:
        self.start = start
        self._numbers = MemberNumbers(key)

    def show(self, number: int, member: Principal | None = None) -> str:
        """Return the id of an event, for a member if one is given."""
        return f"{self.start}-{self._numbers.show(number, member)}"

    def read(self, text: str, member: Principal | None = None) -> int | None:
        """Return the number of an id; None if it is none of this run."""
        start, _, place = text[:MAX_ID_CHARS].partition("-")
        if start != self.start or not (place.isascii() and place.isdigit()) or int(place) > MAX_NUMBER:
            return None
        return self._numbers.read(int(place), member)


# Signatures of what is sent to a receiver, as of Standard Webhooks (standardwebhooks.com, version 1.0).
#
# The receiver makes the same HMAC-SHA-256 over `ID.TIMESTAMP.BODY`, and refuses what is signed otherwise or too old.

PREFIX: Final = "whsec_"
MIN_SECRET_BYTES: Final = 24
"""The least that Standard Webhooks wants."""


def key_of(secret: str) -> bytes:
    """Return the key of a secret: what is behind `whsec_` is base64, any other text is itself.

    Raises `ValueError` for what is no base64 there, and for a key that is too short.
    """
    try:
        key = base64.b64decode(secret[len(PREFIX) :], validate=True) if secret.startswith(PREFIX) else secret.encode()
    except binascii.Error:
        raise ValueError(f"is no base64 behind {PREFIX}") from None
    if len(key) < MIN_SECRET_BYTES:
        raise ValueError(f"is shorter than {MIN_SECRET_BYTES} bytes")
    return key


def sign(key: bytes, id_: str, moment: int, body: bytes) -> dict[str, str]:
    """Return the headers that sign a body sent at a moment (unix s)."""
    digest = hmac.new(key, b"%s.%d." % (id_.encode(), moment) + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": id_, "webhook-timestamp": str(moment), "webhook-signature": signature}
