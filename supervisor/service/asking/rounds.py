"""What a server asks during a call whose client gets no requests, collected until somebody makes a round of it.

One round is what a client is given to answer at a time. Between two rounds the call has no exchange: what the server
tells meanwhile goes to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import trio

from actors.codes import MISSING_CAPABILITY
from actors.errors import CannotAsk, SupervisorError
from actors.kit import Reply, given_reason
from actors.messages import Note, Question, Result
from actors.principal import ClientKey
from actors.protocol.agreement.capabilities import ELICIT, missing_capability, requirement
from actors.protocol.asking.forms import is_secret
from actors.protocol.asking.input_required import InputRequest
from actors.protocol.asking.questions import MAX_FORM_BYTES, Visitor, refusal, with_progress_token, with_token
from actors.protocol.exchanges import PROGRESS
from supervisor.metatools.answers.questions import ToldQuestion
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.labels import label

MAX_OPEN: Final = 32
TOGETHER_S: Final = 0.04
"""For the questions that a server asks at the same time."""


_FORM: Final = Question(ELICIT, msgspec.Raw(b"{}"))


class InputNeeded(Exception):
    """A request is over without a complete result; `result` is what its client gets, as JSON text."""

    def __init__(self, result: bytes) -> None:
        super().__init__()
        self.result = result


class AskedByResult(Exception):
    """A request is over with a result that has questions in it, for a client that cannot be asked in any other way.

    `questions` by their keys; `state` is what the client has to send with its answers, within `expires_s`. `plugin` is
    who asks, if that is not the server; `confirms`: we do, whether the tool may run.
    """

    def __init__(
        self,
        server: str,
        questions: Mapping[str, ToldQuestion],
        state: str,
        expires_s: float,
        plugin: str = "",
        *,
        confirms: bool = False,
    ) -> None:
        super().__init__()
        self.confirms = confirms
        self.plugin = plugin
        self.server = server
        self.questions = questions
        self.state = state
        self.expires_s = expires_s


class CapabilityRequired(SupervisorError, code=MISSING_CAPABILITY, http_status=400, kind="capability"):
    """The call failed because its server asked what a modern client did not declare (`data.requiredCapabilities`).

    (MCP 2026-07-28, basic/index "Error Codes".) `result` is what the server answered after it was told so.
    """

    def __init__(self, server: str, required: Mapping[str, Any], result: Result) -> None:
        text = f"server {server!r} asked for what the client did not declare: {', '.join(required)}"
        details = {"requiredCapabilities": dict(required)}
        super().__init__(text, server=server, outcome="completed", details=details)
        self.result = result


class _Open(msgspec.Struct, frozen=True, eq=False):
    """A question that nobody has answered; `page` is where a person may, empty if there is none.

    `there_only`: on no other way.
    """

    question: Question
    reply: Reply[msgspec.Raw]
    page: str = ""
    there_only: bool = False


class Rounds:
    """One call of a client that is asked by its answers; implements `actors.messages.Caller`.

    `by_result`: forms that a client did not declare are kept as well, to be told by an ordinary result.
    """

    __slots__ = ("_asked", "_exchange", "_last", "_on_pages", "_open", "_required", "_turn", "by_result", "lacked")

    def __init__(self, exchange: Exchange, *, by_result: bool = False) -> None:
        self._exchange: Exchange | None = exchange
        self._last = exchange
        self.by_result = by_result
        self._open: dict[str, _Open] = {}
        self._on_pages: set[Reply[msgspec.Raw]] = set()
        self._asked = 0
        self._turn: trio.Event | None = None
        self._required: dict[str, Reply[msgspec.Raw]] = {}
        self.lacked: dict[str, Any] = {}
        """Capabilities that the client would have needed for a question that was not asked."""

    @property
    def answers(self) -> dict[str, msgspec.Raw]:
        return {key: reply.value for key, reply in self._required.items() if reply.value is not None}

    @property
    def questions(self) -> dict[str, ToldQuestion]:
        """The questions that nobody has answered, by their keys, for a client that is told of them by a result."""
        return {
            key: ToldQuestion(InputRequest(each.question.method, each.question.params), each.page, each.there_only)
            for key, each in self._open.items()
        }

    @property
    def requests(self) -> dict[str, InputRequest]:
        known = {key: each.question for key, each in self._open.items() if not self._last.lacks(each.question)}
        by = self._last.asked_by
        return {key: InputRequest(each.method, label(by, each.method, each.params)) for key, each in known.items()}

    def note(self, note: Note) -> bool:
        exchange = self._exchange
        if exchange is None:
            return False
        if self._asked == 0:  # nearly always: its first request is the only one
            return exchange.note(note)
        if note.method != PROGRESS:
            return exchange.wish.log_level is not None and exchange.note(note)
        token = exchange.wish.progress  # each request has a token of its own
        if not token:
            return False
        return exchange.note(Note(note.method, with_progress_token(note.params, token)))

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        last, lacks, elicitations = self._last, self._last.lacks(question), self._last.elicitations
        if not lacks and self._exchange is not None and last.client.era == "legacy":
            return self._exchange.ask(question)
        told = self.by_result and question.method == ELICIT
        reply: Reply[msgspec.Raw] = Reply()
        question = Question(question.method, with_token(question.params, b""))
        try:
            if not lacks or told:
                self._keep(f"question-{self._asked + 1}", question, reply, told=bool(lacks))
            elif elicitations is not None and last.reaches_people(question):
                last.admit(question, reply)
                elicitations.offer(question, reply)
                self._on_pages.add(reply)
                reply.on_settled(lambda: self._on_pages.discard(reply))
            else:
                self.lacked.update(
                    requirement(missing_capability(last.client.capabilities, question.method, question.params))
                )
                raise CannotAsk(lacks)
        except CannotAsk as error:
            reply.fail(error)
        return reply

    @property
    def by_model(self) -> bool:
        """Whether a form is told to a model; see `CallServer`."""
        last = self._last
        return self.by_result if last.lacks(_FORM) else last.asks_later and last.client.era == "modern"

    @property
    def program(self) -> ClientKey:
        return self._last.client.program

    @property
    def identity(self) -> ClientKey:
        return self._last.identity

    def visitor(self, question: Question | None = None) -> Visitor | None:
        return self._exchange.visitor(question) if self._exchange is not None else None

    def require(self, requests: Mapping[str, InputRequest], *, there_only: bool = False) -> None:
        """Keep questions under keys of their own, until `answers` has those; `there_only`: from a page.

        Raises `CannotAsk` for what the client cannot be asked so.
        """
        try:
            for key, request in requests.items():
                question = Question(request.method, request.params)
                if question.method != ELICIT or refusal(question.method, question.params):
                    raise CannotAsk(self._last.lacks(question) or "it cannot be asked by a result")
                reply: Reply[msgspec.Raw] = Reply()
                self._required[key] = reply
                self._keep(key, question, reply, told=self.by_result, there_only=there_only)
        except CannotAsk:
            self.close()
            raise

    def _keep(
        self, key: str, question: Question, reply: Reply[msgspec.Raw], *, told: bool, there_only: bool = False
    ) -> None:
        """Keep a question until it is settled. `told`: by a result; what is secret is answered on a page only then."""
        if len(self._open) >= MAX_OPEN:
            raise CannotAsk(f"{len(self._open)} questions of this call wait for an answer already")
        self._last.admit(question, reply)
        page, elicitations = "", self._last.elicitations
        if told:
            size = sum(len(asked.question.params) for asked in (*self._open.values(), _Open(question, reply)))
            if size > MAX_FORM_BYTES:
                raise CannotAsk(f"{size} bytes of questions at once; a result tells of {MAX_FORM_BYTES} at most")
            there_only = there_only or is_secret(question.params)
            page = self._page(question, reply)
            if there_only and not page:
                raise CannotAsk("only a person may answer this, on a page of the daemon, and there is none for it")
        elif elicitations is not None:
            elicitations.on_asked(question, reply)
        self._asked += 1
        self._open[key] = _Open(question, reply, page, told and there_only)
        reply.on_settled(lambda: self._forget(key))
        if self._turn is not None:
            self._turn.set()

    def _page(self, question: Question, reply: Reply[msgspec.Raw]) -> str:
        if (elicitations := self._last.elicitations) is None:
            return ""
        try:
            return elicitations.offer(question, reply, repeats=True)
        except CannotAsk:
            elicitations.on_asked(question, reply)
            return ""

    async def settled(self, reply: Reply[Result]) -> bool:
        """Wait until a call has its result, or there is something to ask; return whether it has its result.

        Cancelling it abandons the call. A checkpoint if it waits.
        """
        try:
            while not reply.settled:
                self._turn = turn = trio.Event()
                reply.on_settled(turn.set)
                if self._open:
                    turn.set()
                await turn.wait()
                if not reply.settled:
                    await self._gather(reply)
                if self._open:  # its server may have taken it back
                    break
        except trio.Cancelled as cancelled:
            reply.abandon(given_reason(cancelled))
            raise
        finally:
            self._turn = None
        return reply.settled

    async def _gather(self, reply: Reply[Result]) -> None:
        """Wait a moment for what is asked at the same time, or for the result."""
        over = trio.Event()
        reply.on_settled(over.set)
        with trio.move_on_after(TOGETHER_S):
            await over.wait()

    def pause(self) -> None:
        """The client gets a round of questions: its request is over."""
        self._exchange = None

    def continues_with(self, exchange: Exchange, *, by_result: bool) -> bool:
        """Say whether a request can be told what else is asked: in the era of the first, `by_result` where that was."""
        return exchange.client.era == self._last.client.era and (by_result or not self.by_result)

    def go_on(self, exchange: Exchange, answers: Mapping[str, msgspec.Raw]) -> None:
        """The client has made its request again. Questions without an answer stay open, other answers mean nothing."""
        exchange.allowance = self._last.allowance
        self._exchange = self._last = exchange
        for key, asked in list(self._open.items()):  # there may be very many answers
            if key in answers and not asked.there_only:
                asked.reply.answer(answers[key])

    def close(self, why: str = "nobody came back with an answer") -> None:
        if self._open or self._on_pages:  # of most calls nobody asks anything
            for reply in [*(asked.reply for asked in self._open.values()), *self._on_pages]:
                reply.fail(CannotAsk(why))

    def _forget(self, key: str) -> None:
        self._open.pop(key, None)
