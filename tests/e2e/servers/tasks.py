"""A server of the official Python SDK 1.x with tasks, over stdio: one tool that can only be run as a task, and asks.

It runs in an environment of its own, which the type checker does not see.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import anyio

types: Any = import_module("mcp.types")
server: Any = import_module("mcp.server.lowlevel").Server("tasks")
server.experimental.enable_tasks()
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def list_tools() -> list[Any]:
    execution = types.ToolExecution(taskSupport="required")
    return [types.Tool(name="greet", inputSchema={"type": "object"}, execution=execution)]


async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
    del name
    context = server.request_context
    context.experimental.validate_task_mode("required")

    async def greet(task: Any) -> Any:
        if "asks" in arguments:
            answer = await task.elicit("What is your name?", FORM)
            arguments["name"] = (answer.content or {}).get("name", answer.action)
        if "waits" in arguments:
            await anyio.sleep_forever()
        return types.CallToolResult(content=[types.TextContent(type="text", text=f"hello {arguments.get('name')}")])

    return await context.experimental.run_task(greet)


async def main() -> None:
    server.list_tools()(list_tools)
    server.call_tool()(call_tool)
    async with import_module("mcp.server.stdio").stdio_server() as streams:
        await server.run(*streams, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
