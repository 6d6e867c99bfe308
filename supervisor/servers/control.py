"""Carries out what an operator orders of servers, and says in a sentence what was done or why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import trio
from msgspec.structs import replace

from actors.command_line import command
from actors.errors import InvalidArguments, ServerDisabled, UnknownServer
from actors.kit import Address, Latest
from actors.launch import is_own, server_of
from actors.life.states import State
from actors.messages import Refreshed, RefreshServer, RestartServer, SleepServer, WakeServer
from actors.principal import Principal
from actors.registry.actor import Registry
from actors.registry_inbox import AwaitShown
from actors.router import Message as RouterMessage
from supervisor.config import ServerConfig
from supervisor.config.keys import nearest_names
from supervisor.servers.children import Servers
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.running import Launches
from supervisor.store import Store
from supervisor.store.records import SwitchedOff

Order = Literal["restart", "wake", "sleep", "refresh", "enable", "disable"]
"""What may be ordered of a server."""


class Done(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An order that was carried out. `message` is a sentence for people; `found` is what a refresh found."""

    message: str
    found: Refreshed | None = None


SHOWN_S = 10.0
"""How long an order waits at the most until its effect can be seen."""
LATER = "; searches see that a little later: the daemon still indexes what it knows, or is short of resources"
MAX_NAMES = 5


class Control:
    """Carries out orders. Names are resolved exactly; an error names the nearest."""

    def __init__(
        self,
        deployment: Latest[Deployment],
        servers: Servers,
        router: Address[RouterMessage],
        registry: Registry,
        store: Store,
        launches: Launches,
        switched: Callable[[str, bool], None] | None = None,
    ) -> None:
        """`switched` is called when an operator has switched a server on or off."""
        self._deployment = deployment
        self._servers = servers
        self._router = router
        self._registry = registry
        self._store = store
        self._launches = launches
        self._switched = switched or (lambda server, on: None)

    async def switch(self, server: str, *, on: bool) -> None:
        """Switch a server as it was ordered at another node of the fleet, if there is one of that name here."""
        if server in self._deployment.value.server_names:
            self._keep(server, on=on)
            await (self._servers.enable(server) if on else self._servers.disable(server))

    def check(self, server: str) -> None:
        """Raise `UnknownServer` with the nearest names if no server of exactly this name is configured."""
        deployment = self._deployment.value
        if server in deployment.server_names or self._is_launch(server):
            return
        slugs = [name for name, config in deployment.entries.items() if config.name == server]
        nearest = slugs or nearest_names(server, deployment.server_names)
        hint = f"did you mean {', '.join(nearest)}?" if nearest else "mcpvisor status lists them"
        raise UnknownServer(f"there is no server {server[:100]!r}; {hint}", details={"nearest": nearest})

    def _is_launch(self, name: str) -> bool:
        return name in self._registry.statuses.value or self._registry.offer(name) is not None

    async def order(self, server: str, order: Order, principal: Principal) -> Done:
        """Carry out an order of `principal`; return when searches and calls see its effect. A checkpoint.

        Cancelling it takes nothing back. Raises `UnknownServer`, `ServerDisabled`, `ServerError` with why the server
        does not do it, `MailboxFull` and `ShuttingDown`.
        """
        done = await self._carried_out(server, order, principal)
        return done if await self._shown(server) else replace(done, message=done.message + LATER)

    async def _carried_out(self, server: str, order: Order, principal: Principal) -> Done:
        self.check(server)
        config = self._deployment.value.entries.get(server)
        if is_own(server) and order in ("disable", "enable"):
            text = f"{server} is one launch of {server_of(server)}: {order} that, which is about all of them"
            raise InvalidArguments(text)
        if config is not None and config.disabled:
            return self._configured_off(config, order)
        match order:
            case "restart":
                await self._router.ask(RestartServer(server=server, principal=principal))
                return Done(message=f"{server} is restarted and ready{await self._tools(server)}")
            case "wake":
                return await self._wake(server, principal)
            case "sleep":
                return await self._sleep(server, principal)
            case "refresh":
                refreshed = await self._router.ask(RefreshServer(server=server, principal=principal))
                return Done(message=f"{server}: {sentence_of(refreshed)}", found=refreshed)
            case "disable":
                return await self._disable(server)
            case "enable":
                return await self._enable(server, principal)

    def _configured_off(self, config: ServerConfig, order: Order) -> Done:
        name = config.path_name
        if order == "disable":
            return Done(message=f"{name} is already switched off, in the configuration")
        resting = next((each for each in self._deployment.value.resting if each.name == name), None)
        if resting is not None and resting.reason:
            raise ServerDisabled(f"{name} is not available: {resting.reason}", server=name)
        raise ServerDisabled(
            f'{name} is switched off in the configuration: remove "disabled" from the entry {config.name!r} in '
            f"{self._deployment.value.path}",
            server=name,
        )

    async def _wake(self, server: str, principal: Principal) -> Done:
        ready = self._state(server) is State.READY
        await self._router.ask(WakeServer(server=server, operator=True, principal=principal))
        return Done(message=f"{server} {'was ready already' if ready else 'is ready'}{await self._tools(server)}")

    async def _sleep(self, server: str, principal: Principal) -> Done:
        before = self._state(server)
        await self._router.ask(SleepServer(server=server, principal=principal))
        if before in (State.DORMANT, State.FAILED):
            return Done(message=f"{server} has no process, it is {before.value}")
        return Done(message=f"{server} is asleep; a call wakes it again")

    async def _disable(self, server: str) -> Done:
        off = self._servers.disabled(server)
        # Before the wait: whoever gives up waiting meant it all the same.
        self._keep(server, on=False)
        self._switched(server, False)
        await self._launches.call_up_all(server)
        await self._servers.disable(server)
        if off:
            return Done(message=f"{server} was switched off already; to take it back: {command('enable', server)}")
        return Done(
            message=f"{server} is switched off: its tools are hidden and no call starts it, also after a restart of "
            f"the daemon; to take it back: {command('enable', server)}"
        )

    async def _enable(self, server: str, principal: Principal) -> Done:
        off = self._servers.disabled(server)
        self._keep(server, on=True)
        self._switched(server, True)
        await self._servers.enable(server)
        unknown = self._registry.offer(server) is None  # it was off when the daemon started, or never came up
        if unknown and server not in self._servers.absences.awaiting:
            refreshed = await self._router.ask(RefreshServer(server=server, principal=principal))
            return Done(message=f"{server} is switched on: {sentence_of(refreshed)}", found=refreshed)
        if off and self._deployment.value.runs_always(server):
            await self._router.ask(WakeServer(server=server, operator=True, principal=principal))
            return Done(message=f"{server} is switched on, and ready")
        return Done(message=f"{server} is switched on; a call wakes it" if off else f"{server} was not switched off")

    def _keep(self, server: str, *, on: bool) -> None:
        if on:
            self._store.switched_off.forget(server)
        else:
            self._store.switched_off.put(SwitchedOff(server))

    def _state(self, server: str) -> State | None:
        status = self._registry.statuses.value.get(server)
        return status.state if status is not None else None

    async def _shown(self, server: str) -> bool:
        """Wait until everybody sees what the registry was told of a server, as we were; return whether they do."""
        with trio.move_on_after(SHOWN_S):
            await self._registry.address.ask_in_turn(AwaitShown(server=server))
            return True
        return False

    async def _tools(self, server: str) -> str:
        await self._shown(server)
        entry = self._registry.catalogue.value.entries.get(server)
        return f", {len(entry.tools)} tools" if entry is not None else ""


def sentence_of(refreshed: Refreshed) -> str:
    """Return what a reading of the lists found as a sentence."""
    kinds = ((refreshed.tools, "tools"), (refreshed.resources, "resources"), (refreshed.prompts, "prompts"))
    totals = ", ".join(f"{count} {kind}" for count, kind in kinds if count) or "nothing"
    moves = tuple(f"{old} -> {new}" for old, new in refreshed.renamed.items())
    came = tuple(name for name in refreshed.added if name not in refreshed.renamed.values())
    went = tuple(name for name in refreshed.removed if name not in refreshed.renamed)
    words = (("new", came), ("gone", went), ("changed", refreshed.changed), ("renamed", moves))
    changes = "; ".join(f"{len(names)} {word}: {_some(names)}" for word, names in words if names)
    said = f"it lists {totals}; {changes or 'its tools are the same as before'}"
    return f"{said}; {len(refreshed.problems)} problems, see mcpvisor status" if refreshed.problems else said


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")


async def switched_off(store: Store, deployed: Deployment) -> frozenset[str]:
    """Return the configured servers that an operator has switched off; what is kept of others is dropped."""
    off = {row.name for row in await store.switched_off.load()}
    for name in off - deployed.entries.keys():
        store.switched_off.forget(name)
    return frozenset(off & deployed.entries.keys())
