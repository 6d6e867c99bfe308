"""In place of a router: the test answers calls itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from actors.errors import SupervisorError
from actors.kit import Address, Reply
from actors.messages import CallServer, Result
from actors.protocol.wire.jsonrpc import RemoteError
from actors.router import Message


class FakeRouter:
    """Keeps what it is asked in `calls`, each with its reply; `answer`, if there is one, makes the answer or raises."""

    def __init__(self, answer: Callable[[CallServer], Result] | None = None) -> None:
        self._answer = answer
        self.calls: list[tuple[CallServer, Reply[Result]]] = []

    @property
    def address(self) -> Address[Message]:
        return cast("Address[Message]", self)

    def request(self, message: CallServer) -> Reply[Result]:
        reply: Reply[Result] = Reply()
        self.calls.append((message, reply))
        if self._answer is not None:
            try:
                reply.answer(self._answer(message))
            except (SupervisorError, RemoteError) as error:
                reply.fail(error)
        return reply

    async def ask(self, message: CallServer) -> Any:
        return await self.request(message).wait()
