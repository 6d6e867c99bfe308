"""What was ordered of a server (wake, restart, refresh, sleep, stop) and who waits for it. No I/O, no trio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.errors import ServerError, SupervisorError
from actors.kit.mailbox import Reply
from actors.life.states import Life
from actors.messages import Refreshed


class Orders:
    """The replies of those who wait. Each settles when its order is done, or when it cannot be."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._wakers: list[Reply[Any]] = []
        self._patient: list[Reply[Any]] = []
        self._restarters: list[Reply[Any]] = []
        self._refreshers: list[Reply[Refreshed]] = []
        self._reading_for: list[Reply[Refreshed]] = []
        self._sleepers: list[Reply[Any]] = []
        self._stoppers: list[Reply[Any]] = []

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for the server who must not wait behind mere discoveries."""
        return bool(self._wakers or self._restarters or self._refreshers)

    def wake(self, reply: Reply[Any], *, urgent: bool) -> None:
        """Wait for the server to be ready. Not `urgent`: only until its first failure, to make room for others."""
        waiting = self._wakers if urgent else self._patient
        waiting[:] = [other for other in waiting if not other.settled]  # who went away leaves nothing behind
        waiting.append(reply)

    def restart(self, reply: Reply[Any]) -> None:
        """Wait for the fresh process to be ready, or for its first failure: whoever restarts it wants to see that."""
        self._restarters.append(reply)

    def refresh(self, reply: Reply[Refreshed]) -> None:
        """Wait for a reading of the lists that begins from now on."""
        self._refreshers.append(reply)

    def reading(self) -> None:
        """A reading of the lists begins: it is what everybody waits for who asked before."""
        self._reading_for += self._refreshers
        self._refreshers = []

    def read(self, refreshed: Callable[[], Refreshed]) -> None:
        """A reading is done; `refreshed` says what it found, if anybody asks."""
        if self._reading_for:
            answer = refreshed()
            for reply in self._reading_for:
                reply.answer(answer)
            self._reading_for = []

    def fail_reading(self, reason: str) -> None:
        _fail(self._reading_for, lambda: ServerError(f"server {self._server!r}: {reason}", server=self._server))

    def sleep(self, reply: Reply[Any]) -> None:
        self._sleepers.append(reply)

    def stop(self, reply: Reply[Any]) -> None:
        self._stoppers.append(reply)

    def settle(self, life: Life) -> None:
        if life.serving:
            _answer(self._wakers)
            _answer(self._patient)
            _answer(self._restarters)
            _fail(self._sleepers, lambda: ServerError(f"server {self._server!r} was woken again", server=self._server))
        if life.resting:
            _answer(self._sleepers)
        if life.over:
            _answer(self._stoppers)

    def fail_wakers(self, error: Callable[[], SupervisorError]) -> None:
        for waiting in (self._wakers, self._patient, self._restarters, self._refreshers, self._reading_for):
            _fail(waiting, error)

    def fail_patient(self, error: Callable[[], SupervisorError]) -> None:
        """The server failed once and is tried again: who wanted to see how it starts need not wait for that."""
        for waiting in (self._patient, self._restarters, self._refreshers, self._reading_for):
            _fail(waiting, error)


def _answer(replies: list[Reply[Any]]) -> None:
    for reply in replies:
        reply.answer(None)
    replies.clear()


def _fail(replies: list[Reply[Any]], error: Callable[[], SupervisorError]) -> None:
    for reply in replies:
        reply.fail(error())
    replies.clear()
