"""The requests of a server that wait for an answer of ours: which it may make, and how many at a time. Pure.

(MCP 2025-11-25 basic/lifecycle "Capability Negotiation", client/elicitation. A server of the modern era asks nothing.)
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.protocol.facts import CallAsked, QuestionWithdrawn
from actors.protocol.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, ErrorObject, failure, success

MAX_OPEN: Final = 16
MAX_QUESTION_BYTES: Final = 256 * 1024

FORM: Final = "form"
"""The only mode of elicitation that is declared: whoever asks a person to open an address has to be trusted more."""

ASKED_BY: Final = {"elicitation/create": "elicitation"}
"""Which capability of ours allows which request."""


class _Mode(msgspec.Struct):
    mode: str = FORM


class _Cancelled(msgspec.Struct):
    request_id: msgspec.Raw = msgspec.field(name="requestId")


_mode = msgspec.json.Decoder(_Mode)
_cancelled = msgspec.json.Decoder(_Cancelled)


class Questions:
    """The open ones of one server. `capabilities` are those that were declared to it."""

    def __init__(self, capabilities: frozenset[str]) -> None:
        self._capabilities = capabilities
        self._open: set[bytes] = set()

    def take(self, id_: bytes, method: str, params: msgspec.Raw, call: int | None) -> CallAsked | ErrorObject:
        """Return a question for the client of a call, which stays open until it is settled; or why it is not asked."""
        if ASKED_BY.get(method) not in self._capabilities:
            return ErrorObject(METHOD_NOT_FOUND, f"{method[:100]} is not supported here")
        if call is None:
            text = "it is not known which call this is about: ask while exactly one is in flight"
            return ErrorObject(METHOD_NOT_FOUND, text)
        if len(memoryview(params)) > MAX_QUESTION_BYTES:
            return ErrorObject(INVALID_PARAMS, f"a question of over {MAX_QUESTION_BYTES} bytes")
        if not _is_form(params):
            return ErrorObject(INVALID_PARAMS, "only questions with a form were declared")
        if id_ in self._open or len(self._open) >= MAX_OPEN:
            return ErrorObject(INVALID_REQUEST, f"this id is in use, or {MAX_OPEN} questions wait for an answer")
        self._open.add(id_)
        return CallAsked(call, id_, method, params)

    def answer(self, id_: bytes, result: bytes | ErrorObject) -> bytes | None:
        """Close a question; return the message that answers it by a JSON object, or an error; None if it is closed."""
        if not self.settle(id_):
            return None
        if isinstance(result, bytes):
            return success(id_, result)
        return failure(id_, result.code, result.message, result.data if bytes(result.data) else None)

    def settle(self, id_: bytes) -> bool:
        """Close a question; False if it is not open."""
        if id_ not in self._open:
            return False
        self._open.discard(id_)
        return True

    def withdrawn(self, id_: bytes) -> QuestionWithdrawn | None:
        """Close the question that a `notifications/cancelled` of the server is about, if it is about one."""
        return QuestionWithdrawn(id_) if self.settle(id_) else None


def cancelled_id(params: msgspec.Raw) -> bytes:
    """Return the JSON text of the id that a `notifications/cancelled` is about; empty if it has none."""
    try:
        return bytes(_cancelled.decode(params).request_id)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b""


def _is_form(params: msgspec.Raw) -> bool:
    try:
        return _mode.decode(params).mode == FORM
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
