"""What a server asks during a call whose client gets no requests, collected until somebody makes a round of it.

One round is what a client is given to answer at a time. Between two rounds the call has no exchange: what the server
tells meanwhile goes to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import trio

from actors.errors import CannotAsk, SupervisorError
from actors.kit import Reply
from actors.messages import Note, Question, Result
from actors.protocol.client_capabilities import ELICIT, lacking, requirement
from actors.protocol.exchanges import PROGRESS
from actors.protocol.input_required import InputRequest
from actors.protocol.jsonrpc import encode
from supervisor.metatools.answers.questions import is_secret
from supervisor.service.exchange import Exchange
from supervisor.service.labels import labelled

MAX_OPEN: Final = 32
MAX_QUESTIONS: Final = 256
"""Of one call, all its rounds together."""
TOGETHER_S: Final = 0.04
"""For the questions that a server asks at the same time."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class InputNeeded(Exception):
    """A request is over without a complete result; `result` is what its client gets, as JSON text."""

    def __init__(self, result: bytes) -> None:
        super().__init__()
        self.result = result


class AskedByResult(Exception):
    """A request is over with a result that has questions in it, for a client that cannot be asked in any other way.

    `questions` by their keys; `state` is what the client has to send with its answers, within `expires_s`.
    """

    def __init__(self, server: str, questions: Mapping[str, InputRequest], state: str, expires_s: float) -> None:
        super().__init__()
        self.server = server
        self.questions = questions
        self.state = state
        self.expires_s = expires_s


class CapabilityRequired(SupervisorError):
    """The call failed because its server asked what the client did not declare (MCP 2026-07-28, -32021).

    `result` is what the server answered after it was told so.
    """

    code = -32021
    http_status = 400
    kind = "capability"

    def __init__(self, server: str, required: Mapping[str, Any], result: Result) -> None:
        text = f"server {server!r} asked for what the client did not declare: {', '.join(required)}"
        details = {"requiredCapabilities": dict(required)}
        super().__init__(text, server=server, outcome="completed", details=details)
        self.result = result


class Rounds:
    """One call of a client that is asked by its answers; implements `actors.messages.Caller`.

    `by_result`: forms that a client did not declare are kept as well, to be told by an ordinary result.
    """

    __slots__ = ("_asked", "_exchange", "_last", "_open", "_turn", "by_result", "lacked")

    def __init__(self, exchange: Exchange, *, by_result: bool = False) -> None:
        self._exchange: Exchange | None = exchange
        self._last = exchange
        self.by_result = by_result
        self._open: dict[str, tuple[Question, Reply[msgspec.Raw]]] = {}
        self._asked = 0
        self._turn: trio.Event | None = None
        self.lacked: dict[str, Any] = {}
        """Capabilities that the client would have needed for a question that was not asked."""

    @property
    def open(self) -> dict[str, InputRequest]:
        """The questions that nobody has answered, by their keys."""
        return {key: InputRequest(question.method, question.params) for key, (question, _) in self._open.items()}

    @property
    def requests(self) -> dict[str, InputRequest]:
        """Those of them that the client can be asked in the way of its revision."""
        known = {key: question for key, (question, _) in self._open.items() if not self._last.lacks(question)}
        by = self._last.asked_by
        return {key: InputRequest(each.method, labelled(by, each.method, each.params)) for key, each in known.items()}

    def note(self, note: Note) -> bool:
        """Tell the client something, if one of its requests is here; see `actors.messages.Caller.note`."""
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
        members = {**_members.decode(note.params), "progressToken": msgspec.Raw(token)}
        return exchange.note(Note(note.method, encode(members)))

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        """Ask by a request where the client takes requests, else keep a question; see `actors.messages.Caller.ask`."""
        lacks = self._last.lacks(question)
        if self._exchange is not None and self._last.client.era == "legacy" and not lacks:
            return self._exchange.ask(question)
        reply: Reply[msgspec.Raw] = Reply()
        if lacks and not (self.by_result and question.method == ELICIT and not is_secret(question.params)):
            self.lacked.update(requirement(lacking(self._last.client.capabilities, question.method, question.params)))
            reply.fail(CannotAsk(lacks))
        elif len(self._open) >= MAX_OPEN or self._asked >= MAX_QUESTIONS:
            text = f"{len(self._open)} questions wait for an answer, {self._asked} were asked during this call"
            reply.fail(CannotAsk(text))
        else:
            self._keep(question, reply)
        return reply

    def _keep(self, question: Question, reply: Reply[msgspec.Raw]) -> None:
        self._asked += 1
        key = f"question-{self._asked}"
        self._open[key] = (question, reply)
        reply.on_abandon(lambda: self._withdraw(key))
        if self._turn is not None:
            self._turn.set()

    async def settled(self, reply: Reply[Result]) -> bool:
        """Wait until a call has its result, or there is something to ask; return whether it has its result.

        Cancelling it abandons the call. A checkpoint if it waits.
        """
        self._turn = turn = trio.Event()
        try:
            reply.on_settled(turn.set)
            if self._open:
                turn.set()
            await turn.wait()
            if not reply.settled:
                await self._gather(reply)
        except trio.Cancelled:
            reply.abandon()
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

    def go_on(self, exchange: Exchange, answers: Mapping[str, msgspec.Raw]) -> None:
        """The client has made its request again. Questions without an answer stay open, other answers mean nothing."""
        self._exchange = self._last = exchange
        for key, answer in answers.items():
            if (asked := self._open.pop(key, None)) is not None:
                asked[1].answer(answer)

    def close(self) -> None:
        """Nobody answers any more."""
        for key in list(self._open):
            _, reply = self._open.pop(key)
            reply.fail(CannotAsk("nobody came back with an answer"))

    def _withdraw(self, key: str) -> None:
        self._open.pop(key, None)
