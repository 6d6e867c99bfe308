"""What an HTTP request says before its body, whether that agrees with the message in it, and what a refusal is. Pure.

Rules of this file:
- A field that comes twice is remembered: whoever needs it to be unambiguous asks.
- `Accept` is read leniently: absent means JSON, wildcards count (RFC 9110 12.5.1; the specification asks clients to
  list both types, many send neither).
- A message that carries `_meta["io.modelcontextprotocol/protocolVersion"]` is modern, whatever its headers say; one
  without it is legacy unless its version header names a version that is not (MCP 2026-07-28, basic/versioning).
- A modern request passes a ladder, and the first rung that breaks is the answer (MCP 2026-07-28,
  basic/transports/streamable-http, "Server Validation"): shape, doubled headers, `_meta`, version header, method
  header, name header, version served. Whether the method exists and its parameters are right comes after that.
- What is no message is refused as such, whatever its headers say.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Final

import msgspec

from actors.codes import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAY_BE_NAMED_BY,
    NAMED_BY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from actors.errors import CallTooLarge, MailboxFull, SupervisorError
from actors.protocol.agreement.versions import LEGACY_VERSIONS, META_CAPABILITIES, META_VERSION, MODERN_VERSIONS
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.mirrors import Mirror, agree, arguments_in
from actors.transport.http import head
from supervisor.front.edge.budget import RETRY_S
from supervisor.front.edge.fields import Fields
from supervisor.front.edge.request import Lines
from supervisor.front.messages import (
    NO_BATCHES,
    NULL,
    Batch,
    Invalid,
    InvalidNotification,
    InvalidRequest,
    LegacyMessage,
    Message,
    ModernRequest,
    Notification,
    Request,
    Response,
    version_error,
)
from supervisor.service.port import failure

_VERSION, SESSION = head.VERSION.encode(), head.SESSION.encode()
_METHOD, _NAME, _LAST_EVENT = head.METHOD.encode(), head.NAME.encode(), head.LAST_EVENT.encode()

_SENTINEL = "=?base64?"


class Accepts(msgspec.Struct, frozen=True):
    """Which of our two answers a client takes. `stream_named`: it names event streams, not only a wildcard."""

    json: bool
    stream: bool
    stream_named: bool


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The headers that decide something; None where there is no such line."""

    content_type: bytes | None = None
    accepts: Accepts = Accepts(json=True, stream=False, stream_named=False)
    version: bytes | None = None
    session: bytes | None = None
    method: bytes | None = None
    name: bytes | None = None
    last_event: bytes | None = None
    doubled: frozenset[bytes] = frozenset()

    @property
    def is_json(self) -> bool:
        """True if the body says that it is JSON; a request without a content type does not."""
        kind = self.content_type
        return kind == b"application/json" or (
            kind is not None and kind.split(b";", 1)[0].strip().lower() == b"application/json"
        )


def scan(fields: Fields) -> Head:
    get = fields.lines.get
    return Head(
        content_type=get(b"content-type"),
        accepts=read_accept(get(b"accept")),
        version=get(_VERSION),
        session=get(SESSION),
        method=get(_METHOD),
        name=get(_NAME),
        last_event=get(_LAST_EVENT),
        doubled=fields.doubled,
    )


@lru_cache(maxsize=256)
def read_accept(value: bytes | None) -> Accepts:
    """Return what an `Accept` header allows. Clients send a handful of different ones, so the answers are kept."""
    if value is None or not value.strip():
        return Accepts(json=True, stream=False, stream_named=False)
    ranges = {_media_range(part) for part in value.lower().split(b",")}
    named = bool(ranges & {b"text/event-stream", b"text/*"})
    everything = b"*/*" in ranges
    return Accepts(
        json=everything or bool(ranges & {b"application/json", b"application/*"}),
        stream=everything or named,
        stream_named=named,
    )


def _media_range(part: bytes) -> bytes:
    kind, _, parameters = part.partition(b";")
    for parameter in parameters.split(b";"):
        name, _, value = parameter.strip().partition(b"=")
        if name == b"q" and value.strip(b"0. ") == b"":
            return b""
    return kind.strip()


def header_text(value: bytes) -> str | None:
    """Return the text of a header value that may be wrapped as `=?base64?...?=`; None if the wrapping is bad.

    Only canonical base64 of UTF-8 counts; half a wrapping is a literal (MCP 2026-07-28, SEP-2243).
    """
    text = value.decode("latin-1").strip(" \t")
    if not (text.startswith(_SENTINEL) and text.endswith("?=") and len(text) >= len(_SENTINEL) + 2):
        return text
    inner = text[len(_SENTINEL) : -2]
    try:
        decoded = base64.b64decode(inner, validate=True)
        if base64.b64encode(decoded).decode("ascii") != inner:
            return None
        return decoded.decode()
    except (binascii.Error, UnicodeError, ValueError):
        return None


_RETRY: Final[Lines] = ((b"retry-after", b"%d" % RETRY_S),)
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
    return HttpRefusal(503, body, _RETRY) if isinstance(error, MailboxFull) else HttpRefusal(error.http_status, body)


def refusal_of_message(invalid: Invalid) -> HttpRefusal:
    """Return the answer to a message that is refused.

    For a legacy client a request with an id is valid, and its error stands in an answer with 200: most of them lose the
    code with any other status.
    """
    legacy = isinstance(invalid, InvalidRequest) and invalid.era == "legacy"
    return HttpRefusal(200 if legacy else _STATUSES[invalid.code], invalid.answer())


_MAX_SHOWN_VERSION: Final = 64

_ONCE: Final = frozenset({_VERSION, _METHOD, _NAME})
_LEGACY: Final = {version.encode(): version for version in LEGACY_VERSIONS}
_MODERN: Final = frozenset(version.encode() for version in MODERN_VERSIONS)

_DOUBLED: Final = Invalid(
    code=INVALID_REQUEST, message="the protocol version and the session id may be there only once"
)
_NO_RESPONSES: Final = Invalid(code=INVALID_REQUEST, message="clients of this revision send no responses")


def legacy_version(head: Head) -> str | None:
    return None if head.version is None else _LEGACY.get(head.version)


def is_modern(head: Head, message: Notification) -> bool:
    """Say whether a modern client sent this notification. Nothing comes of it: ids are the clients' own choice, and
    without a session nobody knows whose request it names (closing the connection cancels)."""
    return message.era == "modern" or (head.version is not None and head.version not in _LEGACY)


def refusal(head: Head, message: Message) -> Invalid | None:
    if isinstance(message, ModernRequest):
        return _mismatch_of(head, message)
    if isinstance(message, Request):  # most of all messages
        return _refused_legacy(head, message)
    if isinstance(message, InvalidRequest):
        return _refused_legacy(head, message) if message.era == "legacy" else _refused_modern(head, message)
    if isinstance(message, Invalid):
        return message
    if isinstance(message, Notification) and message.era == "modern":
        return None
    return _refused_legacy(head, message)


def _refused_legacy(head: Head, message: LegacyMessage | Batch | InvalidRequest) -> Invalid | None:
    if head.version is not None and head.version not in _LEGACY:
        return _without_metadata(head.version, message)
    if head.doubled and (_VERSION in head.doubled or SESSION in head.doubled):
        return _DOUBLED
    return message if isinstance(message, Invalid) else None


def _without_metadata(version: bytes, message: LegacyMessage | Batch | InvalidRequest) -> Invalid | None:
    """The version header says modern (or nonsense), the body does not: malformed, never legacy."""
    requested = version.decode("latin-1")
    if isinstance(message, Batch):
        return NO_BATCHES
    if isinstance(message, Response):
        return _NO_RESPONSES
    if isinstance(message, Notification):
        return None if version in _MODERN else InvalidNotification(**version_error(requested))
    named = f'"{META_VERSION}" and "{META_CAPABILITIES}" with protocol version {requested[:_MAX_SHOWN_VERSION]}'
    return Invalid(id=message.id, code=INVALID_PARAMS, message=f"params._meta must have {named}")


def _refused_modern(head: Head, message: InvalidRequest) -> Invalid:
    if message.code == INVALID_PARAMS:
        return _refuse_doubled(head, message) or message
    return _mismatch_of(head, message) or message


def _mismatch_of(head: Head, message: ModernRequest | InvalidRequest) -> Invalid | None:
    """The rungs of the headers: doubled, version, method, name."""
    method, version = message.method, message.version
    doubled = _refuse_doubled(head, message)
    if doubled is not None:
        return doubled
    if version is None or head.version is None or header_text(head.version) != version:
        return _mismatch(message.id, "MCP-Protocol-Version", head.version, "the version in _meta")
    if head.method is None or header_text(head.method) != method:
        return _mismatch(message.id, "Mcp-Method", head.method, "the method of the request")
    member = NAMED_BY.get(method) or (head.name is not None and MAY_BE_NAMED_BY.get(method))
    if member and not _name_agrees(head.name, message.named):
        return _mismatch(message.id, "Mcp-Name", head.name, f"params.{member}")
    return None


def _refuse_doubled(head: Head, message: ModernRequest | InvalidRequest) -> Invalid | None:
    if _ONCE.isdisjoint(head.doubled):
        return None
    return _disagrees(message.id, "MCP-Protocol-Version, Mcp-Method and Mcp-Name may be there only once")


def _name_agrees(header: bytes | None, named: str | None) -> bool:
    if header is None or named is None:
        return header is None and named is None
    return header_text(header) == named


def _mismatch(id_: bytes, header: str, value: bytes | None, expected: str) -> Invalid:
    problem = "is missing" if value is None else f"does not equal {expected}"
    return _disagrees(id_, f"the header {header} {problem}")


def _disagrees(id_: bytes, message: str) -> Invalid:
    return Invalid(id=id_, code=HEADER_MISMATCH, message=message)


def disagreement(mirrors: tuple[Mirror, ...], message: ModernRequest, fields: Fields) -> Invalid | None:
    """Say what the head of a call repeats otherwise than its arguments are (`x-mcp-header`), before anybody acts on it.

    (MCP 2026-07-28, basic/transports/streamable-http "Custom Headers from Tool Parameters".)
    """
    arguments = arguments_in(mirrors, message.params)
    for mirror in mirrors:
        name = mirror.field.encode("latin-1")
        if name in fields.doubled:
            problem = "may be there only once, for"
        else:
            problem = _problem(fields.lines.get(name), arguments.get(mirror.field))
        if problem:
            where = ".".join(mirror.path)[:200]
            text = f"the header {mirror.field} {problem} the argument {where!r}"
            return Invalid(id=message.id, code=HEADER_MISMATCH, message=text)
    return None


def _problem(value: bytes | None, argument: msgspec.Raw | None) -> str:
    text = None if value is None else header_text(value)
    if agree(argument, text) and (text is not None or value is None):
        return ""
    if argument is None or bytes(argument) == b"null":
        return "is there without"
    return "is missing, which repeats" if value is None else "does not equal"
