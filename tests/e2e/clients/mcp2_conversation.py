"""What the official Python client 2.x hears and is asked before an answer: `mcp2_conversation.py URL MODE`.

Prints a report as JSON. In the modern era levels are asked for with each request, and nobody is asked anything here.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import trio
from mcp import Client, types
from mcp2_client import run, server  # type: ignore[import-not-found]  # stands beside this script

TOO_LATE_S = 1.0
"""Longer than the daemon waits for an answer to `hasty`."""


async def report(url: str, mode: str) -> dict[str, Any]:
    logs: list[str] = []
    done: list[float] = []

    async def log(params: Any) -> None:
        logs.append(params.level)
        await trio.lowlevel.checkpoint()

    async def told(progress: float, total: float | None, message: str | None) -> None:
        done.append(progress)
        await trio.lowlevel.checkpoint()

    async def ask(context: Any, params: Any) -> Any:
        if params.message == "[hasty] too late":
            await trio.sleep(TOO_LATE_S)
        action: Literal["accept", "decline"] = "decline" if params.message == "[talkative] decline" else "accept"
        return types.ElicitResult(action=action, content={"name": "Ada"} if action == "accept" else None)

    async def execute(client: Client, path: str, **arguments: Any) -> str:
        given = {"tool_path": path, "arguments": arguments}
        result: Any = await client.call_tool("execute_mcp_tool", given, progress_callback=told)
        return str(result.content[0].text)

    findings: dict[str, Any] = {}
    options: dict[str, Any] = {"mode": mode, "logging_callback": log, "elicitation_callback": ask}
    async with Client(server(url), **options) as client:
        findings["version"] = client.protocol_version
        findings["logging"] = client.server_capabilities.logging is not None
        findings["worked"] = await execute(client, "talkative:work")
        findings["progress"] = list(done)
        findings["unasked"] = list(logs)
        for message in ("accept", "decline"):
            findings[message] = json.loads(await execute(client, "talkative:ask", message=message))
        findings["too late"] = json.loads(await execute(client, "hasty:ask", message="too late"))
        logs.clear()
        if client.protocol_version < "2026":
            await client.set_logging_level("error")
            await execute(client, "talkative:work")
    if findings["version"] >= "2026":
        async with Client(server(url), **options, log_level="error") as client:
            await execute(client, "talkative:work")
    findings["errors"] = list(logs)
    return findings


if __name__ == "__main__":
    run(report)
