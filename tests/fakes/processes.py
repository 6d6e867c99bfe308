"""One launch with several processes or addresses over the memory transport, run by the real `Servers`: no front."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from actors.catalogue.trust import TRUSTING, PinKeeper
from actors.kit import Address, Mailbox, Reply, Starts
from actors.life.states import State
from actors.messages import Caller, CallServer, ReadServer, Result, ServerChanged, ServerStatus, WakeServer
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Identity
from actors.protocol.exchanges import Interest
from actors.server import ServerMessage
from supervisor.servers.children import Servers
from supervisor.servers.deployment import DeployedServer
from tests.fakes.deployments import server
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryPeer, MemoryTransport

TOOLS = ("echo", "sleep", "ask", "who", "crash", "rounds")


class Process(FakeServer):
    """One process, which says of itself who it is (`who`), and asks by its results (`rounds`). `scope` ends it."""

    def __init__(self, number: int, replica: str, **members: Any) -> None:
        super().__init__(**{"tools": [tool(name) for name in TOOLS], **members})
        self.number = number
        self.replica = replica
        self.scope = trio.CancelScope()

    async def _call(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        params = message["params"]
        if params["name"] == "who":
            await trio.sleep(params.get("arguments", {}).get("s", 0))
            result: dict[str, Any] = {"content": [], "structuredContent": {"who": self.number}}
        elif params["name"] == "rounds" and "inputResponses" not in params:
            asked = {"q": {"method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": {}}}}
            result = {"resultType": "input_required", "inputRequests": asked, "requestState": f"of {self.number}"}
        elif params["name"] == "rounds":
            state = params.get("requestState")
            result = {"content": [], "structuredContent": {"who": self.number, "state": state}}
        else:
            await super()._call(peer, message)
            return
        await self._send(peer, {"id": message["id"], "result": result})

    @property
    def calls(self) -> int:
        return self.count("tools/call")


class Remote(MemoryTransport):
    """As if the server were behind an address."""

    kind = "http"


class Crowd:
    """The launch `a`. `made` are its processes in the order of their starts, `facts` what the registry was told.

    `refuse` says of an address, or of a process by the number it would have, whether nobody is there.
    """

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self.made: list[Process] = []
        self.facts: list[Any] = []
        self.refuse: Callable[[str], bool] = lambda replica: False
        self.members: dict[str, Any] = {}

    @property
    def alive(self) -> list[Process]:
        return [each for each in self.made if not each.exits]

    @property
    def address(self) -> Address[ServerMessage]:
        address = self.servers.directory.find("a")
        assert address is not None
        return address

    async def serve(self, replica: str, peer: MemoryPeer) -> int:
        if self.refuse(replica):
            return 1
        process = Process(len(self.made) + 1, replica, **self.members)
        self.made.append(process)
        with process.scope:
            return await process.serve(peer)
        return 137

    def submit(
        self, name: str, arguments: dict[str, Any] | None = None, caller: Caller | None = None, **more: Any
    ) -> Reply[Result]:
        members = b'"name":%b,"arguments":%b' % (json.dumps(name).encode(), json.dumps(arguments or {}).encode())
        asked = {"exchange": caller, "interest": Interest(capabilities=OF_CLIENTS)} if caller is not None else {}
        message = CallServer(server="a", method="tools/call", members=members, name=name, **{**asked, **more})
        return self.address.request(message)

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> Any:
        """Return what a tool answers."""
        result = await self.submit(name, arguments, **more).wait()
        decoded = msgspec.json.decode(result.body)
        return decoded.get("structuredContent", decoded)

    async def who(self, **arguments: Any) -> int:
        """Return which process answers."""
        answer = await self.call("who", arguments)
        number: int = answer["who"]
        return number

    async def busy(self, count: int, seconds: float = 1.0) -> None:
        """Have so many calls at once, so that as many instances are up as can be."""
        replies = [self.submit("who", {"s": seconds}) for _ in range(count)]
        for reply in replies:
            await reply.wait()

    async def wake(self) -> None:
        await self.address.ask(WakeServer(server="a"))

    async def status(self) -> ServerStatus:
        return await self.address.ask(ReadServer())

    async def states(self) -> list[str]:
        return [each.state.value for each in (await self.status()).instances]

    async def reach(self, *states: str) -> None:
        """Wait until the instances are in these states."""
        while await self.states() != list(states):  # noqa: ASYNC110 - the clock is a virtual one
            await trio.sleep(0.1)

    def told(self, kind: type[Any]) -> list[Any]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    @property
    def whole_states(self) -> list[State]:
        """The states of the launch as one, in their order."""
        changes = [f for f in self.told(ServerChanged) if f.status.state is not f.previous]
        return [change.status.state for change in changes]

    async def resize(self, deployed: DeployedServer, drain_s: float = 30.0) -> None:
        await self.servers.resize(deployed, drain_s)


@asynccontextmanager
async def crowd(
    deployed: DeployedServer | None = None,
    *,
    keeper: PinKeeper = TRUSTING,
    members: dict[str, Any] | None = None,
    refuse: Callable[[str], bool] = lambda replica: False,
) -> AsyncIterator[Crowd]:
    """Run a launch, which is woken; `members` are those of each process."""
    wanted = deployed or local(3)
    box: Mailbox[Any] = Mailbox(4096)

    def connect(made: DeployedServer) -> MemoryTransport:
        kind = MemoryTransport if made.config.kind == "stdio" else Remote
        return kind(lambda peer: running.serve(made.replica, peer))

    servers = Servers(box.address, connect, Identity(), lambda: 0.0, Starts(per_s=1000.0), keeper=keeper)
    running = Crowd(servers)
    running.members, running.refuse = members or {}, refuse

    async def collect() -> None:
        while True:
            running.facts.append((await box.receive()).message)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect)
        await nursery.start(servers.run)
        await servers.add(wanted, None, None)
        await running.wake()
        yield running
        nursery.cancel_scope.cancel()


def local(instances: Any, **members: Any) -> DeployedServer:
    return server("a", command="server", instances=instances, **members)


def remote(*replicas: str, **members: Any) -> DeployedServer:
    return server("a", kind="http", url="http://one/mcp", replicas=replicas, **members)
