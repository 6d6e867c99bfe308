"""What a client of one server is told when it connects: what that server answered to us, fitted to the hop. Pure.

Everything is as the server wrote it, unknown members included, but for the revision, which is agreed on with the client
by us, and for capabilities that do not get through us. Where the eras differ the same is said in the other form. That a
server has events is said in both places where clients look for it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from actors.catalogue.offer import Offer
from actors.protocol import tasks
from actors.protocol.agreement.capabilities import EVENTS, SKETCHED, events_declared
from actors.protocol.agreement.versions import META_SERVER_INFO, MODERN_VERSIONS, Era
from actors.protocol.tasks import SINCE as TASKS_SINCE
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

OWN_TTL_MS: Final = 60_000


def initialize_result(server: str, offer: Offer, version: str) -> bytes:
    said = _own_answer(offer, "legacy") or {"capabilities": b"{}", "serverInfo": b"", **_rest(offer)}
    own = {"protocolVersion": version, "capabilities": capabilities(offer, version), "serverInfo": _info(server, offer)}
    return encode({**said, **own})


def discover_result(server: str, offer: Offer, version: str, *, shared: bool = True) -> bytes:
    """`shared`: see `with_lifetime`."""
    said = _own_answer(offer, "modern")
    if not said:
        said = {**_rest(offer), "_meta": {META_SERVER_INFO: _info(server, offer)}}
    told = {"supportedVersions": MODERN_VERSIONS, "capabilities": capabilities(offer, version)}
    told |= {} if shared else {"cacheScope": "private"}
    own = {"resultType": "complete", "ttlMs": OWN_TTL_MS, "cacheScope": "private"}
    return encode({**own, **said, **told})


def capabilities(offer: Offer, version: str) -> msgspec.Raw:
    """Return the capabilities of a server for a client of a revision, without what does not get through us.

    Tasks are shown to clients of their own kind only: from 2025-11-25 on, and in the era of the server.
    """
    declared = json.members(offer.capabilities)
    era: Era = "modern" if version in MODERN_VERSIONS else "legacy"
    spoken = offer.era == era and version >= TASKS_SINCE and tasks.speaks(offer.capabilities, era)
    kept = {name: value for name, value in declared.items() if name != "tasks"}
    if spoken and era == "legacy":
        kept["tasks"] = msgspec.Raw(encode(tasks.legacy_capability(offer.capabilities)))
    inner = json.members(kept.get("extensions"))
    if tasks.EXTENSION in inner and not (spoken and era == "modern"):
        del inner[tasks.EXTENSION]
        kept["extensions"] = msgspec.Raw(encode(inner))
    if events := events_declared(kept):
        kept |= {SKETCHED: events, "extensions": msgspec.Raw(encode({**inner, EVENTS: events}))}
    return offer.capabilities if kept == declared and declared else msgspec.Raw(encode(kept))


def _own_answer(offer: Offer, era: Era) -> dict[str, Any]:
    """Return what the server answered to us, if that was in this era; empty if not, or if it is not known any more."""
    said = json.members(offer.answer) if offer.era == era else {}
    return {name: value for name, value in said.items() if bytes(value) != b"null"}


def _rest(offer: Offer) -> dict[str, Any]:
    """Return what an answer of the other era has to say beside capabilities and names."""
    instructions = json.text_at(offer.answer, "instructions") or offer.instructions
    return {"instructions": instructions} if instructions else {}


def _info(server: str, offer: Offer) -> Any:
    """Return who the server says it is; name and version are required by the schema."""
    info = json.members(offer.server_info)
    given = {"name": server, "version": offer.version or "0"}
    return offer.server_info if given.keys() <= info.keys() else {**given, **info}
