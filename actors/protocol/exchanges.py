"""What a server says and asks while it works on a call, and which call it is about. Pure.

Rules:
- Progress is known by its token, which is ours: the id of our request. The client gets it with the token it gave; what
  does not increase is dropped (MCP 2025-11-25 and 2026-07-28, basic/utilities/progress).
- Whatever else comes on a stream that answers one request belongs to that request. On a stream that all share it
  belongs to a call only if no other is in flight: nothing is guessed.
- A log message goes to whoever wants messages of its level.
"""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

import msgspec

from actors.protocol.client_capabilities import NOBODY
from actors.protocol.facts import CallNoted
from actors.protocol.input_required import METHODS as ASKING
from actors.protocol.jsonrpc import encode
from actors.protocol.tasks import RESULT

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""From the most to the least talkative (RFC 5424, which MCP follows)."""
LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
UNASKED: Final = LOG_LEVELS.index("info")
"""What a client gets that did not say what it wants."""
MAX_NOTE_BYTES: Final = 64 * 1024

PROGRESS: Final = "notifications/progress"
MESSAGE: Final = "notifications/message"


class Interest(msgspec.Struct, frozen=True):
    """What a client wants to hear before the answer to its request, and what it can be asked.

    `progress` is the JSON text of its token, empty if it wants none. `log_level` is the least level of log messages;
    None if it wants none, empty if it did not say. `capabilities` are what a modern server is told, a JSON object.
    """

    progress: bytes = b""
    log_level: LogLevel | Literal[""] | None = None
    capabilities: bytes = NOBODY


NOTHING: Final = Interest()
UNSAID: Final = Interest(log_level="")
"""Of a client that could have said what it wants, and did not."""


class _Progress(msgspec.Struct):
    token: str = msgspec.field(name="progressToken")
    progress: float


class _Message(msgspec.Struct):
    level: LogLevel


_progress = msgspec.json.Decoder(_Progress)
_message = msgspec.json.Decoder(_Message)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Exchanges:
    """The calls in flight at one server. `unheard` counts what was dropped: nobody wanted it, or nobody knows whose."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[bytes, Interest]] = {}
        self._asking: set[int] = set()
        self._progress: dict[int, float] = {}
        self._by_id: dict[bytes, int] = {}
        self._others: dict[int, dict[bytes, bytes]] = {}
        self.unheard = 0

    def __len__(self) -> int:
        return len(self._calls)

    def begin(self, call: int, id_: bytes, interest: Interest, method: str = "tools/call") -> None:
        """A call was sent as the request with this id (JSON text)."""
        self._calls[call] = (id_, interest)
        self._by_id[id_] = call
        if method in ASKING or method == RESULT:
            self._asking.add(call)

    def also(self, call: int, id_: bytes, token: bytes = b"", *, instead_of: bytes = b"") -> None:
        """A call is known by one more id (JSON text); its client calls progress that is told with that id `token`.

        `instead_of`: one of those that it was known by; the first one stays.
        """
        others = self._others.setdefault(call, {})
        if others.pop(instead_of, None) is not None:
            del self._by_id[instead_of]
        self._by_id[id_] = call
        others[id_] = token

    def end(self, call: int) -> bytes | None:
        """A call has its answer, or nobody waits for it any more. Return the id of its request if it was in flight."""
        in_flight = self._calls.pop(call, None)
        if in_flight is None:
            return None
        del self._by_id[in_flight[0]]
        self._asking.discard(call)
        if self._others:
            for id_ in self._others.pop(call, ()):
                if self._by_id.get(id_) == call:
                    del self._by_id[id_]
        if self._progress:
            self._progress.pop(call, None)
        return in_flight[0]

    def of(self, stream: bytes) -> int | None:
        """Return the call that what arrived on `stream` is about; None if that cannot be known."""
        if stream:
            return self._by_id.get(stream)
        return next(iter(self._calls)) if len(self._calls) == 1 else None

    def asker(self) -> int | None:
        """Return the only call in flight during which servers ask something; None if there is none, or several."""
        asking = self._asking or self._calls
        return next(iter(asking)) if len(asking) == 1 else None

    def noted(self, method: str, params: msgspec.Raw, stream: bytes) -> CallNoted | None:
        """Return a notification for the client of the call that it is about; None, and counted, if it is for nobody."""
        note = None
        if len(memoryview(params)) <= MAX_NOTE_BYTES:
            try:
                note = self._advanced(params) if method == PROGRESS else self._message(params, stream)
            except _UNREADABLE:
                note = None
        self.unheard += note is None
        return note

    def _advanced(self, params: msgspec.Raw) -> CallNoted | None:
        told = _progress.decode(params)
        call = self._by_id.get(id_ := b'"%b"' % told.token.encode())
        if call is None:
            return None
        token = self._others.get(call, {}).get(id_) or self._calls[call][1].progress
        if not token or told.progress <= self._progress.get(call, -math.inf):
            return None
        self._progress[call] = told.progress
        members = _members.decode(params)
        members["progressToken"] = msgspec.Raw(token)
        return CallNoted(call, PROGRESS, encode(members))

    def _message(self, params: msgspec.Raw, stream: bytes) -> CallNoted | None:
        call = self.of(stream)
        if call is None or (least := self._calls[call][1].log_level) is None:
            return None
        level = LOG_LEVELS.index(_message.decode(params).level)
        if level < (LOG_LEVELS.index(least) if least else UNASKED):
            return None
        return CallNoted(call, MESSAGE, bytes(params))
