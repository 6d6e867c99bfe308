"""A gateway before fake servers that publish given tools and hold every call against the tool's own schema."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import jsonschema
import referencing
import trio
from jsonschema.validators import validator_for
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.names import ServerNames
from actors.catalogue.offer import Offer
from actors.catalogue.tool_rules import ToolRules
from actors.kit import Latest, Starts
from actors.kit.directory import Directory
from actors.kit.reporter import Reporter
from actors.life.policy import RestartLog, RestartPolicy
from actors.life.states import Down, State
from actors.messages import EraLearned, ServerChanged, ServerStatus, SleepServer, StopServer, WakeServer
from actors.protocol.agreement.era import Identity
from actors.protocol.agreement.versions import Era
from actors.registry.actor import Registry
from actors.router import Router
from actors.server import Profile, ServerActor, ServerMessage, ServerSettings, Shared
from actors.server.operators.journal import Journal
from actors.subscribers import Subscribers
from supervisor.config import Configuration, ServerConfig, Settings
from supervisor.servers.deployment import Deployment, deploy
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls.meta_calls import Ahead
from supervisor.service.client import Client
from supervisor.service.doors.addresses import DoorTable
from supervisor.service.gateway import Gateway, ServiceParts
from supervisor.service.port import answer
from supervisor.usage.records import Used
from tests.fakes.deployments import KEY
from tests.fakes.exchanges import exchange
from tests.fakes.lines import Lines, line
from tests.fakes.memory import MemoryPeer, MemoryTransport
from tests.fakes.turns import at_once

CLIENT = Client(version="2025-11-25")


def validator(schema: Any) -> Any:
    """Return what holds values against a schema, by the metaschema it names, without any network."""
    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    return kind(schema, registry=referencing.Registry())


@dataclass
class Publisher:
    """A legacy server. `called` is each call it got: the tool's name and its arguments, before it fills in defaults."""

    tools: Sequence[Mapping[str, Any]]
    called: list[tuple[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    async def serve(self, peer: MemoryPeer) -> int:
        lines = Lines(peer)
        while (arrived := await lines.read()) is not None:
            for message in map(json.loads, arrived):
                if "id" in message:
                    body = self.answer(message["method"], message.get("params", {}))
                    await peer.write(line(id=message["id"], **body))
        return 0

    def answer(self, method: str, params: Any) -> dict[str, Any]:
        match method:
            case "initialize":
                capabilities: dict[str, Any] = {"tools": {}, "resources": {}}
                info = {"name": "publisher", "version": "1"}
                return {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}}
            case "tools/list":
                return {"result": {"tools": self.tools}}
            case "resources/list":
                return {"result": {"resources": [{"uri": "file:///readme.md", "name": "readme"}]}}
            case "resources/templates/list":
                return {"result": {"resourceTemplates": []}}
            case "resources/read":
                return {"result": {"contents": [{"uri": params["uri"], "text": "hello"}]}}
            case "tools/call":
                return {"result": self.call(params["name"], params["arguments"])}
        return {"error": {"code": -32601, "message": "unknown method"}}

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        self.called.append((name, arguments))
        schema = next(tool["inputSchema"] for tool in self.tools if tool["name"] == name)
        said = {key: value for key, value in schema.get("properties", {}).items() if isinstance(value, dict)}
        defaults = {key: value["default"] for key, value in said.items() if "default" in value}
        mistakes = [error.message for error in validator(schema).iter_errors({**defaults, **arguments})]
        self.wrong += [f"{name}: {message}" for message in mistakes]
        return {"content": [{"type": "text", "text": "; ".join(mistakes) or "done"}], "isError": bool(mistakes)}


class Nothing:
    """Keeps nothing."""

    def save_offer(self, server: str, offer: Offer) -> None:
        del server, offer

    def forget(self, server: str) -> None:
        del server

    def save_era(self, server: str, fact: EraLearned) -> None:
        del server, fact


async def uncounted(offer: Offer) -> tuple[dict[str, int], bool]:
    await trio.lowlevel.checkpoint()
    return {tool.name: 1 for tool in offer.tools}, True


@dataclass
class Published:
    """The gateway and the servers behind it."""

    gateway: Gateway
    servers: Mapping[str, Publisher]

    async def answer(self, params: Any) -> Any:
        """Send `tools/call` with these params and return the JSON-RPC answer."""
        asked = exchange(CLIENT, "tools/call", json.dumps(params).encode())
        return json.loads((await answer(self.gateway, asked)).body)

    async def discover(self, query: str, **more: Any) -> Any:
        """Return what `discover_mcp_tools` answers, read from the text that a model sees."""
        answer = await self.answer({"name": "discover_mcp_tools", "arguments": {"query": query, **more}})
        return json.loads(answer["result"]["content"][0]["text"])

    async def execute(self, path: str, arguments: Any) -> Any:
        return await self.answer({"name": "execute_mcp_tool", "arguments": {"tool_path": path, "arguments": arguments}})

    def take_calls(self) -> list[tuple[str, str, Any]]:
        """Return the calls that arrived since the last time: server, tool, arguments."""
        calls = [(name, *call) for name, server in self.servers.items() for call in server.called]
        for server in self.servers.values():
            server.called.clear()
        return calls


@asynccontextmanager
async def published(
    settings: Settings | None = None, /, **tools: Sequence[Mapping[str, Any]]
) -> AsyncIterator[Published]:
    """Run a gateway before one server for each name, ready for calls; `_` in a name stands for `-`."""
    servers = {name.replace("_", "-"): Publisher(offered) for name, offered in tools.items()}
    async with served(servers, settings) as running:
        yield Published(running.gateway, servers)


@dataclass
class Served:
    """A gateway before running servers, some of which were never started so far; and its doors."""

    gateway: Gateway
    registry: Registry
    router: Router
    actors: dict[str, ServerActor]
    doors: DoorTable = field(init=False)

    def __post_init__(self) -> None:
        self.doors = DoorTable(self.gateway, "1.0")

    async def ask(self, method: str, client: Client = CLIENT, door: str = "", **params: Any) -> Any:
        """Send one request and return the JSON-RPC answer."""
        return await self.answer(exchange(client, method, json.dumps(params).encode()), door)

    async def result(self, method: str, client: Client = CLIENT, door: str = "", **params: Any) -> Any:
        return (await self.ask(method, client, door, **params))["result"]

    async def answer(self, asked: Exchange, door: str = "") -> Any:
        """Have a door answer a request; return the JSON-RPC answer."""
        return json.loads((await answer(self.doors.find(door).service, asked)).body)

    async def sleep(self, *servers: str) -> None:
        """Send servers to sleep, and wait until everybody can see that."""
        for server in servers:
            await self.router.address.ask(SleepServer(server=server))
        statuses = self.registry.statuses
        while any(statuses.value[server].state is not State.DORMANT for server in servers):
            await statuses.wait_newer(statuses.version)

    async def execute(self, path: str, arguments: Any = None, **beside: Any) -> Any:
        given = {"tool_path": path, "arguments": arguments or {}, **beside}
        return await self.ask("tools/call", name="execute_mcp_tool", arguments=given)

    async def discover(self, query: str) -> Any:
        """Return what `discover_mcp_tools` answers, read from the text that a model sees."""
        answer = await self.ask("tools/call", name="discover_mcp_tools", arguments={"query": query})
        return json.loads(answer["result"]["content"][0]["text"])

    def report(self, server: str, state: State, **more: Any) -> None:
        """Say how a server without an actor is doing, as the daemon does of those it cannot run."""
        down: Down | None = "permanently_failed" if state is State.FAILED else None
        status = ServerStatus(server=server, state=state, wanted="stopped", since=0.0, down=down, **more)
        self.registry.address.tell_nowait(ServerChanged(status=status, previous=State.DORMANT))


class Server(Protocol):
    """The side of a server in the memory transport."""

    async def serve(self, peer: MemoryPeer) -> int:
        """Live until the input ends; return the exit code."""


@asynccontextmanager
async def served(
    servers: Mapping[str, Server],
    settings: Settings | None = None,
    *,
    undiscovered: Collection[str] = (),
    also: Mapping[str, str] | None = None,
    policy: RestartPolicy | None = None,
    start: ServerSettings | None = None,
    era: Era = "legacy",
    used: Used = lambda record, given=None: None,
    ahead: Ahead = lambda client, server, status: None,
    tool_rules: Mapping[str, ToolRules] | None = None,
    entries: Sequence[ServerConfig] = (),
) -> AsyncIterator[Served]:
    """Run a gateway before servers; those not `undiscovered` are ready. `also`: more names, and whom they mean.

    `entries`: what the configuration says of servers.
    """
    directory: Directory[ServerMessage] = Directory()
    names = ServerNames({**{name: name for name in servers}, **(also or {})})
    settings = settings or Settings(first_discovery_wait_s=0.0)
    deployment = Latest(Deployment(settings=settings, names=names, tool_rules=dict(tool_rules or {})))
    if entries:
        deployment.set(deploy(Configuration(settings=settings, servers=tuple(entries), path=Path("mcp.json")), key=KEY))
    rules = partial(_tool_rules, deployment)
    registry = Registry({}, Nothing(), uncounted, trio.current_time, names=names, rules=rules)
    router = Router(directory, 100)
    subscribers = Subscribers(at_once)
    parts = ServiceParts(
        router.address,
        registry.catalogue,
        registry.statuses,
        deployment,
        used=used,
        ahead=ahead,
        subscribers=subscribers,
        key=bytes(32),
        elicitations=Elicitations(registry.facts),
    )
    gateway = Gateway(parts, parts.view, "1.0")
    with trio.fail_after(6000):
        async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
            for run in (registry.run, router.run):
                await nursery.start(run)
            actors = {
                name: _actor(name, server, registry, subscribers, policy, start, era)
                for name, server in servers.items()
            }
            for actor in actors.values():
                await nursery.start(actor.run)
                stack.enter_context(directory.register(actor.name, actor.address))
                await registry.address.tell(ServerChanged(status=actor.status(), previous=State.DORMANT))
                if actor.name not in undiscovered:
                    await actor.address.ask(WakeServer(server=actor.name))
            while registry.catalogue.value.visible != servers.keys() - set(undiscovered):
                await registry.catalogue.wait_newer(registry.catalogue.version)
            yield Served(gateway, registry, router, actors)
            async with trio.open_nursery() as passing:
                passing.start_soon(_pass_time)
                for actor in actors.values():
                    await actor.address.ask(StopServer())
                passing.cancel_scope.cancel()
            nursery.cancel_scope.cancel()


def _tool_rules(deployment: Latest[Deployment], server: str) -> ToolRules:
    return deployment.value.tool_rules_of(server)


async def _pass_time() -> None:
    """Let a clock that stands still go on, second by second: a server may need its grace to be stopped."""
    clock = trio.lowlevel.current_clock()
    while isinstance(clock, MockClock):
        await wait_all_tasks_blocked()
        clock.jump(1.0)


def _actor(
    name: str,
    server: Server,
    registry: Registry,
    subscribers: Subscribers,
    policy: RestartPolicy | None,
    start: ServerSettings | None,
    era: Era,
) -> ServerActor:
    return ServerActor(
        Profile(
            name=name,
            transport=MemoryTransport(server.serve),
            settings=start or ServerSettings(),
            restarts=RestartLog(policy or RestartPolicy(), lambda: 1.0),
            journal=Journal(trio.current_time),
            era=era,
        ),
        Shared(starts=Starts(10), clock=trio.current_time, identity=Identity(), subscribers=subscribers),
        Reporter(registry.address),
    )
