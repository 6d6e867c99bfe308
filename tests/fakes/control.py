"""A `Control` that starts and stops nothing."""

from __future__ import annotations

import trio

from actors.errors import SupervisorError, UnknownServer
from actors.messages import Refreshed
from actors.principal import Principal
from supervisor.servers.orders import Done, Order


class Obeys:
    """A control that knows one server and does what it is told to."""

    def __init__(self, error: SupervisorError | None = None, *, hangs: bool = False) -> None:
        self.orders: list[tuple[str, Order]] = []
        self._error = error
        self._hangs = hangs

    def check(self, server: str) -> None:
        if server not in ("a", "a b.c"):
            raise UnknownServer(f"there is no server {server!r}", details={"nearest": ["a"]})

    async def order(self, server: str, order: Order, principal: Principal) -> Done:
        await trio.lowlevel.checkpoint()
        self.orders.append((server, order))
        if self._hangs:
            await trio.sleep_forever()
        if self._error is not None:
            raise self._error
        refreshed = Refreshed(tools=2, added=("x",)) if order == "refresh" else None
        return Done(message=f"{order} done", found=refreshed)
