"""What changes between a server's answer and a client's, where their eras differ: as little as possible. Pure.

Same era: the bytes pass unchanged. Otherwise `resultType` comes or goes (2026-07-28 requires it, strict older parsers
refuse it) and error codes are translated (protocol revisions disagree on "resource not found"). Whatever is nested
below the top level is copied byte for byte.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from actors.codes import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    NO_CODE,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
)
from actors.errors import ProtocolViolation, ServerError
from actors.messages import Result
from actors.protocol.agreement.versions import META_SERVER_INFO, Era
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError, encode

MISLEADING = frozenset(
    {NO_CODE, RESOURCE_NOT_FOUND, HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION, URL_ELICITATION_REQUIRED}
)
"""Codes on which a modern client acts, or that may not be sent to one. -32020 and -32022 are of the hop between us and
the server: a client would send the call once more, or negotiate with us anew. -32021 is about capabilities of ours, not
of the client. -32002 and -32042 are of older revisions, and a modern peer must not send them; 0 says
nothing."""
HOP = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})
"""Those of them that a modern server means so: to an older client they mean nothing."""
_OF_ONE_RESOURCE: Final = ("resources/read", "resources/subscribe")
_NULL: Final = re.compile(rb'"\s*+:\s*+null')
_FAILED: Final = re.compile(rb'"isError"\s*+:\s*+true')
_PRIVATE = b'"private"'
_TO_ONE = b'"cacheScope":' + _PRIVATE
_AT_ONCE = b'"ttlMs":0,' + _TO_ONE
WHOLE: Final = "mcpvisor/whole"
"""In `_meta` of a call: its result is for a program, which gets it whole, however large it is."""
OF_RESULTS: Final = frozenset({"_meta", "isError", "nextCursor", "description"})
OF_COMPLETIONS: Final = frozenset({"total", "hasMore"})
OF_BLOCKS: Final = frozenset({"_meta", "annotations", "mimeType", "title", "description", "size", "icons"})
OF_CONTENTS: Final = frozenset({"_meta", "mimeType", "text", "blob"})
"""Members that are optional in the schema of every revision, and of which none says that it may be null."""
_NOT_BLANK: Final = re.compile(rb"\S")
_HOP_ONLY = ("progressToken", WHOLE)
_NOT_FOUND = re.compile(r"not found|unknown resource|no such|does not exist", re.IGNORECASE)
_MAX_KNOWN, _MAX_KNOWN_BYTES = 256, 1024
"""So many texts of that size are kept: a client says the same with each request."""
_RESERVED_PREFIX = re.compile(r"[^./]+\.(?:modelcontextprotocol|mcp)(?:\.[^/]*)?/")
"""A prefix whose second label is `modelcontextprotocol` or `mcp` is the protocol's own (basic/index, "_meta")."""


def fit(result: Result, era: Era, server: str) -> bytes:
    """Return a server's result for a client of `era`.

    Raises `ServerError` for a server that asks for input: it was told that nobody can be asked; `ProtocolViolation` for
    what would break the client, with every other answer on its connection.
    """
    body = _without_nulls(bytes(result.body), valued=result.era == "modern")
    if len(body) > json.MAX_INT_DIGITS and json.has_endless_integer(body):
        text = f"server {server!r} answered with an integer of over 4,300 digits, which hardly any client can read"
        raise ProtocolViolation(text, server=server, outcome="completed")
    if result.era == "legacy":
        return body if era == "legacy" else with_member(without(body, "resultType"), b'"resultType":"complete"')
    kind = bytes(json.read_or(json.MEMBERS, body, {"resultType": b"?"}).get("resultType", b"null"))
    if kind not in (b'"complete"', b"null"):
        shown = kind[:40].decode(errors="replace")
        text = f"server {server!r} answered with a result of type {shown}, which this client cannot take"
        raise ServerError(text, server=server, outcome="unknown")
    if era == "legacy":
        return _without_modern_members(body)
    return body if kind == b'"complete"' else with_member(without(body, "resultType"), b'"resultType":"complete"')


def is_whole(meta: msgspec.Raw) -> bool:
    """Say whether a call, by its `_meta`, is made by a program that wants all of the result."""
    return bytes(json.at(meta, WHOLE)) == b"true"


def with_member(body: bytes, member: bytes) -> bytes:
    """Return a JSON object with one member put in front; `body` must be an object."""
    rest = memoryview(body.lstrip())[1:]
    following = _NOT_BLANK.search(rest)
    empty = following is not None and following[0] == b"}"
    return b"".join([b"{", member, b"" if empty else b",", rest])  # copied once


def with_lifetime(body: bytes, written: Era, *, shared: bool = True) -> bytes:
    """Return a complete result with how long it holds: not at all, where its server does not say it as it must.

    (2026-07-28 server/utilities/caching: `ttlMs` and `cacheScope` are required.) `written`: the era of the server.
    `shared`: whether everybody is served alike; else what a server calls public may be what it shows to one user.
    """
    if (said := json.read_or(json.MEMBERS, body, None)) is None:  # it is too deep to be looked into
        return with_member(body, _AT_ONCE)
    kind, ttl, scope = (bytes(said.get(name, b"")) for name in ("resultType", "ttlMs", "cacheScope"))
    if kind not in (b'"complete"', b""):
        return body
    if written == "modern" and ttl.isdigit() and scope in (b'"public"', _PRIVATE):
        return body if shared or scope == _PRIVATE else with_member(without(body, "cacheScope"), _TO_ONE)
    return with_member(without(body, "ttlMs", "cacheScope"), _AT_ONCE)


def without(body: bytes, *names: str) -> bytes:
    """Return a JSON object without some members; the same bytes where it has none of them."""
    if not json.holds(body, tuple(map(encode, names))):
        return body
    members = json.read(json.MEMBERS, body)
    kept = {name: value for name, value in members.items() if name not in names}
    return body if len(kept) == len(members) else encode(kept)


def _without_nulls(body: bytes, *, valued: bool) -> bytes:
    """Return a result without members that are `null` and may only be left out: some servers write them all.

    Strict clients refuse the whole answer for one. `valued`: a structured content may be null. What is not of the
    protocol stays as it is.
    """
    if not json.may_hold(body, _NULL, b"null"):
        return body
    names = OF_RESULTS if valued else OF_RESULTS | {"structuredContent"}
    members = json.members(body)
    lean = _lean(members, names)
    for name in ("content", "contents", "messages"):
        if not json.may_hold(bytes(lean.get(name, b"")), _NULL, b"null"):
            continue
        blocks = json.read_or(json.ELEMENTS, lean[name], [])
        changed = [_lean_block(block) for block in blocks]
        if any(one is not other for one, other in zip(changed, blocks, strict=True)):
            lean = {**lean, name: msgspec.Raw(encode(changed))}
    completed = json.members(lean.get("completion"))
    if (fewer := _lean(completed, OF_COMPLETIONS)) is not completed:
        lean = {**lean, "completion": msgspec.Raw(encode(fewer))}
    return body if lean is members else encode(lean)


def _lean_block(block: msgspec.Raw) -> msgspec.Raw:
    """Return a block of content, the contents of a resource, or a message with a block."""
    if not json.may_hold(bytes(block), _NULL, b"null"):
        return block
    members = json.members(block)
    lean = _lean(members, OF_BLOCKS if "type" in members else OF_CONTENTS)
    within = "resource" if "type" in members else "content"
    if (inside := lean.get(within)) is not None and (inner := _lean_block(inside)) is not inside:
        lean = {**lean, within: inner}
    return block if lean is members else msgspec.Raw(encode(lean))


def _lean(members: json.Members, names: frozenset[str]) -> json.Members:
    """Return members without those of these names that are null; the very same where none is."""
    nulls = {name for name in names & members.keys() if bytes(members[name]) == b"null"}
    return {name: value for name, value in members.items() if name not in nulls} if nulls else members


def _without_modern_members(body: bytes) -> bytes:
    plain = without(body, "resultType", "ttlMs", "cacheScope")
    return json.with_meta(plain, META_SERVER_INFO, b"")


def travelling_meta(meta: msgspec.Raw) -> bytes:
    """Return the members of a client's `_meta` that do not describe the hop to the daemon, as JSON without braces."""
    data = bytes(meta)
    if len(data) <= 2:
        return b""
    return _known_members(data) if len(data) <= _MAX_KNOWN_BYTES else _members_beyond_hop(data)


def _members_beyond_hop(meta: bytes) -> bytes:
    members = json.members(meta)
    kept = {key: value for key, value in members.items() if not _RESERVED_PREFIX.match(key) and key not in _HOP_ONLY}
    return encode(kept)[1:-1] if kept else b""


_known_members = lru_cache(maxsize=_MAX_KNOWN)(_members_beyond_hop)


def not_found(era: Era, message: str, uri: str) -> RemoteError:
    code = INVALID_PARAMS if era == "modern" else RESOURCE_NOT_FOUND
    data = {"type": "not_found", "outcome": "not_sent", "retryable": False, "uri": uri[:8192]}
    return RemoteError(ErrorObject(code, message, msgspec.Raw(encode(data))))


def translate_error(
    error: RemoteError, method: str, era: Era, uri: str = "", written: Era | None = None
) -> RemoteError:
    """Return a server's error for a client of `era`: as it is, but for codes that would mislead that client.

    `uri`: the resource that it is about; `written`: the era of the server, if that is known. Message and data stay.
    (2026-07-28 basic/index "Error Codes", server/resources; `docs/reference/server-errors.md` has the list.)
    """
    said = error.error
    if method in _OF_ONE_RESOURCE and _says_not_found(said):
        code = INVALID_PARAMS if era == "modern" else RESOURCE_NOT_FOUND
        data = said.data if bytes(said.data) else msgspec.Raw(encode({"uri": uri}))
        return RemoteError(ErrorObject(code, said.message, data))
    if said.code in (MISLEADING if era == "modern" else HOP if written == "modern" else ()):
        return RemoteError(ErrorObject(INTERNAL_ERROR, said.message, said.data))
    return error


def passes(said: ErrorObject, era: Era, written: Era, capabilities: msgspec.Raw) -> bool:
    """Say whether an error of a server may reach a client as it is: not if it is about our hop to the server.

    That the client lacks a capability is true only if it does, as its `capabilities` tell; we declare fewer.
    """
    if era != written:
        return False
    if era == "modern" and said.code == MISSING_CAPABILITY:
        return lacks(capabilities, said.data)
    return era == "legacy" or said.code not in (HEADER_MISMATCH, UNSUPPORTED_VERSION)


def lacks(capabilities: msgspec.Raw, data: msgspec.Raw) -> bool:
    """Say whether a client does not declare what the data of a -32021 requires; False if that names nothing."""
    required = json.members(json.at(data, "requiredCapabilities"))
    return not required.keys() <= json.read_or(json.MEMBERS, capabilities, required).keys()


def _says_not_found(said: ErrorObject) -> bool:
    """Whether a resource is missing: -32002 by older revisions, -32602 with the URI by the newest, 0 by some SDKs."""
    if said.code == INVALID_PARAMS:
        return bool(json.text_at(said.data, "uri") or _NOT_FOUND.search(said.message))
    return said.code == RESOURCE_NOT_FOUND or (said.code == NO_CODE and bool(_NOT_FOUND.search(said.message)))


def has_failed(body: bytes) -> bool:
    return json.may_hold(body, _FAILED, b'"isError"') and bytes(json.at(body, "isError")) == b"true"


def with_text(body: bytes, text: str) -> bytes:
    """Return the result of a call of a tool with a text more; what is no such result, as it is."""
    try:
        members = json.read(json.MEMBERS, body)
        blocks = json.read(json.ELEMENTS, members["content"])
    except (json.UnreadableJson, KeyError):
        return body
    return encode({**members, "content": [*blocks, {"type": "text", "text": text}]})


def as_tool_result(error: RemoteError, method: str) -> Result | None:
    """Return what a call gives whose server wants a capability that nobody here has: a failed call, not an error."""
    if method != "tools/call" or error.error.code != MISSING_CAPABILITY:
        return None
    block = {"type": "text", "text": error.error.message}
    return Result(msgspec.Raw(encode({"content": [block], "isError": True})), "legacy")


# What is said with a result where a new process answers a client, and what an earlier one held is gone.
#
# A model is shown the texts of a result, and mostly nothing else: at the door of the meta-tools it is one of them. At a
# door where a server stands for itself its result stays as it is, and `_meta` says it to a program that knows of it.

STATE_KEY: Final = "mcpvisor/state"


def state_told_to_model(body: bytes, server: str, lost: str) -> bytes:
    return with_text(body, f"Note: server {server!r} is a new process since your last call, which has lost {lost}.")


def state_told_in_meta(body: bytes, server: str, lost: str) -> bytes:
    """Return a result with `_meta` saying it; the rest is the same bytes, member by member."""
    try:
        members = json.read(json.MEMBERS, body)
        meta = json.read(json.MEMBERS, members["_meta"]) if "_meta" in members else {}
    except json.UnreadableJson:
        return body
    return encode({**members, "_meta": {**meta, STATE_KEY: {"server": server, "lost": lost}}})
