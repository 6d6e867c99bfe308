"""Pauses between two requests about a task that we drive: each a task of the actor that posts when it is over."""

from __future__ import annotations

import trio

from actors.kit import Address, StartSoon
from actors.server.process.inbox import PauseOver, ServerMessage


class TaskPauses:
    """Those of one server. `post` is the mailbox of its actor."""

    def __init__(self, post: Address[ServerMessage], start_soon: StartSoon) -> None:
        self._post = post
        self._start_soon = start_soon

    def begin(self, incarnation: int, call: int, seconds: float) -> None:
        self._start_soon(self._wait, PauseOver(incarnation, call), seconds)

    async def _wait(self, over: PauseOver, seconds: float) -> None:
        await trio.sleep(seconds)
        await self._post.tell(over)
