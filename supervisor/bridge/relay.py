"""What becomes of the messages between a client and a daemon that may end, and come again as another one. Pure.

Rules of this file:
- Messages pass as the bytes they are. Of a message only what it is is looked at: method, id, and what the next daemon
  must be told, too.
- What a client has said and no daemon has got waits in its order, within bounds, each request with a deadline. It has
  surely not been sent. A request that was sent gets its answer, or, at the end of its connection, an error that says
  that nobody knows; one that changes nothing is sent once more instead.
- A connection begins with what the client has told the one before; the answers to that are not for the client. Then it
  is told that everything may have changed.
- That is of the legacy era `initialize` and what follows it, the level of log messages, subscriptions to resources; of
  the modern one `subscriptions/listen`, the only requests there that outlive their answer; of both streams of events
  (SEP-3415, "Push-Based Delivery"), with the cursor that they have come to. It is kept as the bytes that the client
  wrote. What was acknowledged counts: nothing is repeated that was refused.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from actors.errors import DaemonAway, DaemonLost, ShuttingDown, SupervisorError, TooManyCalls
from actors.protocol.agreement.capabilities import SHUTDOWN, STREAM
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.changes import ACKNOWLEDGED, SUBSCRIBE, UNSUBSCRIBE, UPDATED
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.jsonrpc import JsonRpcMessage
from supervisor.front.messages import (
    Batch,
    InvalidNotification,
    InvalidRequest,
    Key,
    Notification,
    Request,
    Response,
    batch_elements,
    key_of,
    read,
    read_cancelled,
)

WAIT_S: Final = 30.0
"""For a request until there is a daemon: official clients give up after 60 s."""
MAX_WAITING: Final = 256
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024


class QueuedLine(msgspec.Struct, eq=False):
    """A line for the daemon and the requests in it by key, as JSON texts: one, none, or those of an array.

    `request` is what may be sent again; `repeated`: it was.
    """

    line: bytes
    ids: dict[Key, bytes]
    request: Request | None = None
    repeated: bool = False
    deadline: float = 0.0

    def failures(self, error: SupervisorError) -> list[bytes]:
        """Return the answers that all its requests failed: to an array in an array."""
        answers = [failure(id_, error) for id_ in self.ids.values()]
        return [b"[" + b",".join(answers) + b"]"] if len(answers) > 1 else answers


def failure(id_: bytes, error: SupervisorError) -> bytes:
    return jsonrpc.failure(id_, error.code, error.message, error.data())


class Queue:
    """Lines on their way to a daemon."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._entries: deque[QueuedLine] = deque()
        self._size = 0

    @property
    def is_full(self) -> bool:
        return len(self._entries) >= MAX_WAITING or self._size >= _MAX_WAITING_BYTES

    @property
    def deadline(self) -> float | None:
        """When the first of its requests has waited long enough; None if there are none."""
        return min((entry.deadline for entry in self._entries if entry.ids), default=None)

    def put(self, entry: QueuedLine, now: float) -> None:
        self._keep(entry, now)
        self._entries.append(entry)

    def put_back(self, entry: QueuedLine, now: float) -> None:
        """Put what has been sent in vain before everything else."""
        entry.repeated = True
        self._keep(entry, now)
        self._entries.appendleft(entry)

    def _keep(self, entry: QueuedLine, now: float) -> None:
        entry.deadline = now + self._wait_s
        self._size += len(entry.line)

    def take(self) -> QueuedLine | None:
        """Take the next line; None if there is none."""
        if not self._entries:
            return None
        entry = self._entries.popleft()
        self._size -= len(entry.line)
        return entry

    def withdraw(self, key: Key) -> bool:
        """Take the request with this id out, if it is here by itself."""
        entry = next((each for each in self._entries if each.ids.keys() == {key}), None)
        if entry is None:
            return False
        self._entries.remove(entry)
        self._size -= len(entry.line)
        return True

    def take_requests(self, by: float) -> list[QueuedLine]:
        """Take out all requests whose deadline is not after `by`."""
        late = [entry for entry in self._entries if entry.ids and entry.deadline <= by]
        for entry in late:
            self._entries.remove(entry)
            self._size -= len(entry.line)
        return late


_LISTEN: Final = "subscriptions/listen"
_OF_STREAMS: Final = "notifications/events/"
_SET_LEVEL: Final = "logging/setLevel"
_INITIALIZED: Final = "notifications/initialized"
_KINDS: Final = ("tools", "resources", "prompts")
_KEPT: Final = frozenset({"initialize", _SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})
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
        if method != f"{_OF_STREAMS}active":
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
        """Remember one of `_KEPT`, which has succeeded."""
        params = bytes(request.params)
        match request.method:
            case "initialize":
                self.greeting = Greeting(line, request.key, _version_of(result), tuple(_kinds_of(result)))
            case "logging/setLevel":
                self._level = params
            case "resources/subscribe":
                self._subscribed[json.text_at(params, "uri")] = params
            case _:
                self._subscribed.pop(json.text_at(params, "uri"), None)

    def requests(self) -> Iterator[tuple[str, bytes, str]]:
        """Yield what a session is told again: method, params, and the resource that it is about, empty if none."""
        if self._level is not None:
            yield _SET_LEVEL, self._level, ""
        for uri, params in self._subscribed.items():
            yield SUBSCRIBE, params, uri

    def changes(self) -> list[bytes]:
        """Return what tells a session that every list may have changed."""
        if self.greeting is None or self.initialized is None:
            return []
        return [_list_changed(kind) for kind in self.greeting.kinds]

    def begin(self, key: Key, entry: QueuedLine, method: str) -> None:
        """Note that a request was sent that lasts: `_LISTEN` or `STREAM`."""
        if method == _LISTEN:
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


def _update_of(uri: str, meta: bytes = b"{") -> bytes:
    """Return what tells that a resource may have changed; `meta` is the beginning of its params, an object."""
    separator = b"," if len(meta) > 1 else b""
    return jsonrpc.notification(UPDATED, meta + separator + b'"uri":' + jsonrpc.encode(uri) + b"}")


def _list_changed(kind: str, params: bytes | None = None) -> bytes:
    return jsonrpc.notification(f"notifications/{kind}/list_changed", params)


def _version_of(result: msgspec.Raw) -> str:
    return json.text_at(result, "protocolVersion")


def _kinds_of(result: msgspec.Raw) -> Iterator[str]:
    for kind in _KINDS:
        if bytes(json.at(result, "capabilities", kind, "listChanged")) == b"true":
            yield kind


def _notes_of(params: msgspec.Raw, id_: bytes) -> Iterator[bytes]:
    """Yield a notification of each thing that an acknowledgement names."""
    meta = b'{"_meta":{"' + META_SUBSCRIPTION.encode() + b'":' + id_ + b"}"
    honoured = json.at(params, "notifications")
    for kind in (*_KINDS, "events"):
        if bytes(json.at(honoured, f"{kind}ListChanged")) == b"true":
            yield _list_changed(kind, meta + b"}")
    for uri in json.read_or(_URIS, json.at(honoured, "resourceSubscriptions"), []):
        yield _update_of(uri, meta)


_CANCELLED: Final = "notifications/cancelled"
_REPEATABLE: Final = frozenset(
    {
        *("ping", "server/discover", "completion/complete", "tools/list", "prompts/list", "prompts/get"),
        *("resources/list", "resources/templates/list", "resources/read", _LISTEN),
        *("skills/list", "skills/get", "resources/directory/read"),
        *("events/list", "events/poll", STREAM),
        *_KEPT,
    }
)
"""Requests that change nothing, or no more when they are made twice."""
_MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
"""Of all requests together that were sent and may be sent once more, as they change nothing, or as the daemon says that
it did nothing of them. One alone may be larger."""
_CALL: Final = "tools/call"
_OURS: Final = "mcpvisor-again-"
"""The beginning of the ids of our own requests."""
_LOST: Final = (
    "the connection to the daemon ended before it answered ({why}); whether this was carried out is not known: look "
    "before you ask for it again"
)
_message = msgspec.json.Decoder(JsonRpcMessage)


class OtherDaemon(Exception):
    """The daemon does not take this client as the one before did; the text says why."""


class Relay:
    """The messages of one client. Methods return lines for the client; those for the daemon are taken.

    `now` is in seconds of any clock that only goes forward.
    """

    def __init__(self, place: str, wait_s: float = WAIT_S, reads: frozenset[str] = frozenset()) -> None:
        """`place`: where the daemon is, as people write it; `wait_s`: how long requests wait for one; `reads`: tools of
        the daemon itself that change nothing.
        """
        self._place = place
        self._reads = reads
        self._kept_bytes = 0
        self._memory = ClientMemory()
        self._state: Literal["away", "greeting", "open", "ending"] = "away"
        self._first: deque[bytes] = deque()
        self._queue = Queue(wait_s)
        self._sent: dict[Key, QueuedLine] = {}
        self._asked: set[Key] = set()
        self._ours: dict[str, str] = {}
        self._why = "nobody has looked yet"

    @property
    def is_open(self) -> bool:
        return self._state == "open"

    @property
    def is_full(self) -> bool:
        return self._queue.is_full

    @property
    def deadline(self) -> float | None:
        """When the first request that waits for a daemon is given up; None if none does."""
        return None if self.is_open else self._queue.deadline

    # From the client --------------------------------------------------------------------------------------------------

    def from_client(self, line: bytes, now: float) -> list[bytes]:
        message = read(line)
        match message:
            case Request():
                return self._from_request(line, message, now)
            case InvalidRequest(id=id_) if (key := key_of(id_)) is not None:  # a newer daemon may know better
                return self._ask(QueuedLine(line, {key: id_}), now)
            case Batch():
                requests = [each for each in message.messages if isinstance(each, Request)]
                return self._ask(QueuedLine(line, {each.key: each.id for each in requests}), now)
            case Notification():
                self._from_notification(line, message, now)
            case Response(key=key):
                self._asked.discard(key)
                self._pass_on(line, now)
            case InvalidNotification():
                self._pass_on(line, now)
            case _:
                return [message.answer()]
        return []

    def _from_request(self, line: bytes, request: Request, now: float) -> list[bytes]:
        if request.method == "ping" and not self.is_open:
            return [jsonrpc.success(request.id, b"{}")]
        return self._ask(QueuedLine(line, {request.key: request.id}, request), now)

    def _ask(self, entry: QueuedLine, now: float) -> list[bytes]:
        if self.is_full and not self.is_open:
            return entry.failures(TooManyCalls(f"too many requests wait for a daemon at {self._place}; retry shortly"))
        self._queue.put(entry, now)
        return []

    def _from_notification(self, line: bytes, message: Notification, now: float) -> None:
        if message.method == _INITIALIZED and message.era == "legacy":
            self._memory.initialized = line
            if not self.is_open and self._memory.greeting is None:
                self._queue.put(QueuedLine(line, {}), now)  # else it is told again with that
        elif message.method == _CANCELLED and (key := read_cancelled(message.params)[0]) is not None:
            self._memory.end(key)
            self._end_sent(key)
            if self._queue.withdraw(key):
                return
        self._pass_on(line, now)

    def _pass_on(self, line: bytes, now: float) -> None:
        """Send what is about the present connection, if there is one."""
        if self.is_open:
            self._queue.put(QueuedLine(line, {}), now)
        elif self._state == "ending" and len(self._first) < MAX_WAITING:
            self._first.append(line)

    # To the daemon ----------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Begin a connection, with what the client had said on the one before."""
        if self._memory.greeting is None:
            self._resume()
        else:
            self._state = "greeting"
            self._first.append(self._memory.greeting.line)

    def take(self) -> bytes | None:
        """Return the next line that is to be sent, which counts as sent from now on; None if there is none."""
        if self._first:
            return self._first.popleft()
        entry = self._queue.take() if self.is_open else None
        if entry is None:
            return None
        line, request = entry.line, entry.request
        if request is not None and request.method in (_LISTEN, STREAM):
            self._memory.begin(request.key, entry, request.method)
            return line
        if request is None or (self._kept_bytes and self._kept_bytes + len(line) > _MAX_KEPT_BYTES):
            entry.line, entry.request = b"", None
        self._kept_bytes += len(entry.line)
        self._sent.update(dict.fromkeys(entry.ids, entry))
        return line

    def _end_sent(self, key: Key) -> QueuedLine | None:
        """Forget that a request was sent; return it."""
        entry = self._sent.pop(key, None)
        if entry is not None:
            self._kept_bytes -= len(entry.line)
        return entry

    def _may_repeat(self, request: Request) -> bool:
        """Say whether a request that was sent may be sent again, though it may have been carried out."""
        return request.method in _REPEATABLE or (
            request.method == _CALL and json.text_at(request.params, "name") in self._reads
        )

    def _resume(self) -> None:
        """Let messages pass, after those that restore what the client had."""
        self._state = "open"
        memory = self._memory
        if memory.greeting is not None and memory.initialized is not None:
            self._first.append(memory.initialized)
        for number, (method, params, uri) in enumerate(memory.requests()):
            self._ours[f"{_OURS}{number}"] = uri
            self._first.append(jsonrpc.request(jsonrpc.encode(f"{_OURS}{number}"), method, params))
        self._first += memory.lasting()

    # From the daemon --------------------------------------------------------------------------------------------------

    def from_daemon(self, text: bytes, now: float) -> list[bytes]:
        """Raises `OtherDaemon`."""
        if text[:1] == b"[":
            for element in batch_elements(text) or ():
                self._settle(json.read_or(_message, element, JsonRpcMessage()))
            return [text]
        message = json.read_or(_message, text, JsonRpcMessage())
        if message.method is None:
            return self._from_answer(text, message, now)
        if message.is_request:
            if (key := key_of(bytes(message.id))) is not None:
                self._asked.add(key)
            return [text]
        return self._from_note(text, message)

    def _from_note(self, text: bytes, note: JsonRpcMessage) -> list[bytes]:
        if note.method == ACKNOWLEDGED:
            told = self._memory.acknowledge(note.params)
            return [text] if told is None else told
        if note.method == _CANCELLED and (key := read_cancelled(note.params)[0]) is not None:
            self._asked.discard(key)
            if key in self._memory.listens:
                return []
        if note.method is not None and note.method.startswith(_OF_STREAMS):
            stream = self._stream(bytes(json.at(note.params, "_meta", META_SUBSCRIPTION)))
            if stream is not None and not stream.note(note.method, note.params):
                return []
        return [text]

    def _stream(self, id_: bytes) -> EventStream | None:
        key = key_of(id_)
        return None if key is None else self._memory.streams.get(key)

    def _from_answer(self, text: bytes, answer: JsonRpcMessage, now: float) -> list[bytes]:
        key, memory = key_of(bytes(answer.id)), self._memory
        if self._state == "greeting" and memory.greeting is not None and key == memory.greeting.key:
            return self._greet(answer, memory.greeting.version)
        if isinstance(key, str) and key in self._ours:
            uri = self._ours.pop(key)
            return [_update_of(uri)] if uri else []
        if key is not None and (listen := memory.listens.get(key)) is not None:
            if bytes(answer.result) and listen.told:
                return []  # a daemon ends what it tells of only when it ends itself: it is opened again at the next one
            del memory.listens[key]
            return [text]
        if key is not None and (stream := memory.streams.get(key)) is not None:
            return self._end_stream(text, answer, key, stream, now)
        entry = self._settle(answer)
        if entry is not None and entry.request is not None and _is_ending(answer):
            self._state = "ending"
            self._queue.put_back(entry, now)
            return []
        return [text]

    def _end_stream(
        self, text: bytes, answer: JsonRpcMessage, key: Key, stream: EventStream, now: float
    ) -> list[bytes]:
        """Take the end of a stream of events: one by the end of its daemon is opened again at the next one.

        Any other result is its server's to send, and then the client's to ask anew ("Lifecycle").
        """
        if not (_is_of_end(answer) or bytes(json.at(answer.result, "_meta", SHUTDOWN)) == b"true"):
            self._memory.end(key)
            return [text]
        if not stream.is_active:
            self._memory.end(key)
            self._queue.put_back(stream.request, now)
        self._state = "ending"
        return []

    def _greet(self, answer: JsonRpcMessage, version: str) -> list[bytes]:
        if not bytes(answer.result):
            raise OtherDaemon(f"it refuses this client: {json.text_at(answer.error, 'message')[:200]}")
        if (spoken := _version_of(answer.result)) != version:
            raise OtherDaemon(f"it speaks revision {spoken[:40]}, not {version}: start the client again")
        self._resume()
        return self._memory.changes()

    def _settle(self, answer: JsonRpcMessage) -> QueuedLine | None:
        """Note that a request is answered; return what was sent, if it was one of the client."""
        key = key_of(bytes(answer.id))
        entry = None if key is None else self._end_sent(key)
        if entry is not None and entry.request is not None and entry.request.method in _KEPT and bytes(answer.result):
            self._memory.keep(entry.line, entry.request, answer.result)
        return entry

    # No daemon --------------------------------------------------------------------------------------------------------

    def lose(self, why: str, now: float) -> list[bytes]:
        """End a connection, or an attempt at one: say what becomes of everything that was under way."""
        self._state, self._why = "away", why
        self._first.clear()
        self._ours.clear()
        lines = [_withdrawal(key) for key in self._asked]
        self._asked.clear()
        lost, self._sent = self._sent | self._memory.forget_pending(), {}
        self._kept_bytes = 0
        again: list[QueuedLine] = []
        for key, entry in lost.items():
            if entry.request is not None and self._may_repeat(entry.request) and not entry.repeated:
                again.append(entry)
            else:
                lines.append(failure(entry.ids[key], DaemonLost(_LOST.format(why=why), outcome="unknown")))
        for entry in reversed(again):
            self._queue.put_back(entry, now)
        return lines

    def expire(self, now: float) -> list[bytes]:
        """Give up the requests that have waited long enough."""
        return [] if self.is_open else self._give_up(now)

    def refuse(self, why: str, error: SupervisorError | None = None) -> list[bytes]:
        """Give up all requests that wait: there will be no daemon unless somebody does something.

        `error`: what they are told in place of that.
        """
        self._why = why
        return self._give_up(math.inf, error)

    def _give_up(self, by: float, error: SupervisorError | None = None) -> list[bytes]:
        error = error or DaemonAway(f"no daemon answers at {self._place}: {self._why}")
        return [line for entry in self._queue.take_requests(by) for line in entry.failures(error)]


def _withdrawal(key: Key) -> bytes:
    params = {"requestId": key, "reason": "the connection to the daemon that asked has ended"}
    return jsonrpc.notification(_CANCELLED, jsonrpc.encode(params))


def _is_ending(answer: JsonRpcMessage) -> bool:
    """Say whether a daemon that is about to end has not done what was asked for, or may do it twice."""
    return _is_of_end(answer) and bytes(json.at(answer.error, "data", "retryable")) == b"true"


def _is_of_end(answer: JsonRpcMessage) -> bool:
    """Say whether a request failed as its daemon is about to end."""
    error = answer.error
    is_code = bytes(json.at(error, "code")) == b"%d" % ShuttingDown.code
    return is_code and json.text_at(error, "data", "type") == ShuttingDown.kind
