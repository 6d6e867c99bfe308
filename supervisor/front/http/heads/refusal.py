"""What a refused HTTP request is answered with: a status, and a JSON-RPC error. Pure."""

from __future__ import annotations

from typing import Final

from actors.codes import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from actors.errors import CallTooLarge, MailboxFull, SupervisorError
from actors.protocol.wire import jsonrpc
from supervisor.front.edge.budget import RETRY_S
from supervisor.front.edge.request import Lines
from supervisor.front.mcp.messages import NULL, Invalid, InvalidRequest
from supervisor.service.port import failure

RETRY: Final[Lines] = ((b"retry-after", b"%d" % RETRY_S),)
_STATUSES: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    CallTooLarge.code: CallTooLarge.http_status,
}


class HttpRefusal(Exception):
    """A request is answered with a status, a JSON-RPC error and header lines, and nothing else comes of it."""

    def __init__(self, status: int, body: bytes, lines: Lines = ()) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body
        self.lines = lines


def refusal_of(status: int, message: str, id_: bytes = NULL, lines: Lines = ()) -> HttpRefusal:
    """Return a refusal that only HTTP knows; `id_` is JSON text."""
    return HttpRefusal(status, jsonrpc.failure(id_, INVALID_REQUEST, message), lines)


def refusal_for_error(error: SupervisorError) -> HttpRefusal:
    """Return the refusal of a request whose era and id are not known."""
    body = failure(NULL, error).body
    return HttpRefusal(503, body, RETRY) if isinstance(error, MailboxFull) else HttpRefusal(error.http_status, body)


def refusal_of_message(invalid: Invalid) -> HttpRefusal:
    """Return the answer to a message that is refused.

    For a legacy client a request with an id is valid, and its error stands in an answer with 200: most of them lose the
    code with any other status.
    """
    legacy = isinstance(invalid, InvalidRequest) and invalid.era == "legacy"
    return HttpRefusal(200 if legacy else _STATUSES[invalid.code], invalid.answer())
