"""Tasks of a modern server at the doors of a whole daemon: over HTTP, whose heads name them, and over WebSockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from supervisor.host.datadir import DataDir
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.task_server import EXTENSION, TaskServer
from tests.scenario.daemon import A, world

ABLE: dict[str, Any] = {"extensions": {EXTENSION: {}}}
TOOLS = {"/mcp/servers/one": "later", "/mcp/all": "one__later"}


async def test_a_modern_client_has_tasks_over_every_transport(tmp_path: Path, data: DataDir) -> None:
    server = TaskServer("modern", work_s=0.0)
    async with world(tmp_path, data, {"one": A}, {"one": server}) as at:
        for path, tool in TOOLS.items():
            send = at.at(path).send_modern
            task = (await send("tools/call", ABLE, name=tool, arguments={})).json()["result"]
            assert task["resultType"] == "task"
            state = (await send("tasks/get", ABLE, taskId=task["taskId"])).json()["result"]
            assert (state["taskId"], state["resultType"]) == (task["taskId"], "complete")
            content = modern("tasks/get", {"taskId": task["taskId"]}, clientCapabilities=ABLE)
            wrong = await at.ask("POST", path, headers=modern_headers("tasks/get", "another"), content=content)
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, -32020)
            unknown = await send("tasks/get", ABLE, taskId="another")
            assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, -32602)
            async with at.socket(path) as socket:
                cancel = modern("tasks/cancel", {"taskId": task["taskId"]}, clientCapabilities=ABLE)
                await socket.send(cancel)
                said = await socket.next()
                assert said.get("result", said.get("error", {}).get("code")) in ({"resultType": "complete"}, -32602)
                await socket.send(modern("tasks/get", {"taskId": task["taskId"]}))
                assert (await socket.next())["error"]["code"] == -32021
        assert server.made == len(TOOLS)
