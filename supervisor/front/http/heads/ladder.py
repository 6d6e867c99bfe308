"""Whether the headers of a POST agree with the message in it. Pure.

Rules of this file:
- A message that carries `_meta["io.modelcontextprotocol/protocolVersion"]` is modern, whatever its headers say; one
  without it is legacy unless its version header names a version that is not (MCP 2026-07-28, basic/versioning).
- A modern request passes a ladder, and the first rung that breaks is the answer (MCP 2026-07-28,
  basic/transports/streamable-http, "Server Validation"): shape, doubled headers, `_meta`, version header, method
  header, name header, version served. Whether the method exists and its parameters are right comes after that.
- What is no message is refused as such, whatever its headers say.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.codes import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, MAY_BE_NAMED_BY, NAMED_BY
from actors.protocol.agreement.versions import LEGACY_VERSIONS, META_CAPABILITIES, META_VERSION, MODERN_VERSIONS
from actors.protocol.wire.mirrors import Mirror, agree, arguments_in
from supervisor.front.edge.fields import Fields
from supervisor.front.http.heads.head import METHOD, NAME, SESSION, VERSION, Head, header_text
from supervisor.front.mcp.messages import (
    NO_BATCHES,
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

MAX_SHOWN_VERSION: Final = 64

_ONCE: Final = frozenset({VERSION, METHOD, NAME})
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
    if head.doubled and (VERSION in head.doubled or SESSION in head.doubled):
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
    named = f'"{META_VERSION}" and "{META_CAPABILITIES}" with protocol version {requested[:MAX_SHOWN_VERSION]}'
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
