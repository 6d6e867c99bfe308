"""What was ordered of a server (wake, sleep, stop) and who waits for it to be done. No I/O, no trio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.errors import ServerError, SupervisorError
from actors.kit.mailbox import Reply
from actors.lifecycle import RESTING, State


class Orders:
    """The replies of those who wait. Each settles when its order is done, or when it cannot be."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._wakers: list[Reply[Any]] = []
        self._patient: list[Reply[Any]] = []
        self._sleepers: list[Reply[Any]] = []
        self._stoppers: list[Reply[Any]] = []

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for the server who must not wait behind mere discoveries."""
        return bool(self._wakers)

    def wake(self, reply: Reply[Any], *, urgent: bool) -> None:
        """Wait for the server to be ready. Not `urgent`: only until its first failure, to make room for others."""
        (self._wakers if urgent else self._patient).append(reply)

    def sleep(self, reply: Reply[Any]) -> None:
        """Wait for the server to have no process."""
        self._sleepers.append(reply)

    def stop(self, reply: Reply[Any]) -> None:
        """Wait for the server to be gone for good."""
        self._stoppers.append(reply)

    def settle(self, state: State) -> None:
        """Answer those whose order is done in this state."""
        if state is State.READY:
            _answer(self._wakers)
            _answer(self._patient)
            _fail(self._sleepers, lambda: ServerError(f"server {self._server!r} was woken again", server=self._server))
        if state in RESTING:
            _answer(self._sleepers)
        if state is State.STOPPED:
            _answer(self._stoppers)

    def fail_wakers(self, error: Callable[[], SupervisorError]) -> None:
        """The server will not come up."""
        _fail(self._wakers, error)
        _fail(self._patient, error)

    def fail_patient(self, error: Callable[[], SupervisorError]) -> None:
        """The server failed once and is tried again: who only wanted to know its tools need not wait for that."""
        _fail(self._patient, error)


def _answer(replies: list[Reply[Any]]) -> None:
    for reply in replies:
        reply.answer(None)
    replies.clear()


def _fail(replies: list[Reply[Any]], error: Callable[[], SupervisorError]) -> None:
    for reply in replies:
        reply.fail(error())
    replies.clear()
