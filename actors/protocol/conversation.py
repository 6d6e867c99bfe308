"""Everything said with one process of a server, without I/O: handshake, lists, calls, changes.

Bytes in, facts out; what must be written is collected and taken with `take_output`. One conversation serves one
incarnation; the next process gets a new one.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.protocol import jsonrpc
from actors.protocol.era import (
    Action,
    Agreement,
    Identity,
    Impossible,
    Negotiation,
    Send,
    Settled,
)
from actors.protocol.facts import CALL_FACTS as CALL_FACTS
from actors.protocol.facts import Agreed as Agreed
from actors.protocol.facts import AllListed as AllListed
from actors.protocol.facts import CallAnswered as CallAnswered
from actors.protocol.facts import CallMalformed as CallMalformed
from actors.protocol.facts import CallRefused as CallRefused
from actors.protocol.facts import Fact as Fact
from actors.protocol.facts import Fresh as Fresh
from actors.protocol.facts import ListsChanged as ListsChanged
from actors.protocol.facts import NoAgreement as NoAgreement
from actors.protocol.framing import Oversized
from actors.protocol.listing import METHODS, Kind, Listing, ListLimits, PageSummary
from actors.protocol.listing import PageArrived as PageArrived
from actors.protocol.opening import Message, Opened
from actors.protocol.peer import Answered, Asked, Malformed, Notified, Peer, Refused
from actors.protocol.versions import BATCH_VERSION, META_CAPABILITIES, META_CLIENT_INFO, META_VERSION, Era

CHANGES: dict[str, Kind] = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
}

Tag = int | Kind | Literal["negotiation", "listen", "life"]

_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
"""Arguments are passed on as the client wrote them, often over many lines, but a line is a message here (MCP stdio).
JSON strings cannot hold a line break, so each one is white space. Nobody can smuggle a message of his own this way."""


class Conversation:
    """One process's worth of MCP. `prefix` makes the ids of this incarnation unlike those of any other."""

    def __init__(self, prefix: str, identity: Identity, known: Era | None, limits: ListLimits) -> None:
        self._peer: Peer[Tag] = Peer(prefix)
        self._identity = identity
        self._negotiation = Negotiation(identity, known)
        self._limits = limits
        self._listing: Listing | None = None
        self._output: list[bytes] = []
        self._meta = b""
        self._ids: dict[Tag, bytes] = {}
        self.agreement: Agreement | None = None

    @property
    def strays(self) -> int:
        """Answers that matched nothing."""
        return self._peer.strays

    @property
    def probing(self) -> bool:
        """True while the first probe of the era is unanswered."""
        return self._negotiation.probing

    @property
    def batches(self) -> bool:
        """Whether the server may send several messages at once (only in 2025-03-26, basic/index "Batching")."""
        return self.agreement is not None and self.agreement.version == BATCH_VERSION

    @property
    def listing(self) -> bool:
        """True while a walk over the lists is under way."""
        return self._listing is not None

    def take_output(self) -> bytes:
        """Return all messages to be written, each ended by a newline, and forget them."""
        if not self._output:  # mostly: it is asked again and again, so that nothing is put behind what comes later
            return b""
        data = b"".join(self._output)
        self._output.clear()
        return data

    def greet(self) -> None:
        """Begin the handshake."""
        self._follow(self._negotiation.start())

    def silence(self) -> Fresh | None:
        """Say that no answer came in time, or that the process ended; None: that says nothing about the era."""
        return Fresh() if self._negotiation.on_silence() is not None else None

    def list_all(self, now: float) -> AllListed | None:
        """Begin a walk over all lists; returns its (empty) result at once if the server announces none.

        `now` is in seconds of the clock that `on_page` is told, too.
        """
        capabilities = self.agreement.capabilities if self.agreement else msgspec.Raw(b"{}")
        self._listing = Listing(capabilities, self._limits, now)
        for kind, params in self._listing.first():
            self._ask_page(self._listing, kind, params)
        return self._finish_listing()

    def _ask_page(self, listing: Listing, kind: Kind, params: bytes | None) -> None:
        self._ask(kind, METHODS[kind], params)
        listing.asked(kind, self._ids[kind])

    def on_page(self, kind: Kind, page: PageSummary, now: float) -> AllListed | None:
        """Go on with the walk when a page was read; returns the result of the last one."""
        self._forget(kind)
        if self._listing is None:
            return None
        following = self._listing.on_page(kind, page, now)
        if following is not None:
            self._ask_page(self._listing, *following)
        return self._finish_listing()

    def waits_for(self, kind: Kind) -> bool:
        """Return whether a walk is under way that has not come to the end of that list."""
        return self._listing is not None and self._listing.waits_for(kind)

    def stop_listing(self, seconds: float) -> AllListed | None:
        """Give up a walk over the lists that took these seconds; late pages are dropped."""
        for kind in METHODS:
            self._forget(kind)
        if self._listing is not None:
            self._listing.give_up(seconds)
        return self._finish_listing()

    def _forget(self, kind: Kind) -> None:
        id_ = self._ids.pop(kind, None)
        if id_ is not None:
            self._peer.forget(id_)

    def listen(self) -> None:
        """Ask a modern server to tell about changes (`subscriptions/listen`); a legacy one tells unasked."""
        if self.agreement is not None and self.agreement.era == "modern":
            wanted = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}
            self._ask("listen", "subscriptions/listen", jsonrpc.encode({"notifications": wanted}))

    def ask_for_life(self) -> None:
        """Ask for any answer at all: `ping`, or `server/discover` in the modern era, which has no ping."""
        modern = self.agreement is not None and self.agreement.era == "modern"
        self._ask("life", "server/discover" if modern else "ping", None)

    def call(self, call: int, method: str, members: bytes, meta: bytes) -> None:
        """Send a request for `call`. `members` and `meta` are JSON members without their braces, or empty."""
        parts = b",".join(part for part in (self._meta, meta) if part)
        rest = b'"_meta":{' + parts + b"}" if parts else b""
        self._ids[call] = id_ = self._peer.expect(call)
        # Members may be large: they are copied once, when all output is taken.
        head, separator = jsonrpc.request_head(id_, method), b"," if members and rest else b""
        self._output += (head, b',"params":{', _one_line(members), separator, _one_line(rest), b"}}\n")

    def cancel(self, call: int, reason: str) -> None:
        """Tell the server that nobody waits for a call any more; its late answer is dropped."""
        id_ = self._ids.pop(call, None)
        if id_ is not None and self._peer.forget(id_):
            params = b'{"requestId":' + id_ + b',"reason":' + jsonrpc.encode(reason) + b"}"
            self._write(jsonrpc.notification("notifications/cancelled", params))

    def receive(self, message: Message, spoiled_by: str = "") -> Fact | None:
        """Take one message of the server. Raises `ProtocolViolation` for what is no JSON-RPC.

        `spoiled_by` says why it cannot be used whatever it says; a call that it answers fails with that.
        """
        page = None
        if self._listing is not None and isinstance(message, bytes | Opened) and not spoiled_by:
            page = self._listing.recognise(message)
        return page or self._receive(message, spoiled_by)

    def receive_other(self, message: bytes | Opened, kind: Kind | None = None) -> Fact | None:
        """Take one message that turned out to be no page of list `kind`. Raises `ProtocolViolation`."""
        if self._listing is not None and kind is not None:
            self._listing.expect_again(kind)
        return self._receive(message, "")

    def _receive(self, message: Message, spoiled_by: str) -> Fact | None:
        peer = self._peer
        match peer.spoil(message, spoiled_by) if spoiled_by else peer.receive(message):
            case Answered(tag=int(call), result=result):
                self._ids.pop(call, None)
                return CallAnswered(call, result)
            case Refused(tag=int(call), error=error):
                self._ids.pop(call, None)
                return CallRefused(call, error)
            case Malformed(tag=int(call), reason=reason, done=done, over=over):
                self._ids.pop(call, None)
                return CallMalformed(call, reason, done, over)
            case Notified(method=method):
                return ListsChanged() if method in CHANGES else None
            case Asked(id=id_, method=method):
                self._reply(id_, method)
                return None
            case None:
                return None
            case event:
                return self._receive_own(event, message if not (spoiled_by or isinstance(message, Oversized)) else b"")

    def _receive_own(
        self, event: Answered[Tag] | Refused[Tag] | Malformed[Tag], message: bytes | Opened
    ) -> Fact | None:
        """Answers to what we asked for ourselves. `message` is empty if it cannot be read, whatever is in it."""
        match event:
            case Answered(tag="negotiation", result=result):
                return self._follow(self._negotiation.on_result(result))
            case Refused(tag="negotiation", error=error):
                return self._follow(self._negotiation.on_error(error))
            case Malformed(tag="negotiation", reason=reason):
                error = jsonrpc.ErrorObject(jsonrpc.INTERNAL_ERROR, f"it answered with {reason}")
                return self._follow(self._negotiation.on_error(error))
            case Answered(tag="listen" | "life") | Refused(tag="listen" | "life") | Malformed(tag="listen" | "life"):
                return None
            case Malformed(reason=reason) if self._listing is not None and event.tag in METHODS and not message:
                return self._listing.take(event.tag, b"", f"it answered with {reason}")
            case _ if self._listing is not None and event.tag in METHODS:
                return self._listing.take(event.tag, message)
            case _:
                return None

    def _finish_listing(self) -> AllListed | None:
        if self._listing is None or not self._listing.done:
            return None
        listed = self._listing.result()
        self._listing = None
        return AllListed(listed)

    def _follow(self, action: Action) -> Fact | None:
        match action:
            case Send(method=method, params=params):
                _, message = self._peer.request("negotiation", method, params)
                self._write(message)
                return None
            case Settled(agreement=agreement, notify=notify):
                self.agreement = agreement
                self._meta = self._envelope(agreement)
                if notify is not None:
                    self._write(notify)
                return Agreed(agreement)
            case Impossible(reason=reason):
                return NoAgreement(reason)

    def _envelope(self, agreement: Agreement) -> bytes:
        """The members of `_meta` that every modern request carries (2026-07-28, basic/index "_meta")."""
        if agreement.era == "legacy":
            return b""
        info = msgspec.to_builtins(self._identity)
        meta = {META_VERSION: agreement.version, META_CAPABILITIES: {}, META_CLIENT_INFO: info}
        return jsonrpc.encode(meta)[1:-1]

    def _ask(self, tag: Tag, method: str, params: bytes | None) -> None:
        members = params[1:-1] if params else b""
        meta = b'"_meta":{' + self._meta + b"}" if self._meta else b""
        body = b",".join(part for part in (members, meta) if part)
        self._ids[tag], message = self._peer.request(tag, method, b"{" + body + b"}" if body else None)
        self._write(message)

    def _reply(self, id_: bytes, method: str) -> None:
        """Answer a request of a legacy server; a modern one may not ask (it is ignored)."""
        if self.agreement is not None and self.agreement.era == "modern":
            return
        if method == "ping":
            self._write(jsonrpc.success(id_, b"{}"))
        else:
            self._write(jsonrpc.failure(id_, jsonrpc.METHOD_NOT_FOUND, f"{method[:100]} is not supported here"))

    def _write(self, message: bytes) -> None:
        self._output += (_one_line(message), b"\n")


def _one_line(part: bytes) -> bytes:
    return part.translate(_ONE_LINE) if b"\n" in part or b"\r" in part else part
