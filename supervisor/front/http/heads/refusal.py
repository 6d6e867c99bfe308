"""What a refused HTTP request is answered with: a status, and a JSON-RPC error. PURE."""

from __future__ import annotations

from typing import Final

import msgspec

from actors.codes import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from actors.errors import CallTooLarge, MailboxFull, SupervisorError
from actors.protocol.wire import jsonrpc
from supervisor.front.mcp.messages import NULL, Invalid, InvalidRequest
from supervisor.service.port import failure

_STATUSES: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    CallTooLarge.code: CallTooLarge.http_status,
}


class ErrorResponse(msgspec.Struct, frozen=True):
    """The answer is known already: an HTTP status and a JSON body."""

    status: int
    body: bytes


def refuse(status: int, id_: bytes, code: int, message: str) -> ErrorResponse:
    """Return a refusal that only HTTP knows; `id_` is JSON text."""
    return ErrorResponse(status, jsonrpc.failure(id_, code, message))


def refuse_unread(error: SupervisorError) -> ErrorResponse:
    """Return the refusal of a request whose era and id are not known."""
    status = 503 if isinstance(error, MailboxFull) else error.http_status
    return ErrorResponse(status, failure(NULL, error).body)


def refuse_message(invalid: Invalid) -> ErrorResponse:
    """Return the answer to a message that is refused.

    For a legacy client a request with an id is valid, and its error stands in an answer with 200: most of them lose the
    code with any other status.
    """
    legacy = isinstance(invalid, InvalidRequest) and invalid.era == "legacy"
    return ErrorResponse(200 if legacy else _STATUSES[invalid.code], invalid.answer())
