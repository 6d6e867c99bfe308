"""What changes between a server's answer and a client's, where their eras differ: as little as possible. Pure.

Same era: the bytes pass unchanged. Otherwise `resultType` comes or goes (2026-07-28 requires it, strict older parsers
refuse it) and error codes are translated (protocol revisions disagree on "resource not found").
"""

from __future__ import annotations

import msgspec

from actors.errors import ServerError
from actors.messages import Result
from actors.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, ErrorObject, RemoteError, encode
from actors.protocol.versions import META_PREFIX, META_SERVER_INFO, Era

NOT_FOUND_LEGACY = -32002
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_HOP_ONLY = ("progressToken",)


class _Kind(msgspec.Struct):
    kind: str | None = msgspec.field(name="resultType", default=None)


_kind = msgspec.json.Decoder(_Kind)


def fit(result: Result, era: Era, server: str) -> bytes:
    """Return a server's result for a client of `era`.

    Raises `ServerError` for a server that asks for input: it was told that nobody can be asked.
    """
    body = bytes(result.body)
    if result.era == "modern":
        try:
            kind = _kind.decode(body).kind
        except msgspec.MsgspecError:
            kind = "?"
        if kind not in (None, "complete"):
            text = f"server {server!r} answered with a result of type {str(kind)[:40]!r}, which this client cannot take"
            raise ServerError(text, server=server, outcome="unknown")
        return body if era == "modern" else _without_modern_members(body)
    return body if era == "legacy" else with_member(body, b'"resultType":"complete"')


def with_member(body: bytes, member: bytes) -> bytes:
    """Return a JSON object with one member put in front; `body` must be an object."""
    rest = body.lstrip()[1:]
    return b"{" + member + (b"" if rest.lstrip()[:1] == b"}" else b",") + rest


def _without_modern_members(body: bytes) -> bytes:
    found = _members.decode(body)
    for name in ("resultType", "ttlMs", "cacheScope"):
        found.pop(name, None)
    if "_meta" in found:
        meta = {key: value for key, value in _members.decode(found["_meta"]).items() if key != META_SERVER_INFO}
        if meta:
            found["_meta"] = msgspec.Raw(encode(meta))
        else:
            del found["_meta"]
    return encode(found)


def travelling_meta(meta: msgspec.Raw) -> bytes:
    """Return those members of a client's `_meta` that may go to a server, as JSON members without braces.

    What describes the hop between client and daemon (version, capabilities, progress token) stays here.
    """
    data = bytes(meta)
    if len(data) <= 2:
        return b""
    try:
        found = _members.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return b""
    kept = {key: value for key, value in found.items() if not key.startswith(META_PREFIX) and key not in _HOP_ONLY}
    return encode(kept)[1:-1] if kept else b""


def relayed(error: RemoteError, method: str, era: Era) -> RemoteError:
    """Return a server's error in the codes of the client's era (specification: 2026-07-28 server/resources)."""
    found = error.error
    if method == "resources/read" and found.code in (NOT_FOUND_LEGACY, INVALID_PARAMS, 0):
        code = INVALID_PARAMS if era == "modern" else NOT_FOUND_LEGACY
        return RemoteError(ErrorObject(code, found.message, found.data))
    if found.code == 0 or -32099 <= found.code <= -32020:
        # Codes of the hop between us and the server mean nothing to the client.
        return RemoteError(ErrorObject(INTERNAL_ERROR, found.message, found.data))
    return error
