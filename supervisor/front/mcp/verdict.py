"""What one HTTP POST turns out to be: a message of one of the eras, or an answer that needs nobody. PURE.

Ids, parameters and capabilities are the bytes they arrived as; only an id's value is decoded, to be compared.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from actors.protocol import jsonrpc
from actors.protocol.jsonrpc import INVALID_REQUEST, NO_RAW

NULL: Final = b"null"

Key = str | int
"""The value of a request id; a string and an integer are never equal."""


class Refused(msgspec.Struct, frozen=True):
    """The answer is known already: an HTTP status and a JSON body (none: an empty answer)."""

    status: int
    body: bytes = b""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A legacy request. `id` is JSON text, `key` its value, `params` empty where there were none."""

    id: bytes
    key: Key
    method: str
    params: msgspec.Raw = NO_RAW


class ModernRequest(Request, frozen=True, kw_only=True):
    """A modern request, and what its `_meta` says of the client."""

    version: str
    name: str = ""
    capabilities: msgspec.Raw


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A legacy notification."""

    method: str
    params: msgspec.Raw = NO_RAW


class Response(msgspec.Struct, frozen=True):
    """A legacy client's answer to a request of ours."""


class Batch(msgspec.Struct, frozen=True):
    """A legacy array of 1 to 50 messages; only a session of 2025-03-26 may send one."""

    messages: tuple[msgspec.Raw, ...]


LegacyMessage = Request | Notification | Response
Verdict = LegacyMessage | ModernRequest | Batch | Refused


def refuse(status: int, id_: bytes, code: int, message: str, data: Any = None) -> Refused:
    """Return a refusal with a JSON-RPC error; `id_` is JSON text."""
    return Refused(status, jsonrpc.failure(id_, code, message, data))


def bad_id() -> Refused:
    """Return the answer to a request whose id is neither a string nor an integer."""
    return refuse(400, NULL, INVALID_REQUEST, '"id" must be a string or an integer of at most 512 bytes')
