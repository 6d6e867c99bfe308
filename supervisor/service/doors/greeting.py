"""What a client of one server is told when it connects: what that server answered to us, fitted to the hop. Pure.

Everything is as the server wrote it, unknown members included, but for the revision, which is agreed on with the client
by us, and for capabilities that do not get through us. Where the eras differ the same is said in the other form.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from actors.catalogue.offer import Offer
from actors.protocol.jsonrpc import encode
from actors.protocol.versions import META_SERVER_INFO, MODERN_VERSIONS, Era

OWN_TTL_MS: Final = 60_000
NOT_PASSED: Final = ("tasks",)
"""Capabilities whose work outlives a call: a task would end with the process, and nobody would be told."""
NOT_PASSED_EXTENSIONS: Final = ("io.modelcontextprotocol/tasks",)

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def initialized(server: str, offer: Offer, version: str) -> bytes:
    """Return the result of `initialize` for a client with which `version` was agreed on."""
    said = _said(offer, "legacy") or {"capabilities": b"{}", "serverInfo": b"", **_rest(offer)}
    own = {"protocolVersion": version, "capabilities": capabilities(offer), "serverInfo": _info(server, offer)}
    return encode({**said, **own})


def discovered(server: str, offer: Offer) -> bytes:
    """Return the result of `server/discover`."""
    said = _said(offer, "modern")
    if not said:
        said = {**_rest(offer), "_meta": {META_SERVER_INFO: _info(server, offer)}}
    told = {"supportedVersions": MODERN_VERSIONS, "capabilities": capabilities(offer)}
    own = {"resultType": "complete", "ttlMs": OWN_TTL_MS, "cacheScope": "private"}
    return encode({**own, **said, **told})


def capabilities(offer: Offer) -> msgspec.Raw:
    """Return the capabilities of a server without those that do not get through us."""
    declared = _object(offer.capabilities)
    kept = {name: value for name, value in declared.items() if name not in NOT_PASSED}
    inner = _object(kept.get("extensions"))
    if any(each in inner for each in NOT_PASSED_EXTENSIONS):
        passed = {each: value for each, value in inner.items() if each not in NOT_PASSED_EXTENSIONS}
        kept["extensions"] = msgspec.Raw(encode(passed))
    return offer.capabilities if kept == declared and declared else msgspec.Raw(encode(kept))


def _said(offer: Offer, era: Era) -> dict[str, Any]:
    """Return what the server answered to us, if that was in this era; empty if not, or if it is not known any more."""
    said = _object(offer.answer) if offer.era == era else {}
    return {name: value for name, value in said.items() if bytes(value) != b"null"}


def _rest(offer: Offer) -> dict[str, Any]:
    """Return what an answer of the other era has to say beside capabilities and names."""
    said = _object(offer.answer).get("instructions")
    instructions = said if said is not None and bytes(said)[:1] == b'"' else offer.instructions
    return {"instructions": instructions} if instructions else {}


def _info(server: str, offer: Offer) -> Any:
    """Return who the server says it is; name and version are required by the schema."""
    info = _object(offer.server_info)
    given = {"name": server, "version": offer.version or "0"}
    return offer.server_info if given.keys() <= info.keys() else {**given, **info}


def _object(raw: msgspec.Raw | None) -> dict[str, msgspec.Raw]:
    """Return the members of an object; none of what is no object."""
    try:
        return _members.decode(raw) if raw is not None else {}
    except _UNREADABLE:
        return {}
