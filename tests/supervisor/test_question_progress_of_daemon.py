"""A client tells how far it is with an answer, and the server that asked hears that, over every transport."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.http_client import JSON_HEADERS, legacy
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import RemoteServer
from tests.scenario.daemon import A, World, world

PROGRESS = "notifications/progress"
INFO = {"name": "a", "version": "1"}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": INFO}
ASK = {"message": "?", "token": "theirs"}
CALLS = {
    "/mcp/servers/one": {"name": "ask", "arguments": ASK},
    "/mcp": {"name": "execute_mcp_tool", "arguments": {"tool_path": "one:ask", "arguments": ASK}},
}


async def replies(asked: dict[str, Any], fake: FakeServer) -> AsyncIterator[bytes]:
    """What a client says to a question: its progress, which the server hears; some that it does not; the answer."""
    token = asked["params"]["_meta"]["progressToken"]
    assert token != "theirs"
    yield legacy(PROGRESS, {"progressToken": token, "progress": 1}, id_=None)
    await fake.progressed.wait()
    for name, done in ((token, 1), (token, 0), ("theirs", 3), ("foreign", 3), (4, 3)):
        yield legacy(PROGRESS, {"progressToken": name, "progress": done}, id_=None)
    yield json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}).encode()


async def over_websocket(at: World, path: str, fake: FakeServer) -> Any:
    async with at.socket(path) as socket:
        await socket.greet(elicitation={})
        await socket.send(legacy("tools/call", CALLS[path]))
        async for reply in replies(await socket.next(), fake):
            await socket.send(reply)
        return await socket.next()


async def over_http(at: World, path: str, fake: FakeServer) -> Any:
    answer = await at.http.post(path, content=legacy("initialize", INITIALIZE), headers=JSON_HEADERS)
    headers = {**JSON_HEADERS, "mcp-session-id": answer.headers["mcp-session-id"]}
    said: list[Any] = []
    body = legacy("tools/call", CALLS[path])
    async with at.http.stream("POST", path, content=body, headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: {"):
                said.append(json.loads(line.removeprefix("data: ")))
                if "method" in said[-1]:
                    async for reply in replies(said[-1], fake):
                        assert (await at.http.post(path, content=reply, headers=headers)).status_code == 202
    return said[-1]


@pytest.mark.parametrize("remote", [False, True])
async def test_the_progress_of_a_client_reaches_the_server_that_asked(
    tmp_path: Path, data: DataDir, remote: bool
) -> None:
    fake = FakeServer(tools=[tool("ask")])
    far = RemoteServer(fake.serve)
    async with far.running():
        entry, more = ({"url": far.url}, {"connect": None}) if remote else (A, {})
        async with world(tmp_path, data, {"one": entry}, {"one": fake}, daemon=more) as at:
            for work, path in product((over_websocket, over_http), CALLS):
                fake.messages.clear()
                fake.progressed = trio.Event()
                answer = await work(at, path, fake)
                got = answer["result"]["structuredContent"]["got"]["result"]
                told = [each["params"] for each in fake.messages if each.get("method") == PROGRESS]
                assert got == {"action": "decline"}, (work, path)
                assert told == [{"progressToken": "theirs", "progress": 1}], (work, path)
