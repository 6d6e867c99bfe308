"""How the servers of a deployment are reached, how many of them may be begun at once, and how they are first."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from actors.errors import ActorStopped, ShuttingDown, SupervisorError
from actors.kit import Address, Starts
from actors.kit.directory import Directory
from actors.launch import server_of
from actors.life.states import State
from actors.messages import CloseBreakers, ReadServer, RestartServer, WakeServer
from actors.principal import LOCAL
from actors.server import ServerMessage
from actors.transport.base import Transport
from actors.transport.stdio.containment import Containment
from actors.transport.stdio.process import ProcessTransport
from supervisor.config import Settings
from supervisor.servers.deployment import DeployedServer

if TYPE_CHECKING:  # the HTTP client is imported where there are remote servers
    from actors.transport.http.authorization import Authorizer

log = logging.getLogger(__name__)


def starts_of(settings: Settings) -> Starts:
    return Starts(
        settings.cold_starts,
        installs=settings.max_installs,
        per_s=settings.starts_per_s,
        slot_s=settings.spawn_slot_s,
    )


def reached_of(settings: Settings) -> Starts:
    """Return how many remote servers may be connected to at once: no process starts here, so there is no rate."""
    return Starts(settings.cold_connects, per_s=1000.0, slot_s=settings.spawn_slot_s)


def transport_of(containment: Containment, authorizer: Authorizer | None, server: DeployedServer) -> Transport:
    """Return how a server is reached; `authorizer` has the tokens for it, if there can be any."""
    kind, remote = server.config.kind, server.remote
    if server.replica:
        remote = replace(remote, url=server.replica)
    if kind == "http" or kind == "sse":  # what that needs takes a seventh of a second; see `preload`
        from actors.transport.http.transport import HttpTransport

        return HttpTransport(remote, server.remote_limits, kind, authorizer)
    if kind == "websocket":
        from actors.transport.websocket import WebSocketTransport

        return WebSocketTransport(remote, server.remote_limits)
    return ProcessTransport(server.launch, server.limits, containment=containment, name=server.name)


async def close_breakers(directory: Directory[ServerMessage], servers: Iterable[str]) -> None:
    """Have servers whose configuration has changed, but whose actors are the same, be called again, in all launches."""
    names = frozenset(servers)
    for launch in directory.names() if names else ():
        if server_of(launch) in names and (address := directory.find(launch)) is not None:
            with suppress(ActorStopped):
                await address.tell(CloseBreakers())


async def try_again(directory: Directory[ServerMessage], name: str) -> None:
    """Try a server again at which its operator has logged in; one that is ready goes on."""
    address = directory.find(name)
    if address is None:
        return
    try:
        status = await address.ask(ReadServer())
        if status.state is not State.READY or status.requires_reauth or status.breakers:
            await address.ask(RestartServer(server=name, principal=LOCAL))
    except SupervisorError as error:
        log.debug("%s did not come up after its login: %s", name, error.message)  # its own lines say why


async def discover(directory: Directory[ServerMessage], names: Iterable[str]) -> None:
    """Wake servers whose tools are not known, or that never sleep; those that fail are left to their policy.

    They start in the order given, as there is room: each has its place in the line before the next one is asked. Nobody
    waits for the handshake of another one.
    """
    async with trio.open_nursery() as nursery:
        for name in names:
            if (address := directory.find(name)) is not None:
                await nursery.start(_discover, name, address)


async def _discover(name: str, address: Address[ServerMessage], *, task_status: trio.TaskStatus[None]) -> None:
    """Wake a server, and see how it comes up. Started once it has taken the order."""
    try:
        woken = address.request(WakeServer(server=name, urgent=False, principal=LOCAL))
        await address.ask(ReadServer())
        task_status.started()
        task_status = trio.TASK_STATUS_IGNORED
        await woken.wait()
    except ShuttingDown:
        pass
    except SupervisorError as error:
        log.debug("%s was not discovered: %s", name, error.message)  # its own lines say why
    task_status.started()
