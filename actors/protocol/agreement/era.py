"""Which era a server speaks: a negotiation as a pure machine.

Policy (MCP 2026-07-28, basic/versioning and stdio "Backward Compatibility"): probe with `server/discover`; anything but
positive evidence of the modern era means `initialize`; one re-probe at most; silence or exit under the probe means
`initialize` on a *fresh* process, because old servers can be broken by an unknown method before the handshake. Silence
after any answer says nothing about the era: it is an outage.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.codes import UNSUPPORTED_VERSION
from actors.protocol.agreement.capabilities import NOBODY
from actors.protocol.agreement.versions import (
    LATEST_LEGACY,
    LEGACY_VERSIONS,
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_SERVER_INFO,
    META_VERSION,
    MODERN_VERSIONS,
    Era,
)
from actors.protocol.wire import json, jsonrpc

MAX_ANSWER_BYTES = 256 * 1024
"""What the answer to a handshake may have: capabilities, the server's own data, instructions. It is kept as long as the
server is known, and written with its catalogue."""
MAX_ANSWER_DEPTH = 64


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who we say we are towards servers. `mark` is in our own answers to a handshake, and in nobody else's."""

    name: str = "mcpvisor"
    version: str = "0"
    mark: str = ""

    @property
    def info(self) -> dict[str, str]:
        """Return the `clientInfo` of our requests (an `Implementation` of the schema)."""
        return {"name": self.name, "version": self.version}


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a server is told of our clients, and what we insist on.

    `capabilities`, a JSON object, are declared to a legacy server: what it may ask. A modern one is told for each
    request. `roots` is the result that it gets for `roots/list`; empty where clients are asked. `only` is the era that
    it has to speak, None if that is to be found out. Not `reads_lists`: what it offers is known from elsewhere.
    """

    capabilities: bytes = NOBODY
    roots: bytes = b""
    only: Era | None = None
    reads_lists: bool = True


NOBODY_ASKED: Final = Terms()
ITSELF: Final = "this daemon itself answers there, so its tools would be tools of its own: remove the entry"


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """What both sides agreed on. `capabilities` and `server_info` are JSON objects as the server wrote them.

    `answer` is all that it answered to the handshake: a JSON object.
    """

    era: Era
    version: str
    capabilities: msgspec.Raw = msgspec.Raw(b"{}")
    server_info: msgspec.Raw = msgspec.Raw(b"{}")
    instructions: str = ""
    answer: msgspec.Raw = msgspec.Raw(b"{}")


class Send(msgspec.Struct, frozen=True):
    """Send this request and report its answer. `version` is the revision that it is written in, if it is of one."""

    method: str
    params: bytes
    version: str = ""


class NoAgreement(msgspec.Struct, frozen=True):
    """No mutual revision, or the server refuses the handshake: permanent."""

    reason: str


Action = Send | Agreement | NoAgreement


class _Discovered(msgspec.Struct):
    supported: list[str] = msgspec.field(name="supportedVersions")
    capabilities: msgspec.Raw = msgspec.Raw(b"{}")
    instructions: str | None = None
    meta: dict[str, msgspec.Raw] = msgspec.field(name="_meta", default_factory=dict)


class _Initialized(msgspec.Struct):
    version: str = msgspec.field(name="protocolVersion")
    capabilities: msgspec.Raw = msgspec.Raw(b"{}")
    server_info: msgspec.Raw = msgspec.field(name="serverInfo", default=msgspec.Raw(b"{}"))
    instructions: str | None = None


_discovered = msgspec.json.Decoder(_Discovered)
_initialized = msgspec.json.Decoder(_Initialized)
_versions = msgspec.json.Decoder(list[str])


class Negotiation:
    """One negotiation on one process. `known` is the era this launch had before, None if never asked."""

    def __init__(self, identity: Identity, known: Era | None, terms: Terms = NOBODY_ASKED) -> None:
        self.identity = identity
        self.terms = terms
        self._initializing = (terms.only or known) == "legacy"
        self._reprobed = False

    @property
    def probing(self) -> bool:
        """True while the first probe is unanswered: an exit or silence now says something about the era."""
        return not self._initializing and not self._reprobed and self.terms.only is None

    def start(self) -> Send:
        return self._begin() if self._initializing else self._probe(MODERN_VERSIONS[-1])

    def on_result(self, result: msgspec.Raw) -> Action:
        if (excess := _excess(result)) is not None:  # first, as the rest copies it
            return excess
        # The mark is random, so wherever a proxy on the way has put it, the answer began with us.
        if (mark := self.identity.mark) and mark.encode() in bytes(result):
            return NoAgreement(ITSELF)
        return self._on_initialize_result(result) if self._initializing else self._on_discover_result(result)

    def on_error(self, error: jsonrpc.ErrorObject) -> Action:
        supported = None
        if error.code == UNSUPPORTED_VERSION:
            supported = json.read_or(_versions, json.at(error.data, "supported"), [])
        if self._initializing:
            return self._on_initialize_error(error, supported)
        if supported is None:
            return self._initialize()
        mutual = _newest(MODERN_VERSIONS, supported)
        if mutual is not None and not self._reprobed:
            self._reprobed = True
            return self._probe(mutual)
        if any(version in LEGACY_VERSIONS for version in supported) or not supported:
            return self._initialize()
        return NoAgreement(f"the server speaks {', '.join(supported[:5])}; we speak {', '.join(MODERN_VERSIONS)}")

    def on_failure(self, reason: str) -> Action:
        """Call when the request sent last is not taken at all: whoever does not know `server/discover` is legacy."""
        if self._initializing:
            return NoAgreement(reason)
        return self._initialize()

    def _on_initialize_error(self, error: jsonrpc.ErrorObject, supported: list[str] | None) -> Action:
        # -32022 to `initialize` is positive evidence of the modern era: a slow start made us think otherwise.
        if supported is not None and not self._reprobed and self.terms.only is None:
            self._reprobed, self._initializing = True, False
            return self._probe(_newest(MODERN_VERSIONS, supported) or MODERN_VERSIONS[-1])
        return NoAgreement(f"the server refused the handshake: {error.message[:200]}")

    def _probe(self, version: str) -> Send:
        meta = {META_VERSION: version, META_CAPABILITIES: {}, META_CLIENT_INFO: self.identity.info}
        return Send("server/discover", jsonrpc.encode({"_meta": meta}), version)

    def _initialize(self) -> Send | NoAgreement:
        if self.terms.only == "modern":
            return NoAgreement("it does not answer server/discover as a server of the modern era does (setting `era`)")
        return self._begin()

    def _begin(self) -> Send:
        self._initializing = True
        declared = msgspec.Raw(self.terms.capabilities)
        params = {"protocolVersion": LATEST_LEGACY, "capabilities": declared, "clientInfo": self.identity.info}
        return Send("initialize", jsonrpc.encode(params))

    def _on_discover_result(self, result: msgspec.Raw) -> Action:
        if (discovered := json.read_or(_discovered, result, None)) is None:
            return self._initialize()
        version = _newest(MODERN_VERSIONS, discovered.supported)
        if version is None:
            return self._initialize()
        return Agreement(
            era="modern",
            version=version,
            capabilities=_own(discovered.capabilities),
            server_info=_own(discovered.meta.get(META_SERVER_INFO, msgspec.Raw(b"{}"))),
            instructions=discovered.instructions or "",
            answer=_own(result),
        )

    def _on_initialize_result(self, result: msgspec.Raw) -> Action:
        if (initialized := json.read_or(_initialized, result, None)) is None:
            return NoAgreement("the server answered initialize with something that is no initialize result")
        if initialized.version not in LEGACY_VERSIONS:
            return NoAgreement(f"the server wants protocol version {initialized.version[:40]!r}, which we do not speak")
        return Agreement(
            era="legacy",
            version=initialized.version,
            capabilities=_own(initialized.capabilities),
            server_info=_own(initialized.server_info),
            instructions=initialized.instructions or "",
            answer=_own(result),
        )


def _excess(result: msgspec.Raw) -> NoAgreement | None:
    """Return a refusal if an answer to the handshake is larger or deeper than any can need to be."""
    size = len(memoryview(result))
    if size > MAX_ANSWER_BYTES:
        return NoAgreement(f"its answer to the handshake has {size} bytes, the limit is {MAX_ANSWER_BYTES}")
    from actors.protocol.wire.outline import extent  # and numpy: a client's side of the protocol does without

    answer = bytes(result)
    if answer.count(b"{") + answer.count(b"[") > MAX_ANSWER_DEPTH and extent(answer).depth > MAX_ANSWER_DEPTH:
        return NoAgreement(f"its answer to the handshake is nested more than {MAX_ANSWER_DEPTH} levels deep")
    return None


def _own(part: msgspec.Raw) -> msgspec.Raw:
    """Return a copy that does not keep the message alive which it is a part of."""
    return msgspec.Raw(bytes(part))


def _newest(ours: tuple[str, ...], theirs: list[str]) -> str | None:
    return next((version for version in reversed(ours) if version in theirs), None)
