"""What a server asks the clients of its calls.

A question is a task of its own, bounded in time. Nobody who is not asked has said yes: a question that finds no client,
or no answer in time, is answered so.
"""

from __future__ import annotations

import trio

from actors.errors import SupervisorError
from actors.kit import Address, StartSoon
from actors.messages import Caller, Question
from actors.protocol.facts import CallAsked
from actors.protocol.jsonrpc import METHOD_NOT_FOUND, ErrorObject, RemoteError
from actors.server.calls import Calls
from actors.server.inbox import QuestionAnswered, ServerMessage
from actors.server.link import Link

UNANSWERED = b'{"action":"cancel"}'
"""What an elicitation gets that nobody answers (MCP 2025-11-25, client/elicitation "Response Actions")."""
CANNOT_ASK = "the client that made this call cannot be asked"


class Dialogue:
    """The open questions of one server. `post` is the mailbox of its actor."""

    def __init__(
        self, calls: Calls, question_timeout_s: float, post: Address[ServerMessage], start_soon: StartSoon
    ) -> None:
        self._calls = calls
        self._start_soon = start_soon
        self._timeout_s = question_timeout_s
        self._post = post
        self._open: dict[bytes, trio.CancelScope] = {}

    def ask(self, asked: CallAsked, link: Link) -> None:
        """Ask the client of a call, whose deadline waits meanwhile."""
        exchange = self._calls.pause(asked.call, link.heard)
        if exchange is None:
            link.talk.answer(asked.id, ErrorObject(METHOD_NOT_FOUND, CANNOT_ASK))
            return
        self._open[asked.id] = scope = trio.CancelScope()
        self._start_soon(self._wait, scope, link.number, asked, exchange)

    def withdraw(self, id_: bytes) -> None:
        """Do not ask any more: the server does not want the answer, or is gone."""
        if (scope := self._open.pop(id_, None)) is not None:
            scope.cancel()

    def answered(self, answered: QuestionAnswered, link: Link | None) -> None:
        """Pass on what a client answered, or that nobody did; the deadline of its call counts again."""
        self._calls.resume(answered.call, trio.current_time())
        if link is not None and answered.result is not None:
            link.talk.answer(answered.id, answered.result)

    def drop(self) -> None:
        """The process is gone, and with it its questions."""
        for id_ in list(self._open):
            self.withdraw(id_)

    async def _wait(self, scope: trio.CancelScope, incarnation: int, asked: CallAsked, exchange: Caller) -> None:
        result: bytes | ErrorObject = UNANSWERED
        with scope, trio.move_on_after(self._timeout_s):
            try:
                result = bytes(await exchange.ask(Question(asked.method, asked.params)).wait())
            except RemoteError as remote:
                result = remote.error
            except SupervisorError as error:
                result = ErrorObject(METHOD_NOT_FOUND, error.message)
        withdrawn = scope.cancelled_caught
        if not withdrawn:
            self._open.pop(asked.id, None)
        await self._post.tell(QuestionAnswered(incarnation, asked.call, asked.id, None if withdrawn else result))
