"""Tasks of a modern server at the doors of a whole daemon: over HTTP, whose heads name them, and over WebSockets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2

from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.memory import MemoryTransport
from tests.fakes.task_server import EXTENSION, TaskServer
from tests.fakes.websocket_client import open_websocket
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running

DECLARED: dict[str, Any] = {"clientCapabilities": {"extensions": {EXTENSION: {}}}}
TOOLS = {"/mcp/servers/one": "later", "/mcp/all": "one__later"}


async def test_a_modern_client_has_tasks_over_every_transport(tmp_path: Path, data: DataDir) -> None:
    server = TaskServer("modern", work_s=0.0)

    def connect(deployed: DeployedServer) -> MemoryTransport:
        del deployed
        return MemoryTransport(server.serve)

    async with running(configuration(tmp_path, {"one": {"command": "x"}}), data, connect=connect) as client:
        await Client(client).ready()
        for path, tool in TOOLS.items():
            task = (await post(client, path, "tools/call", tool, name=tool, arguments={})).json()["result"]
            assert task["resultType"] == "task"
            state = (await post(client, path, "tasks/get", task["taskId"], taskId=task["taskId"])).json()["result"]
            assert (state["taskId"], state["resultType"]) == (task["taskId"], "complete")
            wrong = await post(client, path, "tasks/get", "another", taskId=task["taskId"])
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, -32020)
            unknown = await post(client, path, "tasks/get", "another", taskId="another")
            assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, -32602)
            async with open_websocket(client.base_url.port or 0, path) as socket:
                await socket.send_message(modern("tasks/cancel", {"taskId": task["taskId"]}, **DECLARED).decode())
                said = json.loads(await socket.get_message())
                assert said.get("result", said.get("error", {}).get("code")) in ({"resultType": "complete"}, -32602)
                await socket.send_message(modern("tasks/get", {"taskId": task["taskId"]}).decode())
                assert json.loads(await socket.get_message())["error"]["code"] == -32021
        assert server.made == len(TOOLS)


async def post(client: httpx2.AsyncClient, path: str, method: str, named: str, **params: Any) -> httpx2.Response:
    return await client.post(path, headers=modern_headers(method, named), content=modern(method, params, **DECLARED))
