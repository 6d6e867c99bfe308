"""Servers that are configured and have no actor: what is shown of them, and what whoever asks for one is told."""

from __future__ import annotations

import trio

from actors.command_line import command
from actors.errors import ServerDisabled, ServerGaveUp
from actors.kit import Address
from actors.kit.directory import Directory
from actors.launch import launches_of, server_of
from actors.life.states import State
from actors.messages import ServerChanged, ServerStatus
from actors.registry.actor import Message as RegistryMessage
from actors.server import ServerMessage
from actors.transport.redaction import Mask
from supervisor.config.effective import RestingServer
from supervisor.fleet.errors import NodeAway
from supervisor.metatools.servers.availability import missing_values_error
from supervisor.servers.journals.journals import Journals

SWITCHED_OFF = "it is switched off in the configuration"
BY_OPERATOR = "it is switched off by its operator; to take that back: "


class Absences:
    """Reports to the registry what no actor does."""

    def __init__(
        self, registry: Address[RegistryMessage], directory: Directory[ServerMessage], journals: Journals
    ) -> None:
        self._registry = registry
        self._directory = directory
        self._journals = journals
        self.awaiting: set[str] = set()
        """Servers that run for those alone who have given values."""
        self.elsewhere: dict[str, str] = {}
        """What another node of the fleet runs, or will, and how it is reached."""

    async def report(self, resting: RestingServer) -> None:
        (self.awaiting.add if resting.awaits else self.awaiting.discard)(resting.name)
        if resting.disabled:
            await self.report_disabled(resting.name, resting.kind, resting.reason or SWITCHED_OFF)
        elif resting.awaits:
            await self.report_awaiting(resting)
        else:
            await self.report_failed(resting.name, resting.reason, resting.kind, aloud=False)

    async def report_failed(self, name: str, reason: str, kind: str = "stdio", *, aloud: bool = True) -> None:
        """Show a server that cannot run at all; in the daemon's log, too, if it is said `aloud`."""
        said = f"cannot run: {reason}"
        self._directory.explain(name, lambda: ServerGaveUp(f"server {name!r} {said}", server=name))
        self._journals.make(name, Mask({})).note(said, "warning", aloud=aloud)
        await self._show(name, kind, reason, disabled=False)

    async def report_disabled(self, name: str, kind: str, why: str = SWITCHED_OFF) -> None:
        """Show a server that is switched off: its name stays taken, and whoever asks for it is told why."""
        text = f"server {name!r} is not available: {why}"
        self._directory.explain(name, lambda: ServerDisabled(text, server=name))
        self._journals.make(name, Mask({})).note(why)
        await self._show(name, kind, why, disabled=True)

    async def report_switched_off(self, name: str, kind: str) -> None:
        """Show a launch that an operator has switched off."""
        await self.report_disabled(name, kind, BY_OPERATOR + command("enable", server_of(name)))

    async def switch_elsewhere(self, name: str, *, on: bool) -> None:
        """Show what other nodes of the fleet have of a server as switched on or off; nothing happens with any other."""
        for launch in launches_of(name, [*self.elsewhere]):
            await self.report_elsewhere(launch, self.elsewhere[launch], off=not on)

    async def report_elsewhere(self, name: str, kind: str, *, off: bool = False) -> None:
        """Show a server that another node of the fleet runs, or will, or would if it were not switched `off`."""
        self.elsewhere[name] = kind
        if off:
            await self.report_switched_off(name, kind)
            return
        text = f"server {name!r} does not run at this node of the fleet; give the order to the one that has it"
        self._directory.explain(name, lambda: NodeAway(text, server=name))
        since = trio.current_time()
        status = ServerStatus(server=name, state=State.DORMANT, wanted="dormant", since=since, transport=kind)
        await self._registry.tell(ServerChanged(status=status, previous=State.DORMANT))

    async def report_awaiting(self, resting: RestingServer) -> None:
        """Show a server that runs for those alone who have given values for it, or whose team has."""
        name, missing, why = resting.name, resting.awaits, resting.reason
        self._directory.explain(name, lambda: missing_values_error(name, missing, why))
        self._journals.make(name, Mask({})).note(why)
        await self._show(name, resting.kind, why, disabled=False, awaits=missing)

    async def _show(self, name: str, kind: str, reason: str, *, disabled: bool, awaits: tuple[str, ...] = ()) -> None:
        """Report how a server is doing that has no actor to say so."""
        rests = disabled or awaits
        state, previous = (State.STOPPED, State.STOPPED) if rests else (State.FAILED, State.DORMANT)
        status = ServerStatus(
            server=name,
            state=state,
            wanted="stopped",
            since=trio.current_time(),
            transport=kind,
            disabled=disabled,
            down=None if rests else "permanently_failed",
            last_error=None if disabled or awaits else reason,
            reason=reason,
            awaits=awaits,
        )
        await self._registry.tell(ServerChanged(status=status, previous=previous, reason=reason))
