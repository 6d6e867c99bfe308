"""A link: one connection between two nodes, on which the one that has opened it asks, and the other one answers.

`OutgoingLink` asks: it sends messages for launches that the other node owns, whose replies settle also where the
connection breaks. `IncomingLink` is asked: it hands calls and orders to launches that are owned here, on behalf of the
clients of the other node, as they are seen here (`DistantCaller`), and notes to which resources these are subscribed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

import msgspec
import trio

from actors.errors import CallTooLarge, CannotAsk, SupervisorError, TooManyCalls
from actors.kit import Reply
from actors.launch import server_of
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
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.asking.questions import Visitor
from actors.protocol.changes import SUBSCRIBE, UNSUBSCRIBE
from actors.protocol.wire import json
from actors.server.calls.errors import unheard_error
from supervisor.fleet.engine import Elsewhere, NodeAway, Place
from supervisor.fleet.links import frames
from supervisor.fleet.links.frames import (
    MAX_TEXT_BYTES,
    PART_BYTES,
    Abandoned,
    AnswerBegun,
    AnswerEnded,
    AnswerPart,
    AnyFrame,
    BadFrame,
    BodyPart,
    CallSent,
    ClientProgressed,
    Failed,
    ForLaunch,
    FrameStream,
    LaunchMoved,
    LinkClosing,
    MovedOn,
    NoteSent,
    OrderDone,
    OrderKind,
    OrderSent,
    PartTaken,
    QuestionSent,
    QuestionSettled,
    QuestionTakenBack,
    RequestLeft,
    RequestSent,
    ResourceChanged,
    ResultSent,
    SignOfLife,
    VisitEnded,
    read_answering,
    read_asking,
)
from supervisor.fleet.links.requests import DistantRequest, SentRequest
from supervisor.fleet.membership import Ownership


class Watchers(Protocol):
    """Who hears of changes of resources: by launch, and the URI that its server has for it."""

    def add(self, launch: str, uri: str, tell: Callable[[], None], node: object) -> None:
        """Have a node told of changes. Raises `TooManyCalls`."""

    def remove(self, launch: str, uri: str, tell: Callable[[], None]) -> bool:
        """Have it told no longer; return whether nobody is any more."""

    def hear(self, launch: str, uri: str) -> None:
        """A resource has changed at another node."""

    def hear_move(self, launch: str) -> None:
        """A launch is at another node now, or at none: whoever is subscribed there has to be again."""

    def hear_break(self) -> None:
        """The connection to another node broke: the same for all its launches."""


# The side that asks ---------------------------------------------------------------------------------------------------


_MAX_VISITS: Final = 1024
"""Clients that may hear of the end of a visit after their call; the oldest is forgotten."""


class _Sent(msgspec.Struct, eq=False):
    """What was sent and has no answer. `questions` are those that the client was asked."""

    place: Place
    message: ForLaunch
    reply: Reply[Any]
    body: bytearray
    questions: dict[int, Reply[msgspec.Raw]]


class OutgoingLink:
    """A connection to another node, on which we ask. Every reply settles, also where the connection breaks.

    `closing`: the node ends, and is asked no more.
    """

    def __init__(self, stream: FrameStream, peer: str, watchers: Watchers) -> None:
        self._watchers = watchers
        self.stream = stream
        self.closing = False
        self._peer = peer
        self._number = 0
        self._sent: dict[int, _Sent] = {}
        self._requests: dict[int, SentRequest] = {}
        self._visits: dict[int, CallServer] = {}

    def __len__(self) -> int:
        return len(self._sent) + len(self._requests)

    async def run(self) -> None:
        """Serve it to its end. What has no answer then may have been done."""
        await self.stream.run(self._take)
        for each in [*self._sent.values()]:
            self._close(each)
            text = f"the connection to the node {self._peer} broke before the answer came"
            each.reply.fail(NodeAway(text, outcome="unknown"))
        self._sent.clear()
        self._watchers.hear_break()
        for request in self._requests.values():
            request.fail(NodeAway(f"the connection to the node {self._peer} broke", outcome="unknown"))
        self._requests.clear()

    def request(self, head: bytes, body: bytes) -> SentRequest:
        """Have a request of a client answered there. Raises `CallTooLarge` where there is no room for it now."""
        if len(body) > MAX_TEXT_BYTES or not self.stream.has_room(len(body)):
            raise CallTooLarge("the request is too much for the connection between two nodes now")
        self._number += 1
        sent = self._requests[self._number] = SentRequest(self.stream, self._number)
        if len(body) > PART_BYTES:
            self.stream.send_text(self._number, body, RequestSent(self._number, head))
        else:
            self.stream.send(RequestSent(self._number, head, body))
        return sent

    def ask(self, place: Place, message: ForLaunch, reply: Reply[Any]) -> None:
        """Send a message for a launch. Its reply fails with `Elsewhere` if nothing was done as it is not there."""
        if self.stream.gone:
            reply.fail(NodeAway(f"the node {self._peer} cannot be reached"))
            return
        text = message.members if isinstance(message, CallServer) else b""
        if len(text) > MAX_TEXT_BYTES or not self.stream.has_room(len(text)):
            reply.fail(CallTooLarge("the call is too much for the connection between two nodes now"))
            return
        self._number += 1
        id_ = self._number
        self._sent[id_] = _Sent(place, message, reply, bytearray(), {})
        reply.on_abandon(partial(self._abandon, id_))
        if not isinstance(message, CallServer):
            self.stream.send(_encode_order(id_, place.launch, message))
        elif len(text) > PART_BYTES:
            self.stream.send_text(id_, text, _encode_call(id_, place.launch, message, b""))
        else:
            self.stream.send(_encode_call(id_, place.launch, message, text))

    def _abandon(self, id_: int) -> None:
        if (each := self._sent.pop(id_, None)) is not None:
            self._close(each)
            self.stream.send(Abandoned(id_, each.reply.abandoned_for))

    def _close(self, each: _Sent) -> None:
        questions, each.questions = each.questions, {}
        for question in questions.values():
            question.abandon()

    def _take(self, body: bytes) -> None:
        frame = read_answering(body)
        if isinstance(frame, SignOfLife):
            if frame.asked:
                self.stream.send(SignOfLife(0, asked=False))
        elif isinstance(frame, LinkClosing):
            self.closing = True
        elif isinstance(frame, VisitEnded):
            self._end_visit(frame)
        elif isinstance(frame, ResourceChanged):
            self._watchers.hear(frame.launch, frame.uri)
        elif isinstance(frame, LaunchMoved):
            self._watchers.hear_move(frame.launch)
        elif (request := self._requests.get(frame.id)) is not None:
            if isinstance(frame, AnswerBegun | AnswerPart | AnswerEnded | Failed):
                request.take(frame)
            if request.over:
                del self._requests[frame.id]
        elif (each := self._sent.get(frame.id)) is not None:
            self._take_for(each, frame)
        if self.closing and not len(self):
            self.stream.hang_up()

    def _take_for(self, each: _Sent, frame: AnyFrame) -> None:
        match frame:
            case BodyPart(part=part):
                each.body += part
                if len(each.body) > MAX_TEXT_BYTES:  # a node that keeps the rules sends none
                    raise BadFrame("a result that is too long")
            case NoteSent(method=method, params=params):
                caller = _caller_of(each)
                heard = caller is None or caller.note(Note(method, params))
                if not heard and META_SUBSCRIPTION.encode() in params:  # a part of a stream, which is over with it
                    each.reply.fail(unheard_error(server_of(each.place.launch)))
                    self._abandon(frame.id)
            case QuestionSent():
                self._ask_client(each, frame)
            case QuestionTakenBack(question=number):
                if (question := each.questions.pop(number, None)) is not None:
                    question.abandon()
            case ResultSent() | OrderDone() | Failed() | MovedOn():
                del self._sent[frame.id]
                self._close(each)
                self._settle(each, frame)

    def _settle(self, each: _Sent, frame: ResultSent | OrderDone | Failed | MovedOn) -> None:
        match frame:
            case Failed(error=error):
                each.reply.fail(frames.decode_failure(error))
            case MovedOn(place=place):
                each.reply.fail(Elsewhere(place))
            case ResultSent(fence=fence) | OrderDone(fence=fence) if fence < each.place.fence:
                text = f"the node {self._peer} answered for an owner of before"
                each.reply.fail(NodeAway(text, outcome="unknown"))
            case OrderDone(refreshed=refreshed):
                each.reply.answer(refreshed)
            case ResultSent():
                self._keep_visitor(frame.id, each)
                body = bytes(each.body) or frame.body
                waited_s, woke, lost = frame.waited_s, frame.woke, frame.lost
                each.reply.answer(Result(msgspec.Raw(body), frame.era, frame.run, waited_s, woke, lost))

    # The client -------------------------------------------------------------------------------------------------------

    def _ask_client(self, each: _Sent, frame: QuestionSent) -> None:
        caller = _caller_of(each)
        if caller is None:
            return
        progress = partial(self._progress, frame.id, frame.question) if frame.progress else None
        asked = caller.ask(Question(frame.method, msgspec.Raw(frame.params), progress))
        each.questions[frame.question] = asked
        asked.on_settled(partial(self._settle_question, each, frame, asked))

    def _progress(self, id_: int, question: int, params: bytes) -> None:
        self.stream.send(ClientProgressed(id_, question, params))

    def _settle_question(self, each: _Sent, frame: QuestionSent, asked: Reply[msgspec.Raw]) -> None:
        if each.questions.pop(frame.question, None) is None or self.stream.gone:
            return
        if asked.failure is not None:
            self.stream.send(QuestionSettled(frame.id, frame.question, error=frames.encode_failure(asked.failure)))
        else:
            self.stream.send(QuestionSettled(frame.id, frame.question, bytes(asked.value or json.NO_RAW)))

    def _keep_visitor(self, id_: int, each: _Sent) -> None:
        """Remember who may hear later that a visit is over."""
        message = each.message
        if isinstance(message, CallServer) and message.exchange is not None and message.exchange.visitor() is not None:
            self._visits[id_] = message
            if len(self._visits) > _MAX_VISITS:
                del self._visits[next(iter(self._visits))]

    def _end_visit(self, frame: VisitEnded) -> None:
        each = self._sent.get(frame.id)
        message = each.message if each is not None else self._visits.get(frame.id)
        if isinstance(message, CallServer) and message.exchange is not None:
            visitor = message.exchange.visitor()
            if visitor is not None:
                visitor(frame.visit)


def _caller_of(each: _Sent) -> Any:
    return each.message.exchange if isinstance(each.message, CallServer) else None


# The side that is asked -----------------------------------------------------------------------------------------------


class _LinkWatches:
    """Resources of launches that are here, to which clients of the other node are subscribed, while it is connected.

    What changes often is told once, when there is room.
    """

    def __init__(self, stream: FrameStream, watchers: Watchers) -> None:
        self._stream = stream
        self._watchers = watchers
        self._tells: dict[tuple[str, str], Callable[[], None]] = {}
        self._due: dict[tuple[str, str], None] = {}
        self._bell = trio.lowlevel.ParkingLot()

    async def run(self) -> None:
        """Tell of changes, until it is cancelled."""
        while True:
            while not self._due:
                await self._bell.park()
            while self._stream.crowded:
                await self._stream.wait_room()
            for launch, uri in [*self._due][:1]:  # none, if nobody wanted to know any more
                del self._due[launch, uri]
                self._stream.send(ResourceChanged(0, launch, uri))
            await trio.lowlevel.checkpoint()

    def add(self, launch: str, uri: str) -> None:
        """Tell of changes from now on. Raises `TooManyCalls`."""
        if (launch, uri) not in self._tells:
            tell = partial(self._tell, launch, uri)
            self._watchers.add(launch, uri, tell, self)
            self._tells[launch, uri] = tell

    def remove(self, launch: str, uri: str) -> bool:
        """Tell of them no longer; return whether it did, and nobody is told any more."""
        self._due.pop((launch, uri), None)
        tell = self._tells.pop((launch, uri), None)
        return tell is not None and self._watchers.remove(launch, uri, tell)

    def move(self, launch: str) -> None:
        """The launch is not here any more."""
        gone = [key for key in self._tells if key[0] == launch]
        for key in gone:
            self.remove(*key)
        if gone and not self._stream.gone:
            self._stream.send(LaunchMoved(0, launch))

    def clear(self) -> None:
        for key in [*self._tells]:
            self.remove(*key)

    def _tell(self, launch: str, uri: str) -> None:
        self._due[launch, uri] = None
        self._bell.unpark_all()


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
        self.watches = _LinkWatches(stream, watchers)
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
            message: ForLaunch = _decode_call(sent, before, begun.caller)
        else:
            message = _decode_order(sent)
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


# Calls and orders on their way ----------------------------------------------------------------------------------------


def _encode_call(id_: int, launch: str, call: CallServer, members: bytes) -> CallSent:
    caller = call.exchange
    meta = call.meta if call.trace is None else call.trace.send(call.meta)
    return CallSent(
        id=id_,
        launch=launch,
        method=call.method,
        members=members,
        meta=meta,
        name=call.name,
        interest=call.interest,
        retry=call.retry,
        as_task=call.as_task,
        resumes=call.resumes,
        by_requests=call.by_requests,
        run=call.run,
        deadline_s=call.deadline_s,
        principal=call.principal,
        client=None if caller is None else (caller.identity[0], str(caller.identity[1])),
        visits=caller is not None and caller.visitor() is not None,
        by_model=call.by_model,
        in_turn=call.in_turn,
        definition=call.definition,
    )


def _decode_call(sent: CallSent, before: bytes, caller: DistantCaller | None) -> CallServer:
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


def _encode_order(id_: int, launch: str, order: ForLaunch) -> OrderSent:
    kinds: dict[type[ForLaunch], OrderKind] = {
        WakeServer: "wake",
        RestartServer: "restart",
        RefreshServer: "refresh",
        SleepServer: "sleep",
    }
    operator = isinstance(order, WakeServer | RefreshServer) and order.operator
    urgent = not isinstance(order, WakeServer) or order.urgent
    return OrderSent(id_, launch, kinds[type(order)], order.principal, operator, urgent)


def _decode_order(sent: OrderSent) -> ForLaunch:
    match sent.order:
        case "wake":
            return WakeServer(server=sent.launch, operator=sent.operator, urgent=sent.urgent, principal=sent.principal)
        case "refresh":
            return RefreshServer(server=sent.launch, operator=sent.operator, principal=sent.principal)
        case "restart":
            return RestartServer(server=sent.launch, principal=sent.principal)
        case "sleep":
            return SleepServer(server=sent.launch, principal=sent.principal)
