"""The side of a link that asks: messages for launches that another node owns."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from actors.errors import CallTooLarge
from actors.kit import Reply
from actors.launch import server_of
from actors.messages import (
    CallServer,
    Note,
    Question,
    RefreshServer,
    RestartServer,
    Result,
    SleepServer,
    WakeServer,
)
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.wire import json
from actors.server.calls.errors import unheard_error
from supervisor.fleet.errors import Elsewhere, NodeAway
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
    QuestionSent,
    QuestionSettled,
    QuestionTakenBack,
    RequestSent,
    ResourceChanged,
    ResultSent,
    SignOfLife,
    VisitEnded,
    read_answering,
)
from supervisor.fleet.links.requests import SentRequest
from supervisor.fleet.links.watches import Watchers
from supervisor.fleet.records import Place

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
            self.stream.send(_order_of(id_, place.launch, message))
        elif len(text) > PART_BYTES:
            self.stream.send_text(id_, text, _call_of(id_, place.launch, message, b""))
        else:
            self.stream.send(_call_of(id_, place.launch, message, text))

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


def _call_of(id_: int, launch: str, call: CallServer, members: bytes) -> CallSent:
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


def _order_of(id_: int, launch: str, order: ForLaunch) -> OrderSent:
    kinds: dict[type[ForLaunch], OrderKind] = {
        WakeServer: "wake",
        RestartServer: "restart",
        RefreshServer: "refresh",
        SleepServer: "sleep",
    }
    operator = isinstance(order, WakeServer | RefreshServer) and order.operator
    urgent = not isinstance(order, WakeServer) or order.urgent
    return OrderSent(id_, launch, kinds[type(order)], order.principal, operator, urgent)
