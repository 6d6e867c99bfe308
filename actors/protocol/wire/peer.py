"""Our side of one duplex JSON-RPC conversation with a server, without I/O (after `h11.Connection`).

Rules:
- Ids towards a server are ours: integers that are never used again, see `canonical`. An answer is matched by the
  integer that its id is, however that is written; anything else is counted and dropped.
- The first answer to an id wins; later ones are strays.
- An answer that cannot be decoded, or is over the limit, still settles its request where `fragment.py` finds its id.
- An answer without an id, or with the id `null`, is to the only request that was made, where nothing else was sent: so
  servers refuse what they cannot read (JSON-RPC 2.0, section 5).
- A request of the server has a string or a number for its id; one with any other id is a stray, as it could not be
  answered. An `error` or `result` that is `null` beside the other one is taken for absent: some servers write both.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, Generic, Literal, TypeVar

import msgspec

from actors.errors import ProtocolViolation
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.fragment import DecodedLine, Message, read_fragment
from actors.protocol.wire.framing import Oversized
from actors.protocol.wire.jsonrpc import canonical
from actors.protocol.wire.mirrors import Mirror
from actors.protocol.wire.weight import limit

T = TypeVar("T")
MAX_LEFT = 256
"""Requests whose late answers are still told apart; the oldest is forgotten first."""
_NAMELESS = (b"", b"null")
_ID_STARTS = frozenset(bytes([byte]) for byte in b'"-0123456789')
Cause = Literal[
    "unavailable", "overloaded", "unauthorized", "forbidden", "refused", "expired", "crashed", "protocol", "too_large"
]
"""Why: nobody could be reached, or only somebody who is down (`unavailable`) or busy; who was reached wants a
credential, or one that allows more (`forbidden`), does not take such a request at all (`refused`), or has forgotten the
session (`expired`), and did nothing; what was sent was lost (`crashed`); what came is no answer (`protocol`), or over
its limit."""
OUTAGES: Final = frozenset[Cause]({"unavailable", "overloaded", "crashed"})
"""They say nothing about the server: it is tried again."""
GONE: Final = frozenset[Cause]({"unavailable", "crashed"})
"""After these a server that was there may be away altogether."""
FAULTS: Final = GONE | {"protocol"}
"""After these a request was not answered. Who is busy, says when it is back, wants a login or refuses has answered."""


class Answered(msgspec.Struct, Generic[T], frozen=True):
    """A request of ours succeeded; `result` is a JSON object, untouched."""

    tag: T
    result: msgspec.Raw


class Refused(msgspec.Struct, Generic[T], frozen=True):
    """A request of ours failed."""

    tag: T
    error: jsonrpc.ErrorObject


class Malformed(msgspec.Struct, Generic[T], frozen=True):
    """A request of ours got an answer that cannot be used.

    `reason` says why: "a result that is no object". It may repeat what the server said. `done`: it tells of a result,
    so what was asked for was done. `over`: the limit that it is over, and by what, if that is why.
    """

    tag: T
    reason: str
    done: bool = False
    over: Mapping[str, int] | None = None


class Asked(msgspec.Struct, frozen=True):
    """The server asks something; `id` is the JSON text of its id."""

    id: bytes
    method: str
    params: msgspec.Raw


class Notified(msgspec.Struct, frozen=True):
    """The server tells something."""

    method: str
    params: msgspec.Raw


class Peer(Generic[T]):
    """The requests that wait for an answer; a `tag` says what that is for. `ids` gives none twice, to nobody."""

    def __init__(self, ids: Iterator[int]) -> None:
        self._ids = ids
        self._pending: dict[bytes, T] = {}
        self._left: OrderedDict[bytes, T] = OrderedDict()
        self.strays = 0

    def expect(self, tag: T) -> bytes:
        """Return the id, as JSON text, for a new request; its answer will come back with `tag`."""
        id_ = b"%d" % next(self._ids)
        self._pending[id_] = tag
        return id_

    def request(self, tag: T, method: str, params: bytes | None) -> tuple[bytes, bytes]:
        """Return (id, message); the answer will come back with `tag`."""
        id_ = self.expect(tag)
        return id_, jsonrpc.request(id_, method, params)

    def id_of(self, tag: T) -> bytes:
        """Return the id of the request that was made first of those with this tag, and is pending; empty if none is."""
        return next((id_ for id_, each in self._pending.items() if each == tag), b"")

    def leave(self, id_: bytes) -> None:
        """Drop a request, but take its answer, which is a stray, with its tag all the same."""
        if (tag := self._pending.pop(id_, None)) is not None:
            self._left[id_] = tag
            if len(self._left) > MAX_LEFT:
                self._left.popitem(last=False)

    def settle(self, id_: bytes) -> T | None:
        """Drop a request: an answer will be a stray. Return its tag, None if it is not pending."""
        return self._pending.pop(id_, None)

    def receive(
        self, message: Message, *, alone: bool = False
    ) -> Answered[T] | Refused[T] | Malformed[T] | Asked | Notified | None:
        """Take one message; None for what means nothing to us (counted). Raises `ProtocolViolation` for no JSON-RPC.

        `alone`: nothing but requests was sent so far, one after the other.
        """
        match message:
            case Oversized(size=size, limit=most):
                reason = f"{size} bytes, over its limit of {most} bytes (max_line_bytes)"
                return self.spoil(message, reason, {"bytes": size, "limit_bytes": most})
            case DecodedLine():
                if message.envelope is not None:
                    return self._receive(message.envelope, alone)
                over = {"limit_weight": limit(len(message.text))} if message.too_heavy else None
                return self.spoil(message, message.trouble, over)
        try:
            envelope = jsonrpc.decode(message)
        except ProtocolViolation as error:
            return self.spoil(message, error.message)
        return self._receive(envelope, alone)

    def _receive(
        self, envelope: jsonrpc.JsonRpcMessage, alone: bool
    ) -> Answered[T] | Refused[T] | Malformed[T] | Asked | Notified | None:
        if envelope.method is not None:
            return self._receive_own(envelope)
        id_ = bytes(envelope.id)
        tag = self._take(id_)
        if tag is None:
            tag = self._take(canonical(id_))
        if tag is None and alone and id_ in _NAMELESS and len(self._pending) == 1:
            return self._nameless(envelope)
        if tag is None:
            self.strays += 1
            return None
        if not len(envelope.error) and bytes(memoryview(envelope.result)[:1]) == b"{":  # nearly all
            return Answered(tag, envelope.result)
        return _answer(tag, envelope)

    def _nameless(self, envelope: jsonrpc.JsonRpcMessage) -> Refused[T] | Malformed[T]:
        """Take an answer that does not say to which request, while one waits: an error, or else it is wrong."""
        _, tag = self._pending.popitem()
        answer = _answer(tag, envelope)
        return Malformed(tag, "an id that is not the one of the request") if isinstance(answer, Answered) else answer

    def spoil(self, message: Message, reason: str, over: Mapping[str, int] | None = None) -> Malformed[T]:
        """Settle the request that an unusable answer belongs to. Raises `ProtocolViolation` if it belongs to none."""
        if isinstance(message, DecodedLine):
            fragment = message.fragment if message.envelope is None else read_fragment(message.text)
        else:
            fragment = read_fragment(message)
        tag = self._take(fragment.id) if fragment is not None else None
        if fragment is None or tag is None:
            raise ProtocolViolation(reason)
        return Malformed(tag, reason, fragment.result, over)

    def _take(self, id_: bytes) -> T | None:
        tag = self._pending.pop(id_, None)
        if tag is None and self._left and (tag := self._left.pop(id_, None)) is not None:
            self.strays += 1
        return tag

    def _receive_own(self, envelope: jsonrpc.JsonRpcMessage) -> Asked | Notified | None:
        method = envelope.method or ""
        if not envelope.is_request:
            return Notified(method, envelope.params)
        if bytes(envelope.id)[:1] in _ID_STARTS:
            return Asked(bytes(envelope.id), method, envelope.params)
        self.strays += 1
        return None


def _answer(tag: T, envelope: jsonrpc.JsonRpcMessage) -> Answered[T] | Refused[T] | Malformed[T]:
    result, error = _begin(envelope.result), _begin(envelope.error)
    if result and error:
        return Malformed(tag, "both a result and an error")
    if error:
        try:
            return Refused(tag, jsonrpc.decode_error(envelope.error))
        except ProtocolViolation as violation:
            return Malformed(tag, violation.message)
    if not len(envelope.result):
        return Malformed(tag, "neither a result nor an error")
    if result != b"{":
        return Malformed(tag, "a result that is no object", done=True)
    return Answered(tag, envelope.result)


def _begin(member: msgspec.Raw) -> bytes:
    """Return the first byte of a member, which may be large; empty for none, and for `null`."""
    if not len(member) or (len(member) == len(b"null") and bytes(member) == b"null"):
        return b""
    return bytes(memoryview(member)[:1])


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What comes in place of an answer: the transport knows why there is none.

    `id` is the JSON text of the id of the request, empty if what may be lost is about none: a server could tell nothing
    for a while.

    `reason` may reach clients. `sent`: the server may have carried the request out. `retry_after_s` is what it asks
    for. `login`: its operator can log in at the server, which would help. `stale`: nothing of it was done, and it may
    be refused only because the server does not know the present session any more. `said` is the message that came with
    it, empty for none: the answer, if the server does know the session.
    """

    id: bytes
    cause: Cause
    reason: str
    sent: bool = True
    retry_after_s: float | None = None
    login: bool = False
    stale: bool = False
    said: bytes = b""

    @property
    def unreached(self) -> bool:
        """Whether nobody was found who could have carried the request out."""
        return self.cause == "unavailable" and not self.sent

    @property
    def faulty(self) -> bool:
        """Whether the server, or the way there, failed; see `FAULTS`."""
        return self.cause in FAULTS and not self.login and not self.retry_after_s

    @property
    def too_often(self) -> bool:
        """Whether it came too often, and nothing of it was done: it may be made again, later (RFC 6585, 4)."""
        return self.cause == "overloaded" and not self.sent

    @property
    def bars(self) -> bool:
        """Whether the server takes nothing at all before a login."""
        return self.login and self.cause == "unauthorized"


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """One message to a server, and what a transport has to know of it beside its text.

    `parts` are its JSON text, cut anywhere; they may be large, and are joined once, by the transport.

    `id` is the JSON text of its id, empty for a notification. `name` is the tool, the prompt or the URI that a request
    is about, `mirrors` which of its arguments a head repeats. `version` is the revision of the protocol in which it is
    written, empty where none was agreed on. `cancels` is the id of the request that this notification takes back: a
    transport whose requests have streams of their own closes that one instead.
    """

    parts: tuple[bytes, ...]
    method: str = ""
    id: bytes = b""
    name: str = ""
    version: str = ""
    cancels: bytes = b""
    mirrors: tuple[Mirror, ...] = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)
