"""What a server asks the clients of its calls.

A question is a task of its own, bounded in time. Nobody who is not asked has said yes: a question that finds no client,
or no answer in time, is answered so.

A question on a stream that all calls share may be about any of several, or about one that another client has cancelled.
It is held until only one of them can have led to it, and never guessed: for `HOLD_S` at most, or `PATIENT_HOLD_S` where
all but one are about tools that were not seen to ask. If it stays unknown, calls of what may have asked take turns from
then on (`turns`).

Which addresses a server has asked clients to open is kept beyond its process: it tells later that a visit is over.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec
import trio

from actors.codes import METHOD_NOT_FOUND
from actors.errors import SupervisorError
from actors.kit import Address, Reply, StartSoon
from actors.messages import Caller, Note, Question
from actors.protocol.agreement.capabilities import ELICIT, URL, mode_of
from actors.protocol.asking.questions import COMPLETE, TooManyQuestions, Visits, id_of, ids_in, timeout_answer, token_of
from actors.protocol.facts import CallAsked
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError, encode
from actors.protocol.wire.peer import Refused
from actors.server.calls.calls import Calls
from actors.server.calls.turns import Subject
from actors.server.inbox import HoldEnded, QuestionAnswered, QuestionProgressed, ServerMessage
from actors.server.incarnation import Link
from actors.server.settings import ServerSettings

CANNOT_ASK: Final = "the client that made this call cannot be asked"
HOLD_S: Final = 5.0
"""For the other calls to end, while it is not known which of them a question is about."""
PATIENT_HOLD_S: Final = 30.0
"""The same where one of them is known to ask, and the others are not: most calls are over by then."""
CONTENDED_S: Final = 60.0
"""For an answer, while other calls wait for their turn: a client that never comes back must not hold them up."""
WHOSE: Final = (
    "it is not known which of several calls this is about, so nobody was asked: call these tools one after the other; "
    "from now on they are sent one at a time"
)
CANCELLED: Final = "this may be about a call that another client has cancelled, and which goes on: call again later"


class _Question(msgspec.Struct, eq=False):
    """A question that is asked, or held while it is not known about which call it is.

    `scope`: its task, until that is `over`. `calls`: of one that is held, those that were in flight when it came: one
    that began later cannot have led to it. `subjects`: what takes turns meanwhile. `patience`: how long it waits for
    its client, since `asked_at`, which is no longer than other clients may be kept waiting if it is `contended`;
    `answer` is what that gives. `token` of the server for what its client tells of its work on it, `progress`: the
    newest of that, not told yet.
    """

    asked: CallAsked
    scope: trio.CancelScope
    calls: frozenset[int] = frozenset()
    subjects: tuple[Subject, ...] = ()
    asked_at: float = 0.0
    patience: trio.CancelScope | None = None
    contended: bool = False
    answer: Reply[msgspec.Raw] | None = None
    token: bytes = b""
    progress: bytes | None = None
    over: bool = False

    @property
    def held(self) -> bool:
        return self.asked.call is None

    @property
    def is_open(self) -> bool:
        """Whether its client has not answered."""
        return not self.held and not self.over and (self.answer is None or not self.answer.settled)

    def contend(self) -> None:
        """Let it not last, as calls of other clients wait for the answer."""
        self.contended = True
        if self.patience is not None:
            self.patience.deadline = min(self.patience.deadline, self.asked_at + CONTENDED_S)


class Dialogue:
    """The open questions of one server. `post` is the mailbox of its actor."""

    def __init__(
        self, calls: Calls, settings: ServerSettings, post: Address[ServerMessage], start_soon: StartSoon
    ) -> None:
        self._calls = calls
        self._start_soon = start_soon
        self._timeout_s = settings.question_timeout_s
        self._fallback = settings.question_fallback
        self._post = post
        self._open: dict[bytes, _Question] = {}
        self._visits = Visits()

    def ask(self, asked: CallAsked, link: Link) -> None:
        """Ask the client of a call, whose deadline waits meanwhile."""
        if asked.call is None:
            self._hold(asked, link)
            return
        exchange = self._calls.pause(asked.call, link.heard)
        if exchange is None:
            link.talk.answer(asked.id, ErrorObject(METHOD_NOT_FOUND, CANNOT_ASK))
            return
        self._calls.turns.note_question(asked.call, link.heard)
        token = token_of(asked.params) if link.talk.era == "legacy" else b""
        self._open[asked.id] = question = _Question(asked, trio.CancelScope(), token=token)
        self._start_soon(self._wait, question, link.number, asked.call, exchange)

    def on_call_end(self, link: Link) -> None:
        """A call has ended: perhaps it is known now whose the questions are that are held."""
        for held in [question for question in self._open.values() if question.held]:
            if (call := link.talk.exchanges.asker(held.calls)) is not None:
                self.withdraw(held.asked.id)
                self.ask(msgspec.structs.replace(held.asked, call=call), link)

    def others_wait(self, now: float) -> None:
        """Calls were not sent: see which of them wait until the client of another one has answered a question.

        A model that is told of a question, and waits for the results of its other calls, cannot answer before it has
        those: to let them wait would be in vain, so they end, and nothing of them was sent. Of other clients each is
        told, and the question does not last. A client that answers has its own calls wait by that: their time stands
        still.
        """
        standing: set[int] = set()
        asked = {each.asked.call: each for each in self._open.values() if each.is_open}
        for call, blocking in self._calls.turns.behind_questions(now) if asked else ():
            question = asked.get(blocking.number)
            if question is None:
                continue
            same = call.message.client == blocking.message.client
            left_s = self._timeout_s if question.patience is None else question.patience.deadline - now
            if same and blocking.message.by_model and question.asked.method == ELICIT:
                self._calls.fail_unanswered(call, blocking, left_s)
                continue
            self._calls.turns.tell(call, now)
            if same:
                self._calls.stand_still(call, now + left_s, now)
                standing.add(call.number)
            else:
                question.contend()
        self._calls.go_on(now, but=standing)

    def on_hold_end(self, ended: HoldEnded, link: Link | None) -> None:
        held = self._open.get(ended.id)
        if held is None or not held.held or link is None or link.number != ended.incarnation:
            return
        self._take(ended.id)
        if (call := link.talk.exchanges.asker(held.calls)) is not None:
            self.ask(msgspec.structs.replace(held.asked, call=call), link)
        else:
            several = len(held.calls) > 1
            if several:
                self._calls.turns.suspect(held.calls)
            why = WHOSE if several else CANCELLED
            link.talk.answer(ended.id, ErrorObject(METHOD_NOT_FOUND, why))

    def withdraw(self, id_: bytes) -> None:
        """Do not ask any more: the server does not want the answer, or is gone."""
        if (question := self._take(id_)) is not None:
            question.scope.cancel()

    def on_answer(self, answered: QuestionAnswered, link: Link | None) -> None:
        now = trio.current_time()
        self._calls.resume(answered.call, now)
        self._calls.go_on(now)
        if (question := self._open.get(answered.id)) is not None and question.over:  # else it is another one of that id
            self._take(answered.id)
        if link is not None and answered.result is not None:
            link.talk.answer(answered.id, answered.result)

    def on_refused(self, fact: Refused[int], link: Link) -> None:
        """A call, which is still known, fails with an error; that may ask its client for visits."""
        ids = ids_in(fact.error) if link.talk.era == "legacy" else ()
        if ids and (caller := self._calls.caller(fact.tag)) is not None and (visitor := caller.visitor()) is not None:
            for id_ in ids:
                self._visits.give(id_, visitor, fact.tag, link.heard)

    def on_visit_completed(self, id_: str, link: Link) -> None:
        """Tell whoever was asked for a visit that it is over: during the call that asked for it, or outside of it."""
        told = False
        note = Note(COMPLETE, encode({"elicitationId": id_}))
        for visitor, call in self._visits.over(id_, link.heard).items():
            caller = self._calls.caller(call)
            told |= (caller is not None and caller.note(note)) or visitor(id_)
        self._calls.unheard += not told

    def send_progress(self, id_: bytes, link: Link) -> None:
        """Tell the server how far a client is with an answer, if there is room; what it told before is left out."""
        if (question := self._open.get(id_)) is None or question.progress is None:
            return
        token, params, question.progress = question.token, question.progress, None
        if link.place(len(params) + len(token)) is not None:
            link.talk.questions.send_progress(token, params)

    def drop(self) -> None:
        """The process is gone, and with it its questions."""
        for id_ in list(self._open):
            self.withdraw(id_)
        self._calls.go_on(trio.current_time())

    def _hold(self, asked: CallAsked, link: Link) -> None:
        calls, hold_s = link.talk.exchanges.askers, min(HOLD_S, link.talk.exchanges.doubt_s)
        subjects: tuple[Subject, ...] = ()
        if len(calls) > 1:
            subjects = self._calls.turns.hold(calls)
            hold_s = PATIENT_HOLD_S if self._calls.turns.knows_whom(calls) else HOLD_S
        self._open[asked.id] = held = _Question(asked, trio.CancelScope(), calls, subjects)
        self._start_soon(self._wait_for_others, held.scope, hold_s, HoldEnded(link.number, asked.id))

    def _take(self, id_: bytes) -> _Question | None:
        if (question := self._open.pop(id_, None)) is not None:
            self._calls.turns.release(question.subjects)
        return question

    async def _wait_for_others(self, scope: trio.CancelScope, hold_s: float, ended: HoldEnded) -> None:
        with scope:
            await trio.sleep(hold_s)
            await self._post.tell(ended)

    async def _wait(self, question: _Question, incarnation: int, call: int, exchange: Caller) -> None:
        asked = question.asked
        result = timeout_answer(asked.method, asked.params, self._fallback)
        with question.scope, trio.move_on_after(self._timeout_s) as question.patience:
            question.asked_at = trio.current_time()
            if question.contended:
                question.contend()
            try:
                question.answer = self._ask(question, incarnation, call, exchange)
                result = bytes(await question.answer.wait())
            except RemoteError as remote:
                result = remote.error
            except TooManyQuestions as error:
                result = ErrorObject(error.code, error.message, msgspec.Raw(encode(error.data())))
            except SupervisorError as error:
                result = ErrorObject(METHOD_NOT_FOUND, error.message)
        question.over, question.patience = True, None
        withdrawn = question.scope.cancelled_caught
        await self._post.tell(QuestionAnswered(incarnation, call, asked.id, None if withdrawn else result))

    def _ask(self, open_: _Question, incarnation: int, call: int, exchange: Caller) -> Reply[msgspec.Raw]:
        asked = open_.asked
        hear = partial(self._hear, open_, QuestionProgressed(incarnation, asked.id)) if open_.token else None
        question = Question(asked.method, asked.params, hear)
        reply = exchange.ask(question)
        if asked.method == ELICIT and mode_of(asked.params) == URL and (id_ := id_of(asked.params)):
            visitor = None if reply.settled else exchange.visitor(question)
            if visitor is not None:
                self._visits.give(id_, visitor, call, trio.current_time())
        return reply

    def _hear(self, question: _Question, progressed: QuestionProgressed, params: bytes) -> None:
        """Keep the newest that a client tells; one message to the actor for all that came meanwhile."""
        waits, question.progress = question.progress is not None, params
        if not waits:
            try:
                self._post.tell_nowait(progressed)
            except SupervisorError:  # full or gone: another one may come
                question.progress = None
