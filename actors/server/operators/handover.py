"""What becomes of those who want something of a server that leaves: they are passed on to its successor. No I/O.

A call belongs to whoever has sent it to a process. What has not been sent can be sent by the successor as well, and
keeps what is left of its time; an order that waits is given to the successor, whose state is what counts from now on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from actors.kit import Address, Ask, Reply
from actors.messages import CallServer, Departure, RefreshServer, RestartServer, SleepServer, WakeServer
from actors.principal import LOCAL
from actors.server.calls.calls import Calls
from actors.server.operators.orders import Kind, Orders

_ORDERS: dict[Kind, Callable[[str], Ask[Any]]] = {
    "wake": lambda server: WakeServer(server=server, principal=LOCAL),
    "look": lambda server: WakeServer(server=server, urgent=False, principal=LOCAL),
    "restart": lambda server: RestartServer(server=server, principal=LOCAL),
    "refresh": lambda server: RefreshServer(server=server, principal=LOCAL),
    "read": lambda server: RefreshServer(server=server, principal=LOCAL),
    "sleep": lambda server: SleepServer(server=server, principal=LOCAL),
}
"""What gives an order again to another server of that name."""


class Handover:
    """`departure` says how the server leaves; None as long as it does not."""

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
            successor.forward(replace(message, deadline_s=max(0.0, call.deadline - now)), call.reply)
        for kind, order in _ORDERS.items():
            for reply in self._orders.take(kind):
                successor.forward(order(self._server), reply)
        return True

    def pass_on_late(self, message: Ask[Any], reply: Reply[Any]) -> bool:
        """Pass on what came too late for this server; False as above."""
        if (successor := self.successor) is not None:
            successor.forward(message, reply)
        return successor is not None
