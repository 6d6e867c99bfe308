"""What was ordered of a server (wake, restart, refresh, sleep, stop) and who waits for it. No I/O, no trio.

- `wake` waits for the server to be ready; `look` as well, but only until its first failure, to make room for others.
- `restart` waits for the fresh process to be ready, or for its first failure: whoever restarts it wants to see that.
- `refresh` waits for a reading of the lists that begins from now on; once it has begun, that is a `read`.
- `sleep` waits for the server to have no process, `stop` for it to be gone for good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from actors.errors import ServerError, SupervisorError
from actors.kit.mailbox import Reply
from actors.life.states import Life
from actors.messages import Refreshed

Kind = Literal["wake", "look", "restart", "refresh", "read", "sleep", "stop"]


class Orders:
    """The replies of those who wait. Each settles when its order is done, or when it cannot be."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._waiting: dict[Kind, list[Reply[Any]]] = {kind: [] for kind in get_args(Kind)}

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for the server who must not wait behind mere discoveries."""
        return any(self._waiting[kind] for kind in ("wake", "restart", "refresh"))

    def wait(self, kind: Kind, reply: Reply[Any]) -> None:
        """Have a reply settled with its order; whoever went away leaves nothing behind."""
        self._waiting[kind] = [*(other for other in self._waiting[kind] if not other.settled), reply]

    def begin_reading(self) -> None:
        """A reading of the lists begins: it is what everybody waits for who asked before."""
        self._waiting["read"] += self.take("refresh")

    def end_reading(self, refreshed: Callable[[], Refreshed]) -> None:
        """A reading is done; `refreshed` says what it found, if anybody asks."""
        if self._waiting["read"]:
            self._answer("read", answer=refreshed())

    def fail_reading(self, reason: str) -> None:
        self._fail(lambda: ServerError(f"server {self._server!r}: {reason}", server=self._server), "read")

    def settle(self, life: Life) -> None:
        if life.serving:
            self._answer("wake", "look", "restart")
            self._fail(lambda: ServerError(f"server {self._server!r} was woken again", server=self._server), "sleep")
        if life.resting:
            self._answer("sleep")
        if life.over:
            self._answer("stop")

    def fail_wakers(self, error: Callable[[], SupervisorError]) -> None:
        self._fail(error, "wake", "look", "restart", "refresh", "read")

    def fail_patient(self, error: Callable[[], SupervisorError]) -> None:
        """The server failed once and is tried again: who wanted to see how it starts need not wait for that."""
        self._fail(error, "look", "restart", "refresh", "read")

    def take(self, *kinds: Kind) -> list[Reply[Any]]:
        """Give up those who wait for orders of these kinds."""
        taken = [reply for kind in kinds for reply in self._waiting[kind]]
        self._waiting.update({kind: [] for kind in kinds})
        return taken

    def _answer(self, *kinds: Kind, answer: Refreshed | None = None) -> None:
        for reply in self.take(*kinds):
            reply.answer(answer)

    def _fail(self, error: Callable[[], SupervisorError], *kinds: Kind) -> None:
        for reply in self.take(*kinds):
            reply.fail(error())
