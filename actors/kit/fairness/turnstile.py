"""Who may go on now, where more arrives than can be done: so many in each pass of the loop, and clients in turns.

The loop of trio runs whatever can run once in each of its passes, and a request takes half a dozen of them. So four
hundred requests of one client that are read together make the one request of another client wait for half a dozen times
four hundred. Here `PER_PASS` go on in a pass; where more arrive, one of each person goes on in turn, and of theirs one
of each of their clients, whose names they choose themselves. Nothing is refused here: whoever waits has not been read,
so its client is held up, and cannot send more.

Where nobody waits it costs a few attribute reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

import trio

from actors.kit.fairness.share import pass_counter

PER_PASS: Final = 2
Who = tuple[Hashable, Hashable]
"""A person, or the address that somebody comes from, and which of their clients it is."""


class Turnstile:
    """The turnstile of one daemon. `run` has to run as long as it is used; until then nobody waits."""

    def __init__(self, per_pass: int = PER_PASS) -> None:
        self._per_pass = per_pass
        self._count: Callable[[], int] | None = None
        self._pass = self._gone_on = 0
        self._queues: dict[Hashable, dict[Hashable, deque[trio.Event]]] = {}  # the first one has its turn
        self._arrived = trio.lowlevel.ParkingLot()

    async def run(self) -> None:
        """Let those go on who wait, until it is cancelled."""
        self._count = pass_counter()
        try:
            while True:
                while not self._queues:
                    await self._arrived.park()
                while self._queues and self._has_room():
                    self._call_next()
                await trio.lowlevel.checkpoint()
        finally:
            self._count = None
            while self._queues:
                self._call_next()

    async def enter(self, who: Who) -> None:
        """Return when something of somebody may go on. A checkpoint only if it waits."""
        if not self._queues and self._has_room():
            return
        person, client = who
        clients = self._queues.get(person)
        if clients is None:
            clients = self._queues[person] = {}
            self._arrived.unpark()
        queue = clients.setdefault(client, deque())
        turn = trio.Event()
        queue.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if not turn.is_set():
                queue.remove(turn)
                if not queue:
                    del clients[client]
                if not clients:
                    del self._queues[person]
            raise

    def _has_room(self) -> bool:
        """Say whether one more may go on in this pass, and count it if so."""
        if self._count is None:
            return True
        if (number := self._count()) != self._pass:
            self._pass, self._gone_on = number, 0
        if self._gone_on >= self._per_pass:
            return False
        self._gone_on += 1
        return True

    def _call_next(self) -> None:
        """Let the oldest one of the client go on whose turn it is, who then is the last, as whose client it is."""
        person, clients = next(iter(self._queues.items()))
        client, queue = next(iter(clients.items()))
        del self._queues[person], clients[client]
        queue.popleft().set()
        if queue:
            clients[client] = queue
        if clients:
            self._queues[person] = clients
