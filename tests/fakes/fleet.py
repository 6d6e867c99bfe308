"""Many servers of one supervisor over the memory transport, with the real `Servers`; no front, no store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trio

from actors.catalogue.offer import Offer
from actors.kit import Mailbox, Reply, Starts
from actors.life.states import State
from actors.messages import CallServer, ReadServer, Result, ServerChanged, ServerStatus
from actors.protocol.agreement.era import Identity
from supervisor.servers.children import Servers
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.reach import discover
from tests.fakes.deployments import server
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport


@dataclass
class Fleet:
    """The running servers. `ready_at`: when each was ready first, in seconds of the trio clock.

    `facts`: what the registry was told. `crashing`: names of those whose actor crashes as soon as it is made.
    """

    servers: Servers
    facts: list[Any] = field(default_factory=list)
    crashing: set[str] = field(default_factory=set)
    ready_at: dict[str, float] = field(default_factory=dict)

    async def call(self, server: str, **arguments: Any) -> Any:
        """Call the tool `echo` of a server."""
        address = self.servers.directory.find(server)
        assert address is not None
        members = b'"name":"echo","arguments":' + json.dumps(arguments).encode()
        result = await address.ask(CallServer(server=server, method="tools/call", members=members))
        return msgspec.json.decode(result.body)["structuredContent"]

    def submit(self, server: str, tool: str = "echo", deadline_s: float = 60.0, **arguments: Any) -> Reply[Result]:
        """Call a tool of a server, and return where its answer will be."""
        address = self.servers.directory.find(server)
        if address is None:
            raise self.servers.directory.why_not(server)
        members = b'"name":' + json.dumps(tool).encode() + b',"arguments":' + json.dumps(arguments).encode()
        message = CallServer(server=server, method="tools/call", members=members, name=tool, deadline_s=deadline_s)
        return address.request(message)

    def told(self, server: str) -> list[tuple[State, bool]]:
        """The states that the registry was told of a server, and whether it is switched off."""
        changes = [fact.status for fact in self.facts if isinstance(fact, ServerChanged)]
        return [(status.state, status.disabled) for status in changes if status.server == server]

    async def status(self, server: str) -> ServerStatus:
        """Ask a server how it is doing."""
        address = self.servers.directory.find(server)
        assert address is not None
        return await address.ask(ReadServer())


@asynccontextmanager
async def fleet(
    fakes: Mapping[str, FakeServer],
    *,
    known: Mapping[str, Offer] | None = None,
    starts: Starts | None = None,
    commands: Mapping[str, str] | None = None,
    later: Collection[str] = (),
    **settings: Any,
) -> AsyncIterator[Fleet]:
    """Run servers; those that are neither `known` nor for `later` are discovered in the background.

    `commands`: their command lines.
    """
    known = known or {}
    box: Mailbox[Any] = Mailbox(4096)

    def connect(wanted: DeployedServer) -> MemoryTransport:
        if wanted.name in running.crashing:
            raise ZeroDivisionError("a bug")
        return MemoryTransport(fakes[wanted.name].serve)

    servers = Servers(
        box.address,
        connect,
        Identity(),
        lambda: 0.0,
        starts or Starts(),
    )
    running = Fleet(servers)

    async def collect() -> None:
        while True:
            fact = (await box.receive()).message
            running.facts.append(fact)
            if isinstance(fact, ServerChanged) and fact.status.state is State.READY:
                running.ready_at.setdefault(fact.status.server, trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect)
        await nursery.start(servers.run)
        for name in fakes:
            command, *args = (commands or {}).get(name, "server").split()
            deployed = server(name, command=command, args=tuple(args), **settings)
            await servers.add(deployed, known.get(name), "legacy" if name in known else None)
        nursery.start_soon(
            discover, servers.directory, [name for name in fakes if name not in known and name not in later]
        )
        yield running
        nursery.cancel_scope.cancel()
