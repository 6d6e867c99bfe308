"""A `Control` that starts and stops nothing, a `Reload` whose file never changes, and `Launches` that nobody has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import trio

from actors.errors import SupervisorError, UnknownServer
from actors.kit import Latest
from actors.messages import Refreshed
from actors.principal import Principal
from supervisor.servers.control import Done, Order
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


class NoLaunches:
    """Launches of which all are shared."""

    def people_of(self, launch: str) -> list[str]:
        del launch
        return []

    def count_of(self, server: str) -> int:
        del server
        return 0

    def mask_of(self, launch: str) -> Callable[[str], str]:
        del launch
        return str


class Configured:
    """A configurator whose file never changes, and an editor that only notes what is wanted."""

    def __init__(self) -> None:
        self.source = Latest(ConfigurationFile(path="mcp.json", loaded_at=0.0))
        self.edits: list[tuple[Any, ...]] = []

    async def reload(self) -> Reloaded:
        """Change nothing."""
        await trio.lowlevel.checkpoint()
        return Reloaded(outcome="unchanged", message="nothing has changed", changes=Difference())

    async def plan(self, path: str = "") -> Reloaded:
        """Plan nothing."""
        del path
        return await self.reload()

    async def add(self, name: str, entry: Mapping[str, Any], *, ephemeral: bool = False) -> Reloaded:
        """Note what is added."""
        self.edits.append(("add", name, dict(entry), ephemeral))
        return await self.reload()

    async def change(self, name: str, patch: Mapping[str, Any]) -> Reloaded:
        """Note what is changed."""
        self.edits.append(("change", name, dict(patch)))
        return await self.reload()

    async def remove(self, name: str) -> Reloaded:
        """Note what is removed."""
        self.edits.append(("remove", name))
        return await self.reload()
