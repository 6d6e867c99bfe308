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

from actors.errors import SupervisorError
from actors.kit import Address, Reply, StartSoon
from actors.messages import Caller, Note, Question
from actors.protocol.agreement.client_capabilities import ELICIT, URL, mode_of
from actors.protocol.asking.question_progress import token_of
from actors.protocol.asking.questions import TooManyQuestions, timeout_answer
from actors.protocol.asking.visits import COMPLETE, Visits, id_of, ids_in
from actors.protocol.facts import CallAsked, CallRefused
from actors.protocol.wire.jsonrpc import METHOD_NOT_FOUND, ErrorObject, RemoteError, encode
from actors.server.calls.calls import Calls
from actors.server.calls.turns import Subject
from actors.server.inbox import HoldEnded, QuestionAnswered, QuestionProgressed, ServerMessage
from actors.server.process.link import Link
from actors.server.settings import ServerSettings

CANNOT_ASK: Final = "the client that made this call cannot be asked"
HOLD_S: Final = 5.0
"""For the other calls to end, while it is not known which of them a question is about."""
PATIENT_HOLD_S: Final = 30.0
"""The same where one of them is known to ask, and the others are not: most calls are over by then."""
CONTENDED_S: Final = 60.0
"""For an answer, while other calls wait for their turn: a client that never comes back must not hold them up."""
WHOSE: Final = "it is not known which call this is about; from now on such calls are sent one at a time: call again"
CANCELLED: Final = "this may be about a call that another client has cancelled, and which goes on: call again later"


class _Held(msgspec.Struct, frozen=True):
    """A question, and the calls that were in flight when it came: one that began later cannot have led to it.

    `subjects`: what takes turns until it is known which call is meant.
    """

    asked: CallAsked
    calls: frozenset[int]
    subjects: tuple[Subject, ...]


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
        self._open: dict[bytes, trio.CancelScope] = {}
        self._times: dict[bytes, tuple[float, trio.CancelScope]] = {}
        self._held: dict[bytes, _Held] = {}
        self._visits = Visits()
        self._tokens: dict[bytes, bytes] = {}
        self._progress: dict[bytes, bytes] = {}

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
        if link.talk.era == "legacy" and (token := token_of(asked.params)):
            self._tokens[asked.id] = token
        self._open[asked.id] = scope = trio.CancelScope()
        self._start_soon(self._wait, scope, link.number, asked, asked.call, exchange)

    def on_call_end(self, link: Link) -> None:
        """A call has ended: perhaps it is known now whose the questions are that are held."""
        for held in list(self._held.values()):
            if (call := link.talk.exchanges.asker(held.calls)) is not None:
                self.withdraw(held.asked.id)
                self.ask(msgspec.structs.replace(held.asked, call=call), link)

    def others_wait(self) -> None:
        """Other calls wait until the questions of the present one are answered: let that not last."""
        for asked_at, scope in self._times.values():
            scope.deadline = min(scope.deadline, asked_at + CONTENDED_S)

    def on_hold_end(self, ended: HoldEnded, link: Link | None) -> None:
        """It is still not known whose a question is."""
        held = self._release(ended.id)
        if held is None or link is None or link.number != ended.incarnation:
            return
        self._open.pop(ended.id, None)
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
        self._release(id_)
        if (scope := self._open.pop(id_, None)) is not None:
            scope.cancel()

    def on_answer(self, answered: QuestionAnswered, link: Link | None) -> None:
        """Pass on what a client answered, or that nobody did; the deadline of its call counts again."""
        self._calls.resume(answered.call, trio.current_time())
        self._tokens.pop(answered.id, None)
        self._progress.pop(answered.id, None)
        if link is not None and answered.result is not None:
            link.talk.answer(answered.id, answered.result)

    def on_refused(self, fact: CallRefused, link: Link) -> None:
        """A call, which is still known, fails with an error; that may ask its client for visits."""
        ids = ids_in(fact.error) if link.talk.era == "legacy" else ()
        if ids and (caller := self._calls.caller(fact.call)) is not None and (visitor := caller.visitor()) is not None:
            for id_ in ids:
                self._visits.give(id_, visitor, fact.call, link.heard)

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
        token, params = self._tokens.get(id_), self._progress.pop(id_, None)
        if token is not None and params is not None and link.place(len(params) + len(token)) is not None:
            link.talk.questions.send_progress(token, params)

    def drop(self) -> None:
        """The process is gone, and with it its questions."""
        for id_ in list(self._open):
            self.withdraw(id_)
        self._tokens.clear()
        self._progress.clear()

    def _hold(self, asked: CallAsked, link: Link) -> None:
        calls, hold_s = link.talk.exchanges.askers, min(HOLD_S, link.talk.exchanges.doubt_s)
        subjects: tuple[Subject, ...] = ()
        if len(calls) > 1:
            subjects = self._calls.turns.hold(calls)
            hold_s = PATIENT_HOLD_S if self._calls.turns.knows_whom(calls) else HOLD_S
        self._held[asked.id] = _Held(asked, calls, subjects)
        self._open[asked.id] = scope = trio.CancelScope()
        self._start_soon(self._wait_for_others, scope, hold_s, HoldEnded(link.number, asked.id))

    def _release(self, id_: bytes) -> _Held | None:
        if (held := self._held.pop(id_, None)) is not None:
            self._calls.turns.release(held.subjects)
        return held

    async def _wait_for_others(self, scope: trio.CancelScope, hold_s: float, ended: HoldEnded) -> None:
        with scope:
            await trio.sleep(hold_s)
            await self._post.tell(ended)

    async def _wait(
        self, scope: trio.CancelScope, incarnation: int, asked: CallAsked, call: int, exchange: Caller
    ) -> None:
        result = timeout_answer(asked.method, asked.params, self._fallback)
        with scope, trio.move_on_after(self._timeout_s) as patience:
            self._times[asked.id] = trio.current_time(), patience
            try:
                result = bytes(await self._ask(incarnation, asked, call, exchange).wait())
            except RemoteError as remote:
                result = remote.error
            except TooManyQuestions as error:
                result = ErrorObject(error.code, error.message, msgspec.Raw(encode(error.data())))
            except SupervisorError as error:
                result = ErrorObject(METHOD_NOT_FOUND, error.message)
        self._times.pop(asked.id, None)
        withdrawn = scope.cancelled_caught
        if not withdrawn:
            self._open.pop(asked.id, None)
        await self._post.tell(QuestionAnswered(incarnation, call, asked.id, None if withdrawn else result))

    def _ask(self, incarnation: int, asked: CallAsked, call: int, exchange: Caller) -> Reply[msgspec.Raw]:
        hear = partial(self._hear, QuestionProgressed(incarnation, asked.id)) if asked.id in self._tokens else None
        question = Question(asked.method, asked.params, hear)
        reply = exchange.ask(question)
        if asked.method == ELICIT and mode_of(asked.params) == URL and (id_ := id_of(asked.params)):
            visitor = None if reply.settled else exchange.visitor(question)
            if visitor is not None:
                self._visits.give(id_, visitor, call, trio.current_time())
        return reply

    def _hear(self, progressed: QuestionProgressed, params: bytes) -> None:
        """Keep the newest that a client tells; one message to the actor for all that came meanwhile."""
        waits = progressed.id in self._progress
        self._progress[progressed.id] = params
        if not waits:
            try:
                self._post.tell_nowait(progressed)
            except SupervisorError:  # full or gone: another one may come
                del self._progress[progressed.id]
