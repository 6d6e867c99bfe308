"""What the official Python client 1.x hears and is asked before an answer: `mcp1_conversation.py URL TRANSPORT`.

Prints a report as JSON. It runs in an environment of its own, which the type checker does not see.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import anyio
from mcp1_client import connect, run  # type: ignore[import-not-found]  # stands beside this script

TOO_LATE_S = 1.0
"""Longer than the daemon waits for an answer to `hasty`."""


async def report(url: str, transport: str) -> dict[str, Any]:
    sdk: Any = import_module("mcp")
    types: Any = import_module("mcp.types")
    logs: list[str] = []
    progress: list[float] = []

    async def log(params: Any) -> None:
        logs.append(params.level)
        await anyio.lowlevel.checkpoint()

    async def told(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)
        await anyio.lowlevel.checkpoint()

    async def ask(context: Any, params: Any) -> Any:
        if params.message == "[hasty] too late":
            await anyio.sleep(TOO_LATE_S)
        action = "decline" if params.message == "[talkative] decline" else "accept"
        return types.ElicitResult(action=action, content={"name": "Ada"} if action == "accept" else None)

    async with (
        connect(url, transport) as streams,
        sdk.ClientSession(streams[0], streams[1], logging_callback=log, elicitation_callback=ask) as session,
    ):

        async def execute(path: str, **arguments: Any) -> str:
            given = {"tool_path": path, "arguments": arguments}
            result = await session.call_tool("execute_mcp_tool", given, progress_callback=told)
            return str(result.content[0].text)

        initialized = await session.initialize()
        findings: dict[str, Any] = {
            "version": initialized.protocolVersion,
            "logging": initialized.capabilities.logging is not None,
            "worked": await execute("talkative:work"),
            "progress": list(progress),
            "unasked": list(logs),
        }
        logs.clear()
        await session.set_logging_level("error")
        await execute("talkative:work")
        findings["errors"] = list(logs)
        for message in ("accept", "decline"):
            findings[message] = json.loads(await execute("talkative:ask", message=message))
        findings["too late"] = json.loads(await execute("hasty:ask", message="too late"))
        return findings


if __name__ == "__main__":
    run(report)
