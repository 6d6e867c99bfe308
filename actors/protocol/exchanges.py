"""What a server says and asks while it works on a call, and which call it is about. Pure.

Rules:
- Progress is known by its token, which is ours: the id of our request. The client gets it with the token it gave; what
  does not increase is dropped (MCP 2025-11-25 and 2026-07-28, basic/utilities/progress).
- Whatever else comes on a stream that answers one request belongs to that request. On a stream that all share it
  belongs to a call only if no other is in flight: nothing is guessed.
- A call that nobody waits for any more may go on at its server all the same, until that answers: for `LEFT_S`, in which
  a server stops that heeds cancellation, or for `GOES_ON_S` if this one was seen to go on. Meanwhile a question on a
  stream that all share may be about it, and is about no call of another client. Nor is a log message, but only where
  the server was seen to go on: what it writes when it stops is not worth the messages of others.
- A log message goes to whoever wants messages of its level.
- A notification whose `_meta` names a request in flight is a part of what that request is for, whatever it says: so the
  request is a stream, as `events/stream` of the Events extension is. Nothing else is about it, and it lasts.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Final, Literal, get_args

import msgspec

from actors.protocol.agreement.capabilities import NOBODY
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.asking.input_required import METHODS as ASKING
from actors.protocol.asking.questions import with_progress_token
from actors.protocol.facts import CallNoted
from actors.protocol.tasks import RESULT
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import canonical, encode

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""From the most to the least talkative (RFC 5424, which MCP follows)."""
LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
UNASKED: Final = LOG_LEVELS.index("info")
"""What a client gets that did not say what it wants."""
MAX_NOTE_BYTES: Final = 64 * 1024
LEFT_S: Final = 5.0
GOES_ON_S: Final = 600.0
"""As long as any call may take that tells of progress, by default."""
MAX_LEFT: Final = 256
_MARGIN_S: Final = 0.01

_SUBSCRIPTION: Final = META_SUBSCRIPTION.encode()

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


def wants(interest: Interest, level: LogLevel) -> bool:
    least = interest.log_level
    return least is not None and LOG_LEVELS.index(level) >= (LOG_LEVELS.index(least) if least else UNASKED)


class _Progress(msgspec.Struct):
    token: msgspec.Raw = msgspec.field(name="progressToken")
    progress: float


class _Message(msgspec.Struct):
    level: LogLevel


_progress = msgspec.json.Decoder(_Progress)
_message = msgspec.json.Decoder(_Message)


class _InFlight(msgspec.Struct):
    """A call that waits for its answer: the `id` of its request, and `others` that it is known by, with their tokens.

    `asks`: servers ask something during such a request. `progress`: what was told of it last. `streams`: see above.
    """

    id: bytes
    interest: Interest
    client: Hashable
    asks: bool
    others: dict[bytes, bytes] = {}
    progress: float = -math.inf
    streams: bool = False


class _Left(msgspec.Struct, frozen=True):
    """A call that nobody waits for any more, since `at`; `id` is that of its request."""

    id: bytes
    client: Hashable
    at: float


class Exchanges:
    """The calls in flight at one server. `unheard` counts what was dropped: nobody wanted it, or nobody knows whose.

    `at_work`: the server has answered something after its handshake, so what it asks from now on is about calls.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._calls: dict[int, _InFlight] = {}
        self._by_id: dict[bytes, int] = {}
        self._left: OrderedDict[int, _Left] = OrderedDict()
        self._streams = 0
        self._goes_on = False
        self._left_at = -math.inf
        self.at_work = False
        self.unheard = 0

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def askers(self) -> frozenset[int]:
        """The calls in flight during which servers ask something, so that they may have led to a question now."""
        return frozenset([call for call, each in self._calls.items() if each.asks] or self._finite)

    def begin(
        self, call: int, id_: bytes, interest: Interest, method: str = "tools/call", client: Hashable = None
    ) -> None:
        self._calls[call] = _InFlight(id_, interest, client, method in ASKING or method == RESULT)
        self._by_id[id_] = call

    def also(self, call: int, id_: bytes, token: bytes = b"", *, instead_of: bytes = b"") -> None:
        """A call is known by one more id (JSON text); its client calls progress that is told with that id `token`.

        `instead_of`: one of those that it was known by; the first one stays.
        """
        others = self._calls[call].others
        if others.pop(instead_of, None) is not None:
            del self._by_id[instead_of]
        self._by_id[id_] = call
        others[id_] = token

    def leave(self, call: int) -> bytes | None:
        """Nobody waits for a call any more. Return the id of its request if it was in flight."""
        if (gone := self._remove(call)) is None:
            return None
        self._left_at = self._clock()
        if gone.asks:
            self._left[call] = _Left(gone.id, gone.client, self._clock())
            if len(self._left) > MAX_LEFT:
                self._left.popitem(last=False)
        return gone.id

    def left_since(self, moment: float) -> bool:
        """Say whether a call was left at a moment, or later, that the server may still be busy with."""
        return self._left_at >= moment and self._clock() < self._left_at + GOES_ON_S

    def end(self, call: int, *, refused: bool = False) -> None:
        """The server has answered a call, late or not."""
        self.at_work = True
        if self._remove(call) is None and (left := self._left.pop(call, None)) is not None and not refused:
            self._went_on(left)

    def _remove(self, call: int) -> _InFlight | None:
        if (gone := self._calls.pop(call, None)) is not None:
            self._streams -= gone.streams
            for id_ in (gone.id, *gone.others):
                if self._by_id.get(id_) == call:
                    del self._by_id[id_]
        return gone

    def of(self, stream: bytes) -> int | None:
        """Return the call that what arrived on `stream` is about; None if that cannot be known."""
        if stream:
            return self._by_id.get(stream)
        return self._only(self._finite, doubts=self._goes_on)

    @property
    def _finite(self) -> Collection[int]:
        """The calls in flight that will be over."""
        return [call for call, each in self._calls.items() if not each.streams] if self._streams else self._calls

    def asker(self, among: Collection[int] | None = None) -> int | None:
        """Return the only call in flight during which servers ask something; None if it is not known which that is.

        `among`: those that were in flight when the question came.
        """
        calls = self.askers
        return self._only(calls if among is None else calls.intersection(among), doubts=True)

    def _only(self, calls: Collection[int], *, doubts: bool) -> int | None:
        if len(calls) != 1:
            return None
        (call,) = calls
        return None if doubts and self._left and self._may_be_of_another(self._calls[call].client) else call

    @property
    def doubt_s(self) -> float:
        """After how many seconds nothing is about the calls that were left until now."""
        lasts_s, now = self._lasts_s, self._clock()
        return max((left.at + lasts_s - now for left in self._left.values()), default=0.0) + _MARGIN_S

    @property
    def _lasts_s(self) -> float:
        return GOES_ON_S if self._goes_on else LEFT_S

    def _may_be_of_another(self, client: Hashable) -> bool:
        now = self._clock()
        while self._left and next(iter(self._left.values())).at + GOES_ON_S <= now:
            self._left.popitem(last=False)
        since = now - self._lasts_s
        return any(left.at > since and left.client != client for left in self._left.values())

    def _went_on(self, left: _Left) -> None:
        """The server says something about a call that was left; so soon that may have crossed the cancellation."""
        self._goes_on = self._goes_on or self._clock() > left.at + LEFT_S

    def asked_of_none(self) -> None:
        if self._left:
            self._went_on(next(reversed(self._left.values())))

    def route_part(self, method: str, params: msgspec.Raw) -> CallNoted | None:
        """Return a notification for the client of the request that it names in its `_meta`; None if it names none.

        (MCP 2026-07-28, basic/patterns/subscriptions; the Events extension, "Event delivery".)
        """
        if _SUBSCRIPTION not in bytes(params):
            return None
        call = self._by_id.get(canonical(bytes(json.at(params, "_meta", META_SUBSCRIPTION))))
        if call is None:
            return None
        in_flight = self._calls[call]
        self._streams += not in_flight.streams
        in_flight.streams = True
        return CallNoted(call, method, bytes(params), streamed=True)

    def route_note(self, method: str, params: msgspec.Raw, stream: bytes) -> CallNoted | None:
        """Return a notification for the client of the call that it is about; None, and counted, if it is for nobody."""
        note = None
        if len(memoryview(params)) <= MAX_NOTE_BYTES:
            try:
                note = self._route_progress(params) if method == PROGRESS else self._route_message(params, stream)
            except json.UnreadableJson:
                note = None
        self.unheard += note is None
        return note

    def _route_progress(self, params: msgspec.Raw) -> CallNoted | None:
        told = json.read(_progress, params)
        call = self._by_id.get(id_ := canonical(bytes(told.token)))
        if call is None:
            for left in self._left.values():
                if left.id == id_:
                    self._went_on(left)
            return None
        in_flight = self._calls[call]
        token = in_flight.others.get(id_) or in_flight.interest.progress
        if not token or told.progress <= in_flight.progress:
            return None
        in_flight.progress = told.progress
        return CallNoted(call, PROGRESS, with_progress_token(bytes(params), token))

    def _route_message(self, params: msgspec.Raw, stream: bytes) -> CallNoted | None:
        call = self.of(stream)
        if call is None or (interest := self._calls[call].interest).log_level is None:
            return None
        wanted = wants(interest, json.read(_message, params).level)
        return CallNoted(call, MESSAGE, _without_null(bytes(params), "logger")) if wanted else None


def _without_null(params: bytes, name: str) -> bytes:
    """Return params without a member that may be left out, but not be null, if it is that."""
    if b"null" not in params or bytes((said := json.members(params)).pop(name, b"")) != b"null":
        return params
    return encode(said)
