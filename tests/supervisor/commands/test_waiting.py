"""`questions`: what waits for an answer is listed, and answered or declined from a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2

from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.memory import MemoryTransport
from tests.fakes.whole_server import WholeServer
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running
from tests.supervisor.commands.test_cli import ask

SERVERS: dict[str, Any] = {"one": {"command": "x", "confirm": ["*"], "ask": "everyone"}}


def connect(server: DeployedServer) -> MemoryTransport:
    del server
    return MemoryTransport(WholeServer().serve)


async def call(client: httpx2.AsyncClient) -> None:
    """Call a tool that asks first, as a client that cannot be asked."""
    wanted = {"name": "execute_mcp_tool", "arguments": {"tool_path": "one:tool1", "arguments": {}}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": wanted}
    told = (await client.post("/mcp", json=body)).json()
    assert "questions" in told["result"]["structuredContent"], told


async def test_questions_are_listed_answered_and_declined(tmp_path: Path, data: DataDir) -> None:
    async with running(configuration(tmp_path, SERVERS), data, connect=connect) as client:
        await Client(client).ready()
        url = str(client.base_url).rstrip("/")
        assert (await ask(url, "questions")).stderr == "Nobody asks anything.\n"
        await call(client)
        shown = (await ask(url, "questions")).stdout.splitlines()
        assert shown[0].split()[:5] == ["ID", "ASKED", "BY", "ABOUT", "KIND"]
        id_ = shown[1].split()[0]
        assert "Run one:tool1 with" in shown[1]
        assert "a client" in shown[1]
        (listed,) = json.loads((await ask(url, "questions", "--json")).stdout)["questions"]
        assert listed["id"].startswith(id_)
        unanswered = await ask(url, "questions", id_, stdin="")
        assert unanswered.exit_code == 1
        assert unanswered.stderr.endswith("Error: nothing was answered: the question still waits\n")
        answered = await ask(url, "questions", id_, stdin="y\n")
        assert answered.exit_code == 0
        assert answered.stderr.endswith("you said yes; tell the model to go on: it repeats the call\n")
        await call(client)
        other = json.loads((await ask(url, "questions", "--json")).stdout)["questions"][-1]["id"]
        declined = await ask(url, "questions", other, "--decline")
        assert declined.stderr == "you said no: the tool does not run\n"
