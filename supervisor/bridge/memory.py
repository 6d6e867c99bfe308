"""What a client has told one daemon that the next one must be told, too. Pure.

- The legacy era: `initialize` and what follows it, the level of log messages, subscriptions to resources.
- The modern era: `subscriptions/listen`, the only requests there that outlive their answer.
- Both: streams of events (SEP-3415, "Push-Based Delivery"), with the cursor that they have come to.

It is kept as the bytes that the client wrote. What was acknowledged counts: nothing is repeated that was refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.changes import SUBSCRIBE, UNSUBSCRIBE, UPDATED
from actors.protocol.wire import json, jsonrpc
from supervisor.bridge.queue import QueuedLine
from supervisor.front.messages import Key, Request, key_of

LISTEN: Final = "subscriptions/listen"
OF_STREAMS: Final = "notifications/events/"
SET_LEVEL: Final = "logging/setLevel"
INITIALIZED: Final = "notifications/initialized"
KINDS: Final = ("tools", "resources", "prompts")
KEPT: Final = frozenset({"initialize", SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})
"""Requests whose success is remembered."""
_URIS: Final = msgspec.json.Decoder(list[str])


class Greeting(msgspec.Struct, frozen=True):
    """The `initialize` of a client as it was written, and what was agreed on; lists of `kinds` change."""

    line: bytes
    key: Key
    version: str
    kinds: tuple[str, ...]


class Listen(msgspec.Struct):
    """An open `subscriptions/listen`. `told`: notifications of a change of each thing that was acknowledged, None
    before.
    """

    request: QueuedLine
    told: tuple[bytes, ...] | None = None


class EventStream(msgspec.Struct):
    """An open `events/stream`. `is_active`: it was confirmed; `cursor` (JSON text): behind what the client has had."""

    request: QueuedLine
    is_active: bool = False
    cursor: msgspec.Raw = json.NO_RAW

    def note(self, method: str, params: msgspec.Raw) -> bool:
        """Note what is told on it; return whether that is news to the client. A gap is: "Gaps and `truncated`"."""
        self.cursor = json.at(params, "cursor") or self.cursor
        if method != f"{OF_STREAMS}active":
            return True
        is_news = not self.is_active or bytes(json.at(params, "truncated")) == b"true"
        self.is_active = True
        return is_news

    def again(self) -> bytes:
        """Return the request that goes on with it."""
        asked = self.request.request
        if asked is None or not self.cursor:
            return self.request.line
        params = {**json.members(asked.params), "cursor": self.cursor}
        return jsonrpc.request(asked.id, asked.method, jsonrpc.encode(params))


class ClientMemory:
    """What is known of one client."""

    def __init__(self) -> None:
        self.greeting: Greeting | None = None
        self.initialized: bytes | None = None
        self.listens: dict[Key, Listen] = {}
        self.streams: dict[Key, EventStream] = {}
        self._level: bytes | None = None
        self._subscribed: dict[str, bytes] = {}

    def keep(self, line: bytes, request: Request, result: msgspec.Raw) -> None:
        """Remember one of `KEPT`, which has succeeded."""
        params = bytes(request.params)
        match request.method:
            case "initialize":
                self.greeting = Greeting(line, request.key, version_of(result), tuple(_kinds_of(result)))
            case "logging/setLevel":
                self._level = params
            case "resources/subscribe":
                self._subscribed[json.text_at(params, "uri")] = params
            case _:
                self._subscribed.pop(json.text_at(params, "uri"), None)

    def requests(self) -> Iterator[tuple[str, bytes, str]]:
        """Yield what a session is told again: method, params, and the resource that it is about, empty if none."""
        if self._level is not None:
            yield SET_LEVEL, self._level, ""
        for uri, params in self._subscribed.items():
            yield SUBSCRIBE, params, uri

    def changes(self) -> list[bytes]:
        """Return what tells a session that every list may have changed."""
        if self.greeting is None or self.initialized is None:
            return []
        return [list_changed(kind) for kind in self.greeting.kinds]

    def begin(self, key: Key, entry: QueuedLine, method: str) -> None:
        """Note that a request was sent that lasts: `LISTEN` or `STREAM`."""
        if method == LISTEN:
            self.listens[key] = Listen(entry)
        else:
            self.streams[key] = EventStream(entry)

    def end(self, key: Key) -> None:
        """Forget a request that lasts."""
        self.listens.pop(key, None)
        self.streams.pop(key, None)

    def lasting(self) -> Iterator[bytes]:
        """Yield the requests that are made again."""
        yield from (listen.request.line for listen in self.listens.values())
        yield from (stream.again() for stream in self.streams.values())

    def forget_pending(self) -> dict[Key, QueuedLine]:
        """Forget those that nobody has confirmed, and return them: they are requests like others."""
        pending = {key: listen.request for key, listen in self.listens.items() if listen.told is None}
        pending |= {key: stream.request for key, stream in self.streams.items() if not stream.is_active}
        for key in pending:
            self.end(key)
        return pending

    def acknowledge(self, params: msgspec.Raw) -> list[bytes] | None:
        """Note what a listen is told of. None if that is news to the client; else what may have changed meanwhile."""
        id_ = bytes(json.at(params, "_meta", META_SUBSCRIPTION))
        key = key_of(id_)
        listen = None if key is None else self.listens.get(key)
        if listen is None:
            return None
        is_news, listen.told = listen.told is None, tuple(_notes_of(params, id_))
        return None if is_news else list(listen.told)


def update_of(uri: str, meta: bytes = b"{") -> bytes:
    """Return what tells that a resource may have changed; `meta` is the beginning of its params, an object."""
    separator = b"," if len(meta) > 1 else b""
    return jsonrpc.notification(UPDATED, meta + separator + b'"uri":' + jsonrpc.encode(uri) + b"}")


def list_changed(kind: str, params: bytes | None = None) -> bytes:
    return jsonrpc.notification(f"notifications/{kind}/list_changed", params)


def version_of(result: msgspec.Raw) -> str:
    return json.text_at(result, "protocolVersion")


def _kinds_of(result: msgspec.Raw) -> Iterator[str]:
    for kind in KINDS:
        if bytes(json.at(result, "capabilities", kind, "listChanged")) == b"true":
            yield kind


def _notes_of(params: msgspec.Raw, id_: bytes) -> Iterator[bytes]:
    """Yield a notification of each thing that an acknowledgement names."""
    meta = b'{"_meta":{"' + META_SUBSCRIPTION.encode() + b'":' + id_ + b"}"
    honoured = json.at(params, "notifications")
    for kind in (*KINDS, "events"):
        if bytes(json.at(honoured, f"{kind}ListChanged")) == b"true":
            yield list_changed(kind, meta + b"}")
    for uri in json.read_or(_URIS, json.at(honoured, "resourceSubscriptions"), []):
        yield update_of(uri, meta)
