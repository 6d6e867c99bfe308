"""What nodes of a fleet say to one another: the project's own messages, as MessagePack arrays over a stream of bytes.

- A call is known by a number that whoever asks gave it. What a server said is passed through as it wrote it: bytes in
  bytes. A text that is long travels in parts, so that it holds up no other call.
- A frame is sent as a length in four bytes, and an array that begins with the tag of the frame. What a later version
  adds at the end of a frame is left out here, and a frame that it has and we have not means nothing: so nodes of two
  versions work together while a fleet is updated.
- What a node raises for another one is raised there, of its own class if there is one.
- What is sent never waits, and what waits to be sent is bounded.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, get_args

import msgspec
import trio

from actors.errors import SupervisorError
from actors.messages import CallServer, Refreshed, RefreshServer, RestartServer, SleepServer, WakeServer
from actors.principal import Principal
from actors.protocol.agreement.versions import Era
from actors.protocol.exchanges import Interest
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.fleet.engine import NodeAway, Place

PART_BYTES: Final = 128 * 1024
_MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
"""Of one frame: what is said beside a text, such as the definition of what a client can be asked."""
MAX_TEXT_BYTES: Final = 128 * 1024 * 1024
"""Of a text that goes in parts."""

HeaderLines = tuple[tuple[bytes, bytes], ...]
"""Header lines of HTTP: names in lower case, and values."""
OrderKind = Literal["wake", "restart", "refresh", "sleep"]
ForLaunch = CallServer | WakeServer | RestartServer | RefreshServer | SleepServer


class _FleetFrame(msgspec.Struct, frozen=True, array_like=True):
    """One message between nodes. `id`: the call that it is about."""

    id: int


# From whoever asks ----------------------------------------------------------------------------------------------------


class CallSent(_FleetFrame, frozen=True, tag=1):
    """A `CallServer` for a launch. `client` is who hears of it, `visits`: they hear of the end of visits, too.

    `meta` has the context of its trace. Whether it `lasts` is counted at the door alone.
    """

    launch: str
    method: str
    members: bytes
    meta: bytes
    name: str
    interest: Interest
    retry: bytes
    as_task: bool
    resumes: bool
    by_requests: bool
    run: str
    deadline_s: float
    principal: Principal
    client: tuple[Principal, str] | None
    visits: bool
    by_model: bool = False
    in_turn: bool = False
    definition: bytes = b""


class OrderSent(_FleetFrame, frozen=True, tag=2):
    """An order for a launch; `operator` and `urgent` as in its message."""

    launch: str
    order: OrderKind
    principal: Principal
    operator: bool = False
    urgent: bool = True


class Abandoned(_FleetFrame, frozen=True, tag=3):
    """Nobody waits for an answer any more, for a `reason` if the client gave one."""

    reason: str = ""


class QuestionSettled(_FleetFrame, frozen=True, tag=4):
    """The client has answered a question, or cannot: then there is an `error`."""

    question: int
    result: bytes = b""
    error: SentError | None = None


class ClientProgressed(_FleetFrame, frozen=True, tag=5):
    """What the client tells of its work on a question, the params of a notification."""

    question: int
    params: bytes


class RequestSent(_FleetFrame, frozen=True, tag=6):
    """A request of a client that is answered there; `head` is all but its `body`, which ends with this, after parts."""

    head: bytes
    body: bytes = b""


class RequestLeft(_FleetFrame, frozen=True, tag=7):
    """The client of a request has left."""


class PartTaken(_FleetFrame, frozen=True, tag=8):
    """So many bytes of an answer were taken."""

    size: int


# From whoever is asked ------------------------------------------------------------------------------------------------


class ResultSent(_FleetFrame, frozen=True, tag=11):
    """A `Result`, whose body ends with this, after parts; by this `fence` the launch was owned all the time."""

    fence: int
    body: bytes
    era: Era
    run: str
    waited_s: float
    woke: bool
    lost: str = ""


class OrderDone(_FleetFrame, frozen=True, tag=12):
    """An order is done; what a refresh has found."""

    fence: int
    refreshed: Refreshed | None = None


class Failed(_FleetFrame, frozen=True, tag=13):
    """The call has failed."""

    error: SentError


class MovedOn(_FleetFrame, frozen=True, tag=14):
    """Nothing was done: the launch is at another place; None if nobody owns it now."""

    place: Place | None


class NoteSent(_FleetFrame, frozen=True, tag=15):
    """A `Note` for the client of a call."""

    method: str
    params: bytes


class QuestionSent(_FleetFrame, frozen=True, tag=16):
    """A `Question` for the client of a call; `progress`: its server wants to hear of the work on it."""

    question: int
    method: str
    params: bytes
    progress: bool


class QuestionTakenBack(_FleetFrame, frozen=True, tag=17):
    """Nobody waits for the answer to a question any more."""

    question: int


class VisitEnded(_FleetFrame, frozen=True, tag=18):
    """A visit of this id is over, of the client of a call that may be over itself."""

    visit: str


class BodyPart(_FleetFrame, frozen=True, tag=19):
    """A part of the body of a result, or of the members of a call, which are long; what ends them has the rest."""

    part: bytes


class SignOfLife(_FleetFrame, frozen=True, tag=20):
    """A sign of life; whoever gets one that was `asked` for sends one back."""

    asked: bool = True


class LinkClosing(_FleetFrame, frozen=True, tag=21):
    """The node ends: whoever asks sends nothing more over this link, and hangs up when it has all its answers."""


class AnswerBegun(_FleetFrame, frozen=True, tag=22):
    """The head of the answer to a request. `whole`: all of it follows, else it goes on as long as it does."""

    status: int
    lines: HeaderLines
    whole: bool


class AnswerPart(_FleetFrame, frozen=True, tag=23):
    """A part of its body."""

    part: bytes


class AnswerEnded(_FleetFrame, frozen=True, tag=24):
    """It has all of its body."""


class ResourceChanged(_FleetFrame, frozen=True, tag=25):
    """A resource of a launch has changed, to which clients of whoever asks are subscribed."""

    launch: str
    uri: str


class LaunchMoved(_FleetFrame, frozen=True, tag=26):
    """The launch is here no longer, to whose resources clients of whoever asks are subscribed."""

    launch: str


class SentError(msgspec.Struct, frozen=True, array_like=True):
    """A failure on its way: the class by name, its row of the taxonomy, and what its instance has.

    `data` is that of the error of a server (`RemoteError`).
    """

    name: str
    code: int
    message: str
    fields: bytes
    data: bytes = b""
    kind: str = ""
    http_status: int = 200
    retryable: bool = False


class UnknownFrame(_FleetFrame, frozen=True, tag=0):
    """Stands for one of a later version, which means nothing here. What needs an answer is not sent to a node whose
    `Node.version` does not know it.
    """


Asking = (
    UnknownFrame
    | CallSent
    | OrderSent
    | Abandoned
    | QuestionSettled
    | ClientProgressed
    | RequestSent
    | RequestLeft
    | PartTaken
    | BodyPart
    | SignOfLife
)
Answering = (
    UnknownFrame
    | ResultSent
    | OrderDone
    | Failed
    | MovedOn
    | NoteSent
    | QuestionSent
    | QuestionTakenBack
    | VisitEnded
    | BodyPart
    | SignOfLife
    | LinkClosing
    | AnswerBegun
    | AnswerPart
    | AnswerEnded
    | ResourceChanged
    | LaunchMoved
)
AnyFrame = Asking | Answering


HEAD_BYTES: Final = 4
_TAGS: Final = frozenset(frame.__struct_config__.tag for frame in get_args(AnyFrame))
_encoder = msgspec.msgpack.Encoder()
_raws: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_asking: msgspec.msgpack.Decoder[Asking] = msgspec.msgpack.Decoder(Asking)
_answering: msgspec.msgpack.Decoder[Answering] = msgspec.msgpack.Decoder(Answering)


class BadFrame(ValueError):
    """What arrived is no frame of ours."""


def write(frame: AnyFrame) -> bytes:
    """Return a frame as it is sent: its length in four bytes, and MessagePack."""
    body = _encoder.encode(frame)
    return len(body).to_bytes(HEAD_BYTES, "big") + body


def read_asking(body: bytes) -> Asking:
    """Return what whoever asks has said. Raises `BadFrame`."""
    try:
        return _asking.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        return _later_frame(body, error)


def read_answering(body: bytes) -> Answering:
    """Return what whoever is asked has said. Raises `BadFrame`."""
    try:
        return _answering.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        return _later_frame(body, error)


def _later_frame(body: bytes, error: Exception) -> UnknownFrame:
    """Return a frame for one that has a tag which this version does not know. Raises `BadFrame` for every other."""
    try:
        tag = msgspec.msgpack.decode(_raws.decode(body)[0], type=int)
    except (ValueError, IndexError):
        raise BadFrame(str(error)) from None
    if tag in _TAGS or tag < 0:
        raise BadFrame(str(error)) from None
    return UnknownFrame(0)


_REMOTE: Final = RemoteError.__name__
_MAX_DATA_BYTES: Final = 1_048_576
_INTERNAL: Final = "internal error at another node; its log says more"


def encode_failure(error: Exception) -> SentError:
    """Return a failure as it travels. Of a bug nothing does but that it was one."""
    if isinstance(error, RemoteError):
        fields = {"server": error.server, "waited_s": error.waited_s}
        sent, data = error.error, bytes(error.error.data)
        data = data if len(data) <= _MAX_DATA_BYTES else b""  # as clients get it
        return SentError(_REMOTE, sent.code, sent.message, msgspec.msgpack.encode(fields), data)
    if not isinstance(error, SupervisorError):
        error = NodeAway(_INTERNAL, outcome="unknown")
    return SentError(
        name=type(error).__name__,
        code=error.code,
        message=error.message,
        fields=msgspec.msgpack.encode(_plain(vars(error))),
        kind=error.kind,
        http_status=error.http_status,
        retryable=error.retryable,
    )


def decode_failure(sent: SentError) -> Exception:
    """Return the failure that was sent: of its own class if there is one here, else with the same row.

    Raises `BadFrame`.
    """
    try:
        fields = msgspec.msgpack.decode(sent.fields, type=dict[str, Any])
    except msgspec.MsgspecError as bad:
        raise BadFrame(str(bad)) from None
    if sent.name == _REMOTE:
        error = ErrorObject(sent.code, sent.message, msgspec.Raw(sent.data))
        return RemoteError(error, str(fields.get("server", "")), float(fields.get("waited_s", 0.0)))
    known = _classes().get(sent.name)
    failure = _failure(known or NodeAway, sent.message)
    vars(failure).update(fields)
    if known is None:
        vars(failure).update(code=sent.code, kind=sent.kind, http_status=sent.http_status, retryable=sent.retryable)
    return failure


def _failure(kind: type[SupervisorError], message: str) -> SupervisorError:
    """Return one without its constructor: what that would set comes with the fields."""
    failure = kind.__new__(kind, message)
    vars(failure).update(message=message, server=None, outcome="unknown", retry_after_s=None)
    vars(failure).update(details=None, idempotent=False)
    return failure


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what of the fields of a failure can be sent: all but what only means something here."""
    plain = {}
    for name, value in fields.items():
        try:
            msgspec.msgpack.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            continue
        plain[name] = value
    return plain


def _classes() -> dict[str, type[SupervisorError]]:
    """Return every kind of failure there is by now, by name."""
    kinds: dict[str, type[SupervisorError]] = {}
    todo: list[type[SupervisorError]] = [SupervisorError]
    while todo:
        kind = todo.pop()
        kinds[kind.__name__] = kind
        todo += kind.__subclasses__()
    return kinds


_KEEP_ALIVE_S: Final = 3.0
"""Between two signs of life that are asked for."""
DEAD_S: Final = 10.0
"""A peer of whom nothing is heard for so long, or that takes nothing, is gone: it is stopped, or the network is cut."""
_MAX_WAITING_BYTES: Final = 256 * 1024 * 1024
"""Of what waits to be sent; what would be more is refused."""
_CROWDED_BYTES: Final = 1024 * 1024
"""With so much waiting, what may be dropped is dropped."""
_BYTES: Final = 64 * 1024
"""Read at a time, and written at a time beside a part of a long text."""


class _FrameBuffer:
    """Takes bytes as they arrive, and gives the bodies of whole frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes, and return the frames that are whole by then. Raises `BadFrame` for one that is too long."""
        self._bytes += data
        begin = 0
        while len(self._bytes) - begin >= HEAD_BYTES:
            size = int.from_bytes(self._bytes[begin : begin + HEAD_BYTES], "big")
            if size > _MAX_FRAME_BYTES:
                raise BadFrame(f"a frame of {size} bytes")
            if len(self._bytes) - begin < HEAD_BYTES + size:
                break
            yield bytes(self._bytes[begin + HEAD_BYTES : begin + HEAD_BYTES + size])
            begin += HEAD_BYTES + size
        del self._bytes[:begin]


class _Text:
    """A long text on its way, in parts: the frame that ends it goes with the last one."""

    def __init__(self, id_: int, body: bytes, end: AnyFrame) -> None:
        self._id = id_
        self._body = memoryview(body)
        self._end = end
        self._at = 0

    @property
    def over(self) -> bool:
        return self._at >= len(self._body)

    def next(self) -> tuple[bytes, int]:
        """Return the next part as it is sent, and how many bytes of the text it has."""
        part = self._body[self._at : self._at + PART_BYTES]
        self._at += len(part)
        data = write(BodyPart(self._id, bytes(part)))
        return data + write(self._end) if self.over else data, len(part)


class FrameStream:
    """The frames of one connection. `gone` once nothing can be sent any more."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.gone = False
        self._stream = stream
        self._frames: deque[bytes] = deque()
        self._texts: deque[_Text] = deque()
        self._waiting = 0
        self._heard_at = 0.0
        self._writes_since = math.inf
        self._scope = trio.CancelScope()
        self._bell = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()

    @property
    def crowded(self) -> bool:
        return self._waiting > _CROWDED_BYTES

    def has_room(self, size: int) -> bool:
        """Say whether so many bytes more may wait to be sent."""
        return self._waiting + size <= _MAX_WAITING_BYTES

    async def wait_room(self) -> None:
        """Wait until it may be no longer crowded, or gone."""
        await self._room.park()

    def send(self, frame: AnyFrame) -> None:
        """Send a frame soon."""
        data = write(frame)
        self._frames.append(data)
        self._waiting += len(data)
        self._bell.unpark()

    def send_text(self, id_: int, body: bytes, end: AnyFrame) -> None:
        """Send a long text in parts, and the frame that ends it. Other frames, and parts of other texts, go between."""
        self._texts.append(_Text(id_, body, end))
        self._waiting += len(body)
        self._bell.unpark()

    def hang_up(self) -> None:
        """End the connection; what waits to be sent is not."""
        self._scope.cancel()

    async def run(self, take: Callable[[bytes], None]) -> None:
        """Send, and hand over the bodies of frames as they arrive, until the connection is over; raises nothing."""
        try:
            with self._scope:
                await self._run(take)
        except* (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError, OSError, BadFrame):
            pass
        finally:
            self.gone = True
            self._room.unpark_all()
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _run(self, take: Callable[[bytes], None]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            nursery.start_soon(self._keep_alive)
            await self._read(take)
            nursery.cancel_scope.cancel()

    async def _read(self, take: Callable[[bytes], None]) -> None:
        buffer = _FrameBuffer()
        while data := bytes(await self._stream.receive_some(_BYTES)):
            self._heard_at = trio.current_time()
            for body in buffer.feed(data):
                take(body)

    async def _write(self) -> None:
        while True:
            while not self._frames and not self._texts:
                await self._bell.park()
            data = self._next()
            self._writes_since = trio.current_time()
            await self._stream.send_all(data)
            self._writes_since = math.inf

    def _next(self) -> bytes:
        """Return what is sent now: some frames, and one part."""
        batch, size = [], 0
        while self._frames and size < _BYTES:
            batch.append(self._frames.popleft())
            size += len(batch[-1])
        self._waiting -= size
        if self._texts:
            text = self._texts.popleft()
            part, length = text.next()
            batch.append(part)
            self._waiting -= length
            if not text.over:
                self._texts.append(text)
        if not self.crowded:
            self._room.unpark_all()
        return b"".join(batch)

    async def _keep_alive(self) -> None:
        """Ask for signs of life, and end the connection to a peer that gives none, or takes nothing.

        One task sees to that for all that is read and written: a deadline of each would cost more than the rest of it.
        """
        self._heard_at = trio.current_time()
        asks_at = self._heard_at + _KEEP_ALIVE_S
        while True:
            now = trio.current_time()
            dead_at = min(self._heard_at, self._writes_since) + DEAD_S
            if now >= dead_at:
                raise trio.TooSlowError
            if now >= asks_at:
                asks_at = now + _KEEP_ALIVE_S
                self.send(SignOfLife(0))
            await trio.sleep_until(min(asks_at, dead_at))
