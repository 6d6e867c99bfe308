"""What was ordered of a server (wake, restart, refresh, sleep, stop) and who waits for it. No I/O, no trio.

- `wake` waits for the server to be ready; `look` as well, but only until its first failure, to make room for others.
- `restart` waits for the fresh process to be ready, or for its first failure: whoever restarts it wants to see that.
- `refresh` waits for a reading of the lists that begins from now on; once it has begun, that is a `read`.
- `sleep` waits for the server to have no process, `stop` for it to be gone for good.

Of a server that leaves, its successor gets those who wait: a call belongs to whoever has sent it to a process, and what
has not been sent can be sent by the successor as well and keeps what is left of its time; an order that waits is given
to the successor, whose state is what counts from now on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from actors.errors import ServerError, SupervisorError
from actors.kit import Address, Ask, Reply
from actors.life.states import Life
from actors.messages import CallServer, Departure, Refreshed, RefreshServer, RestartServer, SleepServer, WakeServer
from actors.principal import LOCAL
from actors.server.calls.calls import Calls

Kind = Literal["wake", "look", "restart", "refresh", "read", "sleep", "stop"]
_ORDERS: dict[Kind, Callable[[str], Ask[Any]]] = {
    "wake": lambda server: WakeServer(server=server, principal=LOCAL),
    "look": lambda server: WakeServer(server=server, urgent=False, principal=LOCAL),
    "restart": lambda server: RestartServer(server=server, principal=LOCAL),
    "refresh": lambda server: RefreshServer(server=server, principal=LOCAL),
    "read": lambda server: RefreshServer(server=server, principal=LOCAL),
    "sleep": lambda server: SleepServer(server=server, principal=LOCAL),
}
"""What gives an order again to another server of that name."""


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


class Handover:
    """Passes on to its successor those who want something of a server that leaves.

    `departure` says how the server leaves; None as long as it does not."""

    def __init__(self, server: str, calls: Calls, orders: Orders) -> None:
        self.departure: Departure | None = None
        self._server = server
        self._calls = calls
        self._orders = orders

    @property
    def successor(self) -> Address[Any] | None:
        return None if self.departure is None else self.departure.successor

    def reason(self, otherwise: str) -> str:
        """Return why calls in flight are cut off, for their clients."""
        return otherwise if self.departure is None else self.departure.reason

    def begin(self, departure: Departure, now: float) -> None:
        self.departure = departure
        self.pass_on(now)

    def pass_on(self, now: float) -> bool:
        """Pass on everybody who waits; False if there is nobody to pass them on to."""
        successor = self.successor
        if successor is None:
            return False
        for call in self._calls.take_waiting():
            message: CallServer = call.message
            successor.forward(message.passed_on(call.deadline - now), call.reply)
        for kind, order in _ORDERS.items():
            for reply in self._orders.take(kind):
                successor.forward(order(self._server), reply)
        return True

    def pass_on_late(self, message: Ask[Any], reply: Reply[Any]) -> bool:
        """Pass on what came too late for this server; False as above."""
        if (successor := self.successor) is not None:
            successor.forward(message, reply)
        return successor is not None
