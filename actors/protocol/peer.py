"""Our side of one duplex JSON-RPC conversation with a server, without I/O (after `h11.Connection`).

Rules:
- Ids towards a server are ours: opaque strings, unique for the life of the process, never re-used. An answer is
  matched by the JSON text of its id, so by type and value; anything else is counted and dropped.
- The first answer to an id wins; later ones are strays.
- A request of the server has a string or a number for its id; one with any other id is a stray, as it could not be
  answered. An `error` or `result` that is `null` beside the other one is taken for absent: some servers write both.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from actors.errors import ProtocolViolation
from actors.protocol import jsonrpc

T = TypeVar("T")
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
    """A request of ours got no proper answer: both or neither of result and error, or a result that is no object."""

    tag: T


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
    """The pending table and the ids. `prefix` must differ between incarnations; a `tag` says what an answer is for."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._number = 0
        self._pending: dict[bytes, T] = {}
        self.strays = 0

    def __len__(self) -> int:
        return len(self._pending)

    def request(self, tag: T, method: str, params: bytes | None) -> tuple[bytes, bytes]:
        """Return (id, message); the answer will come back with `tag`."""
        self._number += 1
        id_ = f'"{self._prefix}-{self._number}"'.encode()
        self._pending[id_] = tag
        return id_, jsonrpc.request(id_, method, params)

    def forget(self, id_: bytes) -> bool:
        """Drop a request: its answer will be a stray. False if it is not pending."""
        return self._pending.pop(id_, None) is not None

    def closed(self) -> list[T]:
        """Return the tags of all that is pending, and forget it."""
        tags = list(self._pending.values())
        self._pending.clear()
        return tags

    def receive(self, message: bytes) -> Answered[T] | Refused[T] | Malformed[T] | Asked | Notified | None:
        """Take one message; None for what means nothing to us (counted). Raises `ProtocolViolation` for no JSON-RPC."""
        found = jsonrpc.decode(message)
        if found.method is not None:
            if not found.is_request:
                return Notified(found.method, found.params)
            if bytes(found.id)[:1] in _ID_STARTS:
                return Asked(bytes(found.id), found.method, found.params)
            self.strays += 1
            return None
        tag = self._pending.pop(_canonical(bytes(found.id)), None)
        if tag is None:
            self.strays += 1
            return None
        result, error = _present(found.result), _present(found.error)
        if bool(result) == bool(error) or (result and result[:1] != b"{"):
            return Malformed(tag)
        return Answered(tag, found.result) if result else Refused(tag, jsonrpc.decode_error(found.error))


def _present(member: msgspec.Raw) -> bytes:
    data = bytes(member)
    return b"" if data == b"null" else data


def _canonical(id_: bytes) -> bytes:
    """The same string may be written with escapes; ours are plain."""
    if b"\\" not in id_:
        return id_
    try:
        value: Any = msgspec.json.decode(id_)
    except (msgspec.MsgspecError, RecursionError):
        raise ProtocolViolation("an id that is not JSON") from None
    return jsonrpc.encode(value)
