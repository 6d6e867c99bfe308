"""Our side of one duplex JSON-RPC conversation with a server, without I/O (after `h11.Connection`).

Rules:
- Ids towards a server are ours: integers that are never used again, see `ids`. An answer is matched by the integer
  that its id is, however that is written; anything else is counted and dropped.
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
from typing import Generic, TypeVar

import msgspec

from actors.errors import ProtocolViolation
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.fragment import DecodedLine, Message, read_fragment
from actors.protocol.wire.framing import Oversized
from actors.protocol.wire.ids import canonical
from actors.protocol.wire.weight import limit

T = TypeVar("T")
MAX_LEFT = 256
"""Requests whose late answers are still told apart; the oldest is forgotten first."""
_NAMELESS = (b"", b"null")
_ID_STARTS = frozenset(bytes([byte]) for byte in b'"-0123456789')


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
