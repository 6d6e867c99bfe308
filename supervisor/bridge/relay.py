"""What becomes of the messages between a client and a daemon that may end, and come again as another one. Pure.

Rules of this file:
- Messages pass as the bytes they are. Of a message only what it is is looked at: method, id, and what the next daemon
  must be told, too (`memory`).
- What is in the queue has surely not been sent. A request that was sent gets its answer, or, at the end of its
  connection, an error that says that nobody knows; one that changes nothing is sent once more instead.
- A connection begins with what the client has told the one before; the answers to that are not for the client. Then it
  is told that everything may have changed.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, Literal

import msgspec

from actors.errors import DaemonAway, DaemonLost, ShuttingDown, SupervisorError, TooManyCalls
from actors.protocol.agreement.capabilities import SHUTDOWN, STREAM
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.changes import ACKNOWLEDGED
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.jsonrpc import JsonRpcMessage
from supervisor.bridge.memory import (
    INITIALIZED,
    KEPT,
    LISTEN,
    OF_STREAMS,
    ClientMemory,
    EventStream,
    update_of,
    version_of,
)
from supervisor.bridge.queue import MAX_WAITING, WAIT_S, Queue, QueuedLine, failure
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

CANCELLED: Final = "notifications/cancelled"
REPEATABLE: Final = frozenset(
    {
        *("ping", "server/discover", "completion/complete", "tools/list", "prompts/list", "prompts/get"),
        *("resources/list", "resources/templates/list", "resources/read", LISTEN),
        *("skills/list", "skills/get", "resources/directory/read"),
        *("events/list", "events/poll", STREAM),
        *KEPT,
    }
)
"""Requests that change nothing, or no more when they are made twice."""
MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
"""Of all requests together that were sent and may be sent once more, as they change nothing, or as the daemon says that
it did nothing of them. One alone may be larger."""
CALL: Final = "tools/call"
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
        if message.method == INITIALIZED and message.era == "legacy":
            self._memory.initialized = line
            if not self.is_open and self._memory.greeting is None:
                self._queue.put(QueuedLine(line, {}), now)  # else it is told again with that
        elif message.method == CANCELLED and (key := read_cancelled(message.params)[0]) is not None:
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
        if request is not None and request.method in (LISTEN, STREAM):
            self._memory.begin(request.key, entry, request.method)
            return line
        if request is None or (self._kept_bytes and self._kept_bytes + len(line) > MAX_KEPT_BYTES):
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
        return request.method in REPEATABLE or (
            request.method == CALL and json.text_at(request.params, "name") in self._reads
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
        if note.method == CANCELLED and (key := read_cancelled(note.params)[0]) is not None:
            self._asked.discard(key)
            if key in self._memory.listens:
                return []
        if note.method is not None and note.method.startswith(OF_STREAMS):
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
            return [update_of(uri)] if uri else []
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
        if (spoken := version_of(answer.result)) != version:
            raise OtherDaemon(f"it speaks revision {spoken[:40]}, not {version}: start the client again")
        self._resume()
        return self._memory.changes()

    def _settle(self, answer: JsonRpcMessage) -> QueuedLine | None:
        """Note that a request is answered; return what was sent, if it was one of the client."""
        key = key_of(bytes(answer.id))
        entry = None if key is None else self._end_sent(key)
        if entry is not None and entry.request is not None and entry.request.method in KEPT and bytes(answer.result):
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
    return jsonrpc.notification(CANCELLED, jsonrpc.encode(params))


def _is_ending(answer: JsonRpcMessage) -> bool:
    """Say whether a daemon that is about to end has not done what was asked for, or may do it twice."""
    return _is_of_end(answer) and bytes(json.at(answer.error, "data", "retryable")) == b"true"


def _is_of_end(answer: JsonRpcMessage) -> bool:
    """Say whether a request failed as its daemon is about to end."""
    error = answer.error
    is_code = bytes(json.at(error, "code")) == b"%d" % ShuttingDown.code
    return is_code and json.text_at(error, "data", "type") == ShuttingDown.kind
