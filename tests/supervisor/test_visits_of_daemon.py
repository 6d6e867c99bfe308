"""A server tells that a person is done at an address: who was asked to open it hears that, at every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from supervisor.host.datadir import DataDir
from tests.fakes.http_client import JSON_HEADERS, legacy
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import Socket, message
from tests.scenario.daemon import A, World, world

ABLE: dict[str, Any] = {"elicitation": {"url": {}}}
PATHS = ("/mcp/servers/one", "/mcp", "/mcp/all")


def initialize(capabilities: Any) -> bytes:
    info = {"name": "a", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
    return legacy("initialize", params, id_=0)


def call(path: str, **arguments: Any) -> bytes:
    """A call of the tool `visit` at a door."""
    if path == "/mcp":
        params = {"name": "execute_mcp_tool", "arguments": {"tool_path": "one:visit", "arguments": arguments}}
    else:
        params = {"name": "one__visit" if path == "/mcp/all" else "visit", "arguments": arguments}
    return legacy("tools/call", params)


async def visit(socket: Socket, path: str, **arguments: Any) -> list[Any]:
    """Call, say yes to every question, and return what came up to the answer."""
    await socket.send(call(path, **arguments))
    said = [await socket.next()]
    while said[-1].get("id") != 1:
        if "id" in said[-1]:
            await socket.send({"jsonrpc": "2.0", "id": said[-1]["id"], "result": {"action": "accept"}})
        said.append(await socket.next())
    return said


async def pinged(socket: Socket) -> Any:
    """What comes first after a ping."""
    await socket.send(message("ping", id_="ping"))
    return await socket.next()


def complete(id_: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": id_}}


PONG = {"jsonrpc": "2.0", "id": "ping", "result": {}}


async def over_websockets(at: World, path: str, fake: FakeServer) -> None:
    async with at.socket(path) as first, at.socket(path) as second:
        one, two = await first.greet(**ABLE), await second.greet(**ABLE)
        asked, _ = await visit(one, path, ids=["a"])
        assert (asked["method"], asked["params"]["elicitationId"]) == ("elicitation/create", "a")
        await fake.visited("a")
        assert await one.next() == complete("a")
        assert complete("b") in await visit(two, path, ids=["b"], done=["b"])
        (refused,) = await visit(one, path, by_error=["c"])
        assert (refused["error"]["code"], refused["error"]["data"]["elicitations"][0]["elicitationId"]) == (-32042, "c")
        for id_ in ("b", "foreign", "a", "c"):
            await fake.visited(id_)
        assert await one.next() == complete("c")
        assert (await pinged(one), await pinged(two)) == (PONG, PONG)


async def over_http(at: World, path: str, fake: FakeServer) -> None:
    """Two sessions without a stream, whose calls are over: what they are to hear waits for one."""
    sessions: dict[str, dict[str, str]] = {}
    for id_ in ("x", "y"):
        answer = await at.http.post(path, content=initialize(ABLE), headers=JSON_HEADERS)
        sessions[id_] = {"mcp-session-id": answer.headers["mcp-session-id"]}
        refused = await at.http.post(path, content=call(path, by_error=[id_]), headers=JSON_HEADERS | sessions[id_])
        assert refused.json()["error"]["code"] == -32042
    for id_ in sessions:
        await fake.visited(id_)
    for id_, session in sessions.items():
        headers = {**session, "accept": "text/event-stream"}
        said = []
        async with at.http.stream("GET", path, headers=headers) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: {"):
                    said.append(json.loads(line.removeprefix("data: ")))
                    await at.http.delete(path, headers=session)
        assert said == [complete(id_)]


async def test_exactly_that_client_hears_of_the_end_of_its_visit(tmp_path: Path, data: DataDir) -> None:
    fake = FakeServer(tools=[tool("visit")])
    async with world(tmp_path, data, {"one": A}, {"one": fake}) as at:
        for number, path in enumerate(PATHS, 1):
            await over_websockets(at, path, fake)
            await over_http(at, path, fake)
            assert (await at.rows())["one"]["unheard"] == 3 * number, path
