"""The tasks of one client connection: its applications, what they are told, and helpers that end with the connection.

Rules of this file:
- What waits for the application ends with the application: hypercorn's queue to it has no reader once it has answered,
  and whoever still puts would wait for ever.
- The end of a body joins the part before it as long as nobody has read that: most requests are read in one go.
- An application that goes on sending has a checkpoint now and then, even if sending never makes it wait.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.trio.task_group import TaskGroup, _handle
from hypercorn.typing import AppWrapper
from hypercorn.utils import UnexpectedMessageError

log = logging.getLogger(__name__)

SENDS_PER_TURN = 16
"""After so many messages of a connection's applications others have their turn."""


LARGE = 64 * 1024
"""Characters or bytes of a WebSocket message that must not wait here: whoever has it counts what it takes."""

_LAST = frozenset({"http.disconnect", "websocket.disconnect"})
"""Nothing comes after them, so there is always room for one."""


class _ApplicationQueue(msgspec.Struct, eq=False):
    """Events for one application, until it has finished; from then on they are dropped. Bounded by `size`."""

    size: int
    _finished: bool = False
    _events: deque[Any] = msgspec.field(default_factory=deque)
    _added: trio.lowlevel.ParkingLot = msgspec.field(default_factory=trio.lowlevel.ParkingLot)
    _taken: trio.lowlevel.ParkingLot = msgspec.field(default_factory=trio.lowlevel.ParkingLot)

    async def put(self, event: Any) -> None:
        """Add an event, waiting for room; for a large message of a WebSocket, until it is taken."""
        while len(self._events) >= self.size and not (self._finished or event["type"] in _LAST):
            await self._taken.park()
        if self._finished:
            return
        ends = event["type"] == "http.request" and not (event["body"] or event["more_body"])
        if ends and self._events and self._events[-1]["type"] == "http.request":
            self._events[-1]["more_body"] = False  # nobody has looked at it: most bodies arrive in one piece
            return
        self._events.append(event)
        self._added.unpark()
        if event["type"] == "websocket.receive" and len(event["text"] or event["bytes"] or ()) > LARGE:
            while any(waiting is event for waiting in self._events):
                await self._taken.park()

    async def receive(self) -> Any:
        """Take the next event, waiting for one."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self._events:
            await self._added.park()
        self._taken.unpark()
        return self._events.popleft()

    def finish(self) -> None:
        """Drop what is there and what comes."""
        self._finished = True
        self._events.clear()
        self._taken.unpark_all()


class Tasks(TaskGroup):
    """A connection's tasks: applications, and helpers (pings, delayed closes) that end with the connection."""

    def __init__(self) -> None:
        super().__init__()
        self._helpers: set[trio.CancelScope] = set()
        self._peer_gone = False
        self._told = 0

    async def spawn_app(
        self, app: AppWrapper, config: Config, scope: Any, send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[Any], Awaitable[None]]:
        """Start an application; return what tells it events."""
        queue = _ApplicationQueue(config.max_app_queue_size)

        async def tell(message: Any) -> None:
            if message is None or (message["type"] == "http.response.body" and not message.get("more_body", False)):
                queue.finish()
            elif self._peer_gone:
                # It has been told, or it never asks: whatever it sends now, it has nobody to work for.
                self._cancel()
            try:
                await send(message)
            except (UnexpectedMessageError, TypeError, ValueError):
                raise  # the application's mistake
            except Exception:  # the protocol's state forbids it because of what the peer sent: not worth a traceback
                log.debug("an answer cannot be sent any more", exc_info=True)
                self._cancel()
            self._told += 1
            if self._told % SENDS_PER_TURN == 0:
                # To a peer that is gone hypercorn's send returns at once: a loop of sends would never let others run.
                await trio.lowlevel.checkpoint()

        assert self._nursery is not None
        in_thread, from_thread = trio.to_thread.run_sync, trio.from_thread.run
        self._nursery.start_soon(_handle, app, config, scope, queue.receive, tell, in_thread, from_thread)
        return queue.put

    def spawn(self, func: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Start a helper."""
        super().spawn(self._help, func, args)

    async def _help(self, func: Callable[..., Awaitable[None]], args: tuple[Any, ...]) -> None:
        with trio.CancelScope() as scope:
            self._helpers.add(scope)
            await func(*args)

    def _cancel(self) -> None:
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def peer_gone(self) -> None:
        """End the helpers now and the application at its next attempt to send."""
        self._peer_gone = True
        for scope in self._helpers:
            scope.cancel()
