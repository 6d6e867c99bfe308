"""The requests of a server that wait for an answer of ours: which it may make, and how many at a time. Pure.

(MCP 2025-11-25 basic/lifecycle "Capability Negotiation", client/elicitation, client/sampling, client/roots. A server of
the modern era asks by results; see `input_required`.)
"""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from actors.errors import CannotAsk
from actors.protocol.agreement.client_capabilities import ASKED_BY, ELICIT, FORM, URL, mode_of
from actors.protocol.asking.forms import defaults
from actors.protocol.facts import CallAsked, QuestionWithdrawn
from actors.protocol.wire.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    ErrorObject,
    encode,
    failure,
    success,
)

Fallback = Literal["cancel", "default", "error"]
"""What a server gets where nobody answers in time: a cancelled form, its defaults, an error."""

MAX_OPEN: Final = 64
MAX_QUESTION_BYTES: Final = 4 * 1024 * 1024
"""There may be images in a conversation that a model is to continue."""
MAX_OPEN_BYTES: Final = 32 * 1024 * 1024
"""Of all open questions of one server; those count that are held, too, as it is not known yet whose they are."""
MAX_FORM_BYTES: Final = 64 * 1024
MAX_ADDRESS_CHARS: Final = 8192
CANCELLED: Final = b'{"action":"cancel"}'
"""What an elicitation gets that nobody answers (MCP 2025-11-25, client/elicitation "Response Actions")."""
REJECTED: Final = -1
"""The code of whatever else nobody answers (MCP 2025-11-25, client/sampling "Error Handling")."""
NO_PARAMS: Final = msgspec.Raw(b"{}")
"""What is passed on of a question that has none."""
SCHEMES: Final = ("https", "http")
"""Of addresses that a person may be asked to open."""


class TooManyQuestions(CannotAsk):
    """A server asks more than it may: during one call, within a minute, or in bytes that wait for answers."""

    code = -31429
    kind = "overloaded"
    retryable = True


class _Cancelled(msgspec.Struct):
    request_id: msgspec.Raw = msgspec.field(name="requestId")


class _Address(msgspec.Struct):
    url: str


_address = msgspec.json.Decoder(_Address)
_cancelled = msgspec.json.Decoder(_Cancelled)


class Questions:
    """The open ones of one server. `capabilities` are those that were declared to it."""

    def __init__(self, capabilities: frozenset[str]) -> None:
        self._capabilities = capabilities
        self._open: dict[bytes, int] = {}
        self._bytes = 0

    def allows(self, method: str) -> bool:
        """Say whether a server was told that it may ask this."""
        return ASKED_BY.get(method) in self._capabilities

    def take(
        self, id_: bytes, method: str, params: msgspec.Raw, call: int | None, *, known: bool = True
    ) -> CallAsked | ErrorObject:
        """Return a question for the client of a call, which stays open until it is settled; or why it is not asked.

        `known`: it is about some call, though perhaps not yet known which.
        """
        if not self.allows(method):
            return ErrorObject(METHOD_NOT_FOUND, f"{method[:100]} is not supported here")
        if not known:
            return ErrorObject(METHOD_NOT_FOUND, "there is nobody to ask while no call is in flight")
        if (wrong := refusal(method, params)) is not None:
            return ErrorObject(INVALID_PARAMS, wrong)
        if id_ in self._open or len(self._open) >= MAX_OPEN:
            return ErrorObject(INVALID_REQUEST, f"this id is in use, or {MAX_OPEN} questions wait for an answer")
        size = len(params)
        if self._bytes + size > MAX_OPEN_BYTES:
            return ErrorObject(INVALID_REQUEST, f"{self._bytes} bytes of questions wait for answers already")
        self._open[id_] = size
        self._bytes += size
        return CallAsked(call, id_, method, params if len(params) else NO_PARAMS)

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
        self._bytes -= self._open.pop(id_)
        return True

    def withdraw(self, id_: bytes) -> QuestionWithdrawn | None:
        """Close the question that a `notifications/cancelled` of the server is about, if it is about one."""
        return QuestionWithdrawn(id_) if self.settle(id_) else None


def cancelled_id(params: msgspec.Raw) -> bytes:
    """Return the JSON text of the id that a `notifications/cancelled` is about; empty if it has none."""
    try:
        return bytes(_cancelled.decode(params).request_id)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b""


def refusal(method: str, params: msgspec.Raw) -> str | None:
    """Return why nobody is asked this, whoever it is for; None if it may be asked."""
    most = MAX_FORM_BYTES if method == ELICIT else MAX_QUESTION_BYTES
    if len(params) > most:
        return f"a question of over {most} bytes"
    if method != ELICIT:
        return None
    mode = mode_of(params)
    if mode not in (FORM, URL):
        return "only questions with a form or an address were declared"
    if mode == URL and not _may_be_opened(params):
        return f"only addresses that begin with {' or '.join(SCHEMES)}, and are plain to read, are passed on to people"
    return None


def timeout_answer(method: str, params: msgspec.Raw, fallback: Fallback) -> bytes | ErrorObject:
    """Return what a question gets that nobody answers in time: never a yes.

    With `default` a form is what it is when nobody types anything, if it can be that; see `forms.defaults`.
    """
    if method == ELICIT and fallback != "error":
        content = defaults(params) if fallback == "default" else None
        return CANCELLED if content is None else encode({"action": "accept", "content": content})
    return ErrorObject(REJECTED, "nobody answered in time")


def _may_be_opened(params: msgspec.Raw) -> bool:
    """Say whether a person can see where an address leads: it has no user name and nothing that cannot be seen."""
    try:
        url = _address.decode(params).url
        address = urlsplit(url)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
        return False
    if address.scheme.lower() not in SCHEMES or not address.hostname or "@" in address.netloc:
        return False
    return len(url) <= MAX_ADDRESS_CHARS and url.isprintable() and not any(each in url for each in ' \\"<>')
