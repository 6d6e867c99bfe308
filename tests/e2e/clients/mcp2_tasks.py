"""A tool that can only be run as a task, called with the official Python client 2.x: `mcp2_tasks.py URL MODE TOOL`.

Prints a report as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import trio
from mcp import Client, types
from mcp2_client import server  # type: ignore[import-not-found]  # stands beside this script

DEADLINE_S = 30.0


async def report(url: str, mode: str, tool: str) -> dict[str, Any]:
    async def ask(context: Any, params: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    meta_tool = tool == "execute_mcp_tool"
    options: dict[str, Any] = {"mode": mode, "elicitation_callback": ask}
    async with Client(server(url), **options) as client:
        given: dict[str, Any] = {"asks": True}
        arguments = {"tool_path": "tasks:greet", "arguments": given} if meta_tool else given
        result: Any = await client.call_tool(tool, arguments)
        return {"version": client.protocol_version, "result": result.content[0].text}


async def main() -> None:
    with trio.fail_after(DEADLINE_S):
        print(json.dumps(await report(*sys.argv[1:])))


if __name__ == "__main__":
    trio.run(main)
