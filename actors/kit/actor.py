"""An actor: one task, one mailbox, handlers that cannot wait.

A handler is a plain `def`: it cannot await, so it cannot block its mailbox. What must wait runs in a child task of
`self.nursery`, which posts a message when done. An exception in a handler is a bug: it leaves `run` and its nursery.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import trio

from actors.kit.mailbox import Address, Mailbox, Reply

M = TypeVar("M")
StartSoon = Callable[..., None]
"""Starts a child task: `Actor.start_soon`, as those see it who work for an actor."""


class Actor(ABC, Generic[M]):
    """Subclasses write `handle`, which must not be async. `capacity` is the mailbox's room in messages."""

    nursery: trio.Nursery
    rest: Callable[[], None] | None = None
    """Called before others have their turn, as there is no message, or there were many: time to say what gathered."""

    def __init__(self, capacity: int) -> None:
        self._mailbox: Mailbox[M] = Mailbox(capacity)
        self._finished = False
        self.address: Address[M] = self._mailbox.address

    @abstractmethod
    def handle(self, message: M, reply: Reply[Any] | None) -> None:
        """React to one message without waiting."""

    def start_soon(self, task: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Run a child task; from `started` on. It is cancelled when the actor ends."""
        self.nursery.start_soon(task, *args)

    def finish(self) -> None:
        """End the actor after the message it is handling now; its child tasks are cancelled."""
        self._finished = True

    async def run(self, *, task_status: trio.TaskStatus[Address[M]] = trio.TASK_STATUS_IGNORED) -> None:
        """Handle messages until `finish`, a crash or cancellation."""
        with self._mailbox:
            async with trio.open_nursery() as self.nursery:
                self.on_start()
                task_status.started(self.address)
                while not self._finished:
                    envelope = await self._mailbox.receive(self.rest)  # what has gathered costs one turn of the loop
                    self.handle(envelope.message, envelope.reply)
                self.nursery.cancel_scope.cancel()

    def on_start(self) -> None:
        """Run once, inside the nursery, before the first message."""
