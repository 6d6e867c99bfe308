"""The client of a call that another node has sent, as the server of the call sees it."""

from __future__ import annotations

from functools import partial

import msgspec

from actors.errors import CannotAsk
from actors.kit import Reply
from actors.messages import Note, Question
from actors.principal import ClientKey
from actors.protocol.asking.questions import Visitor
from supervisor.fleet.links import failures
from supervisor.fleet.links.frame_stream import FrameStream
from supervisor.fleet.links.frames import (
    CallSent,
    ClientProgressed,
    NoteSent,
    QuestionSent,
    QuestionSettled,
    QuestionTakenBack,
    VisitEnded,
)


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
            reply.fail(failures.receive(frame.error))

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
