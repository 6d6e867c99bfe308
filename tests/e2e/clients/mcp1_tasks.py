"""Tasks with the official Python client 1.x: `mcp1_tasks.py URL TRANSPORT TOOL` prints a report as JSON.

It runs in an environment of its own, which the type checker does not see.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from typing import Any

import anyio
from mcp1_client import connect  # type: ignore[import-not-found]  # stands beside this script

DEADLINE_S = 30.0


async def report(url: str, transport: str, tool: str) -> dict[str, Any]:
    sdk: Any = import_module("mcp")
    types: Any = import_module("mcp.types")

    async def ask(context: Any, params: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with (
        connect(url, transport) as streams,
        sdk.ClientSession(streams[0], streams[1], elicitation_callback=ask) as session,
    ):
        initialized = await session.initialize()
        offered = initialized.capabilities.tasks
        tasks = session.experimental
        support = [each.execution.taskSupport for each in (await session.list_tools()).tools if each.name == tool]

        async def made(**arguments: Any) -> str:
            return str((await tasks.call_tool_as_task(tool, arguments)).task.taskId)

        asking = await made(asks=True)
        before = (await tasks.get_task(asking)).status
        result = await tasks.get_task_result(asking, types.CallToolResult)
        waiting = await made(waits=True)
        cancelled = (await tasks.cancel_task(waiting)).status
        findings: dict[str, Any] = {
            "offered": offered.model_dump(exclude_none=True) if offered is not None else None,
            "support": support,
            "before": before,
            "result": result.content[0].text,
            "about": result.meta["io.modelcontextprotocol/related-task"]["taskId"] == asking,
            "after": (await tasks.get_task(asking)).status,
            "cancelled": [cancelled, (await tasks.get_task(waiting)).status],
        }
        try:
            await tasks.get_task(asking[:-1] + "?")
        except sdk.McpError as error:
            findings["unknown"] = error.error.code
        plain = await session.call_tool(tool, {"name": "Bob"})
        return {**findings, "plain": plain.content[0].text}


async def main() -> None:
    with anyio.fail_after(DEADLINE_S):
        print(json.dumps(await report(*sys.argv[1:])))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the transports say that they are deprecated
    anyio.run(main)
