"""What is said to one server: requests with their ids and what every one of them carries, in order. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Literal

import msgspec

from actors.protocol.agreement.capabilities import NOBODY
from actors.protocol.agreement.era import Agreement, Identity
from actors.protocol.agreement.versions import META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_VERSION, Era
from actors.protocol.exchanges import LOG_LEVELS, NOTHING, UNASKED, UNSAID, Interest, LogLevel
from actors.protocol.listing import Kind, capability_names
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.mirrors import MirrorsOf
from actors.protocol.wire.peer import Outgoing, Peer

CANCELLED: Final = "notifications/cancelled"
LISTEN: Final = "subscriptions/listen"
SIGN_OF_LIFE: Final[dict[Era, str]] = {"legacy": "ping", "modern": "server/discover"}
"""What any server of an era answers, and nothing follows from."""
SIGNS_OF_LIFE: Final = frozenset(SIGN_OF_LIFE.values())

ListenTag = Literal["listen", "other listen"]
LISTENS: Final[tuple[ListenTag, ListenTag]] = ("listen", "other listen")
"""One is open while another is being opened."""

Tag = int | Kind | ListenTag | Literal["negotiation", "life", "log level", "subscribe", "task"]
"""What an answer is for: a call by its number, or something of our own."""


class ClientRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a client for a server, or one that we make for it.

    `members` are the JSON members of the params without their braces and without `_meta`; `meta` those of the client's
    `_meta` that may travel. `name` is what the request is about: a tool, a prompt, a URI. `retry` are the JSON members
    that answer what a modern server asked for by its result; a legacy one never gets them. `as_task`: the client can do
    with a task in place of the result, in the way of the server's era.
    """

    method: str
    members: bytes
    meta: bytes = b""
    name: str = ""
    interest: Interest = NOTHING
    retry: bytes = b""
    as_task: bool = False

    @property
    def client(self) -> Hashable:
        """Who hears of it."""
        return None


class Outbound:
    """The `messages` to one incarnation until somebody takes them, with their `ids`.

    `mirrors_of` knows the tools of the server.
    """

    def __init__(self, ids: Iterator[int], mirrors_of: MirrorsOf) -> None:
        self._mirrors_of = mirrors_of
        self.peer: Peer[Tag] = Peer(ids)
        self.messages: list[Outgoing] = []
        self._modern = False
        self._version = ""
        self._identity = self._meta = b""
        self._logs = False
        self._log_level = self._unasked = len(LOG_LEVELS)

    def on_agreement(self, agreement: Agreement, identity: Identity) -> None:
        self._modern = agreement.era == "modern"
        self._version = agreement.version
        self._logs = not self._modern and "logging" in capability_names(agreement.capabilities)
        if self._modern:  # the members of `_meta` that every request carries (2026-07-28, basic/index "_meta")
            self._identity = jsonrpc.encode({META_VERSION: agreement.version, META_CLIENT_INFO: identity.info})[1:-1]
            self._meta = self._modern_meta(NOBODY)

    def write(self, message: bytes, *, method: str = "", id_: bytes = b"", cancels: bytes = b"") -> None:
        version = self._version
        self.messages.append(Outgoing(parts=(message,), method=method, id=id_, version=version, cancels=cancels))

    def request(self, tag: Tag, method: str, params: bytes | None, version: str) -> bytes:
        """Ask something as it is, in a revision that was not agreed on yet, or was. Return the id."""
        id_, message = self.peer.request(tag, method, params)
        self.messages.append(Outgoing(parts=(message,), method=method, id=id_, version=version))
        return id_

    def ask(self, tag: Tag, method: str, params: bytes | None = None) -> bytes:
        """Ask something of our own; `params` is a JSON object without `_meta`. Return the id."""
        members = params[1:-1] if params else b""
        meta = b'"_meta":{' + self._meta + b"}" if self._meta else b""
        body = b",".join(part for part in (members, meta) if part)
        return self.request(tag, method, b"{" + body + b"}" if body else None, self._version)

    def call(self, call: int | Literal["task"], asked: ClientRequest) -> bytes:
        """Send a request of a client, or one about a task. Return the id."""
        id_, method, name, members, meta = self.peer.expect(call), asked.method, asked.name, asked.members, asked.meta
        interest = asked.interest
        if asked.retry and self._modern:
            members = b",".join(part for part in (members, asked.retry) if part)
        if interest.log_level is not None and self._logs:
            self._lower_log_level(interest.log_level)
        own = self._meta if interest is NOTHING or interest is UNSAID else self._own_meta(id_, interest)
        rest = b'"_meta":{' + own + (b"," if own and meta else b"") + meta + b"}" if own or meta else b""
        # Members may be large: they are copied once, by the transport.
        separator = b"," if members and rest else b""
        parts = (jsonrpc.request_head(id_, method), b',"params":{', members, separator, rest, b"}}")
        mirrors = self._mirrors_of(name) if self._modern and method == "tools/call" else ()
        self.messages.append(
            Outgoing(parts=parts, method=method, id=id_, name=name, version=self._version, mirrors=mirrors)
        )
        return id_

    def _own_meta(self, id_: bytes, interest: Interest) -> bytes:
        """Return what the `_meta` of a request has of ours, and see to it that the server tells what is wanted."""
        declares = self._modern and interest.capabilities != NOBODY
        own = self._modern_meta(interest.capabilities) if declares else self._meta
        parts = [own] if own else []
        if interest.progress:
            parts.append(b'"progressToken":' + id_)
        if interest.log_level and self._modern:
            parts.append(b'"%b":"%b"' % (META_LOG_LEVEL.encode(), interest.log_level.encode()))
        return b",".join(parts)

    def _modern_meta(self, capabilities: bytes) -> bytes:
        """Return the members of `_meta` of a request whose client can be asked that much."""
        return b'%b,"%b":%b' % (self._identity, META_CAPABILITIES.encode(), capabilities)

    def _lower_log_level(self, wanted: LogLevel | Literal[""]) -> None:
        """Make a legacy server at least so talkative. What one client does not want is not told to it anyway.

        For those who did not say it is left as it is, until somebody else says how talkative it shall be.
        """
        if not wanted:
            self._unasked = UNASKED
        if not wanted and self._log_level == len(LOG_LEVELS):
            return
        level = min(LOG_LEVELS.index(wanted), self._unasked) if wanted else UNASKED
        if level < self._log_level:
            self._log_level = level
            self.ask("log level", "logging/setLevel", jsonrpc.encode({"level": LOG_LEVELS[level]}))

    def cancel(self, id_: bytes, reason: str) -> None:
        """Take back the request of a call that has no answer; a late one says that the server is done with it."""
        self.peer.leave(id_)
        self._send_cancelled(id_, reason)

    def take_back(self, tag: Tag, reason: str) -> None:
        id_ = self.peer.id_of(tag)
        self.peer.settle(id_)
        self._send_cancelled(id_, reason)

    def _send_cancelled(self, id_: bytes, reason: str) -> None:
        params = b'{"requestId":' + id_ + b',"reason":' + jsonrpc.encode(reason) + b"}"
        self.write(jsonrpc.notification(CANCELLED, params), method=CANCELLED, cancels=id_)

    def forget(self, tag: Tag) -> None:
        self.peer.settle(self.peer.id_of(tag))
