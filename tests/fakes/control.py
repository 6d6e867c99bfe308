"""A `Control` that starts and stops nothing, and a `Configurator` whose file never changes."""

from __future__ import annotations

import trio

from actors.errors import SupervisorError, UnknownServer
from actors.kit import Latest
from actors.messages import Refreshed
from actors.principal import Principal
from supervisor.servers.orders import Done, Order
from supervisor.servers.reloading.difference import Difference
from supervisor.servers.reloading.port import ConfigurationFile, Reloaded


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


class Configured:
    """A configurator whose file never changes."""

    source = Latest(ConfigurationFile(path="mcp.json", loaded_at=0.0))

    async def reload(self) -> Reloaded:
        """Change nothing."""
        await trio.lowlevel.checkpoint()
        return Reloaded(outcome="unchanged", message="nothing has changed", changes=Difference())

    async def plan(self, path: str = "") -> Reloaded:
        """Plan nothing."""
        del path
        return await self.reload()
