"""The side of a link that is asked: calls of other nodes for launches that are owned here, and their clients as seen
here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec
import trio

from actors.errors import CallTooLarge, CannotAsk, SupervisorError, TooManyCalls
from actors.kit import Reply
from actors.messages import (
    CallServer,
    Note,
    Question,
    Refreshed,
    RefreshServer,
    RestartServer,
    Result,
    SleepServer,
    WakeServer,
)
from actors.principal import ClientKey
from actors.protocol.asking.questions import Visitor
from actors.protocol.changes import SUBSCRIBE, UNSUBSCRIBE
from supervisor.fleet.errors import Elsewhere, NodeAway
from supervisor.fleet.links import frames
from supervisor.fleet.links.frames import (
    MAX_TEXT_BYTES,
    PART_BYTES,
    Abandoned,
    AnyFrame,
    BadFrame,
    BodyPart,
    CallSent,
    ClientProgressed,
    Failed,
    ForLaunch,
    FrameStream,
    LinkClosing,
    MovedOn,
    NoteSent,
    OrderDone,
    OrderSent,
    PartTaken,
    QuestionSent,
    QuestionSettled,
    QuestionTakenBack,
    RequestLeft,
    RequestSent,
    ResultSent,
    SignOfLife,
    VisitEnded,
    read_asking,
)
from supervisor.fleet.links.requests import DistantRequest
from supervisor.fleet.links.watches import LinkWatches, Watchers
from supervisor.fleet.ownership import Ownership


class DistantCaller:
    """Implements `actors.messages.Caller`: the client of a call that another node has sent."""

    def __init__(self, stream: FrameStream, call: CallSent) -> None:
        self._stream = stream
        self._call = call
        self._questions: dict[int, tuple[Question, Reply[msgspec.Raw]]] = {}
        self._asked = 0

    @property
    def identity(self) -> ClientKey:
        return self._call.client or (self._call.principal, None)

    def note(self, note: Note) -> bool:
        if self._stream.gone or self._stream.crowded:
            return False
        self._stream.send(NoteSent(self._call.id, note.method, note.params))
        return True

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        reply: Reply[msgspec.Raw] = Reply()
        if self._stream.gone:
            reply.fail(CannotAsk("the client that made this call cannot be reached any more"))
            return reply
        self._asked += 1
        number = self._asked
        self._questions[number] = question, reply
        reply.on_abandon(partial(self._take_back, number))
        params, progress = bytes(question.params), question.progress is not None
        self._stream.send(QuestionSent(self._call.id, number, question.method, params, progress))
        return reply

    def visitor(self, question: Question | None = None) -> Visitor | None:
        return self._end_visit if self._call.visits else None

    def take(self, frame: QuestionSettled | ClientProgressed) -> None:
        """Hear of a question that was asked."""
        if (asked := self._questions.get(frame.question)) is None:
            return
        question, reply = asked
        if isinstance(frame, ClientProgressed):
            if question.progress is not None:
                question.progress(frame.params)
            return
        del self._questions[frame.question]
        if frame.error is None:
            reply.answer(msgspec.Raw(frame.result))
        else:
            reply.fail(frames.decode_failure(frame.error))

    def close(self) -> None:
        """Nobody is asked any more."""
        questions, self._questions = self._questions, {}
        for _, reply in questions.values():
            reply.fail(CannotAsk("the call that this was about is over"))

    def _take_back(self, number: int) -> None:
        if self._questions.pop(number, None) is not None:
            self._stream.send(QuestionTakenBack(self._call.id, number))

    def _end_visit(self, visit: str) -> bool:
        if self._stream.gone or self._stream.crowded:
            return False
        self._stream.send(VisitEnded(self._call.id, visit))
        return True


_MAX_OPEN: Final = 8192
"""Calls of one other node at a time."""
_NOTHING: Final = msgspec.Raw(b"{}")
_FULL: Final = f"{_MAX_OPEN} calls of one node are under way at another one"
Deliver = Callable[[str, ForLaunch, Reply[Any]], None]
"""Hands a message to a launch that is owned here."""
AnswerRequest = Callable[[DistantRequest], Awaitable[None]]
"""Answers a request of a client of another node."""


class _Open(msgspec.Struct, eq=False):
    """A call that is under way here."""

    reply: Reply[Any]
    caller: DistantCaller | None = None


class IncomingLink:
    """What one other node asks, as long as its connection lasts."""

    def __init__(
        self,
        stream: FrameStream,
        ownership: Ownership,
        deliver: Deliver,
        answer: AnswerRequest,
        requests: trio.Nursery,
        watchers: Watchers,
    ) -> None:
        """`requests` outlives the link: what clients have asked for runs to its end, as it does when they leave."""
        self._stream = stream
        self._ownership = ownership
        self._deliver = deliver
        self._answer_request = answer
        self._request_tasks = requests
        self.watches = LinkWatches(stream, watchers)
        self._requests: dict[int, DistantRequest] = {}
        self._open: dict[int, _Open] = {}
        self._parts: dict[int, bytearray] = {}
        self._parted = 0
        self._nursery: trio.Nursery

    async def run(self) -> None:
        """Serve it to its end; whatever is under way for it then is abandoned."""
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self.watches.run)
            await self._stream.run(self._take)
            for id_, each in [*self._open.items()]:
                each.reply.abandon()
                self._end(id_)
            for request in self._requests.values():
                request.leave()
            self.watches.clear()
            self._nursery.cancel_scope.cancel()

    def close(self) -> None:
        """Have the other node hang up when it has all its answers, and not ask again."""
        self._stream.send(LinkClosing(0))

    def _take(self, body: bytes) -> None:
        match read_asking(body):
            case CallSent() as call:
                self._begin(call)
            case OrderSent() as order:
                self._begin(order)
            case RequestSent() as request:
                self._begin_request(request)
            case RequestLeft(id=id_) if id_ in self._requests:
                self._requests[id_].leave()
            case PartTaken(id=id_, size=size) if id_ in self._requests:
                self._requests[id_].take_taken(size)
            case Abandoned(id=id_, reason=reason):
                if id_ in self._open:
                    self._open[id_].reply.abandon(reason)
                elif id_ in self._requests:
                    self._requests[id_].abandon()
            case QuestionSettled(id=id_) | ClientProgressed(id=id_) as heard:
                if (each := self._open.get(id_)) is not None and each.caller is not None:
                    each.caller.take(heard)
            case BodyPart(id=id_, part=part):
                self._take_part(id_, part)
            case SignOfLife(asked=True):
                self._stream.send(SignOfLife(0, asked=False))
            case SignOfLife() | RequestLeft() | PartTaken():
                pass

    def _begin_request(self, sent: RequestSent) -> None:
        before = self._parts_of(sent.id)
        request = DistantRequest(self._stream, sent, before + sent.body)
        if len(self._open) + len(self._requests) >= _MAX_OPEN:
            request.refuse(TooManyCalls(_FULL))
            return
        self._requests[sent.id] = request
        self._request_tasks.start_soon(self._serve_request, sent.id, request)

    async def _serve_request(self, id_: int, request: DistantRequest) -> None:
        try:
            await request.serve(self._answer_request)
        finally:
            self._requests.pop(id_, None)

    def _parts_of(self, id_: int) -> bytes:
        """Return the parts that have arrived of what is whole now."""
        before = bytes(self._parts.pop(id_, b""))
        self._parted -= len(before)
        return before

    def _take_part(self, id_: int, part: bytes) -> None:
        self._parted += len(part)
        if self._parted > MAX_TEXT_BYTES:  # a node that keeps the rules refuses such a call itself
            raise BadFrame("texts of calls that are too long")
        self._parts.setdefault(id_, bytearray()).extend(part)

    def _begin(self, sent: CallSent | OrderSent) -> None:
        reply: Reply[Any] = Reply()
        begun = self._open[sent.id] = _Open(reply)
        before = self._parts_of(sent.id)
        reply.on_abandon(partial(self._end, sent.id))
        if len(self._open) > _MAX_OPEN:
            self._fail(sent.id, TooManyCalls(_FULL))
        elif fence := self._ownership.fence(sent.launch):
            self._hand_over(sent, begun, fence, before)
        else:
            self._nursery.start_soon(self._claim, sent, begun, before)

    async def _claim(self, sent: CallSent | OrderSent, begun: _Open, before: bytes) -> None:
        try:
            place = await self._ownership.take(sent.launch)
        except SupervisorError as error:
            self._fail(sent.id, error)
            return
        if not self._ownership.is_here(place):
            self._answer(sent.id, MovedOn(sent.id, place))
        elif not begun.reply.settled:
            self._hand_over(sent, begun, place.fence, before)

    def _hand_over(self, sent: CallSent | OrderSent, begun: _Open, fence: int, before: bytes) -> None:
        if isinstance(sent, CallSent):
            if not self._watch(sent):
                return
            begun.caller = DistantCaller(self._stream, sent) if sent.client is not None else None
            message: ForLaunch = _call_of(sent, before, begun.caller)
        else:
            message = _order_of(sent)
        begun.reply.on_settled(partial(self._settle, sent, begun.reply, fence))
        self._deliver(sent.launch, message, begun.reply)

    def _watch(self, call: CallSent) -> bool:
        """Note what clients of the other node are subscribed to; False for what the server has no need to hear."""
        if call.method == SUBSCRIBE:
            try:
                self.watches.add(call.launch, call.name)
            except SupervisorError as error:
                self._fail(call.id, error)
                return False
        if call.method == UNSUBSCRIBE and not self.watches.remove(call.launch, call.name):
            self._answer_result(call.id, self._ownership.fence(call.launch), Result(_NOTHING, "legacy"))
            return False
        return True

    def _settle(self, sent: CallSent | OrderSent, reply: Reply[Any], fence: int) -> None:
        """Answer; but what was done by an owner of before may have been done by another one, too."""
        if sent.id not in self._open or self._stream.gone:
            return
        if reply.failure is not None and isinstance(sent, CallSent) and sent.method == SUBSCRIBE:
            self.watches.remove(sent.launch, sent.name)
        if isinstance(reply.failure, Elsewhere):  # it is moved away from here
            self._answer(sent.id, MovedOn(sent.id, reply.failure.place))
        elif reply.failure is not None:
            self._fail(sent.id, reply.failure)
        elif self._ownership.fence(sent.launch) != fence:
            self._fail(sent.id, NodeAway("the node lost its lease while it worked on this", outcome="unknown"))
        elif isinstance(reply.value, Result):
            self._answer_result(sent.id, fence, reply.value)
        else:
            refreshed = reply.value if isinstance(reply.value, Refreshed) else None
            self._answer(sent.id, OrderDone(sent.id, fence, refreshed))

    def _fail(self, id_: int, error: Exception) -> None:
        self._answer(id_, Failed(id_, frames.encode_failure(error)))

    def _answer_result(self, id_: int, fence: int, result: Result) -> None:
        body = bytes(result.body)
        long = len(body) > PART_BYTES
        end = ResultSent(
            id=id_,
            fence=fence,
            body=b"" if long else body,
            era=result.era,
            run=result.run,
            waited_s=result.waited_s,
            woke=result.woke,
            lost=result.lost,
        )
        if not long:
            self._answer(id_, end)
        elif len(body) > MAX_TEXT_BYTES or not self._stream.has_room(len(body)):
            text = "the tool ran, but its result is too much for the connection between two nodes now"
            self._fail(id_, CallTooLarge(text, outcome="completed"))
        elif id_ in self._open:
            self._end(id_)
            self._stream.send_text(id_, body, end)

    def _answer(self, id_: int, frame: AnyFrame) -> None:
        if id_ in self._open:
            self._end(id_)
            self._stream.send(frame)

    def _end(self, id_: int) -> None:
        each = self._open.pop(id_, None)
        if each is not None and each.caller is not None:
            each.caller.close()


def _call_of(sent: CallSent, before: bytes, caller: DistantCaller | None) -> CallServer:
    return CallServer(
        server=sent.launch,
        method=sent.method,
        members=before + sent.members,
        meta=sent.meta,
        name=sent.name,
        interest=sent.interest,
        retry=sent.retry,
        as_task=sent.as_task,
        exchange=caller,
        definition=sent.definition,
        resumes=sent.resumes,
        by_requests=sent.by_requests,
        by_model=sent.by_model,
        in_turn=sent.in_turn,
        run=sent.run,
        deadline_s=sent.deadline_s,
        principal=sent.principal,
    )


def _order_of(sent: OrderSent) -> ForLaunch:
    match sent.order:
        case "wake":
            return WakeServer(server=sent.launch, operator=sent.operator, urgent=sent.urgent, principal=sent.principal)
        case "refresh":
            return RefreshServer(server=sent.launch, operator=sent.operator, principal=sent.principal)
        case "restart":
            return RestartServer(server=sent.launch, principal=sent.principal)
        case "sleep":
            return SleepServer(server=sent.launch, principal=sent.principal)
