"""The official Python client 1.x: `mcp1_client.py URL TRANSPORT REPOSITORY` prints a report as JSON.

It runs in an environment of its own, which the type checker does not see: hence the imports by name.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Awaitable, Callable
from importlib import import_module
from itertools import groupby
from typing import Any

import anyio
from bridge import PIPED, parameters  # type: ignore[import-not-found]  # stands beside this script

DEADLINE_S = 30.0
ONLY_READS = "execute_read_only_mcp_tool"


def text(result: Any) -> str:
    return str(result.content[0].text)


def connect(url: str, transport: str) -> Any:
    """The transport's context manager; its first two values are the streams."""
    if url.startswith(PIPED):
        stdio: Any = import_module("mcp.client.stdio")
        return stdio.stdio_client(stdio.StdioServerParameters(**parameters(url)))
    if transport == "websocket":
        return import_module("mcp.client.websocket").websocket_client(url)
    return import_module("mcp.client.streamable_http").streamablehttp_client(url)


async def report(url: str, transport: str, repository: str) -> dict[str, Any]:
    sdk: Any = import_module("mcp")
    heard: list[str] = []
    changed = anyio.Event()

    async def handler(message: Any) -> None:
        method = getattr(getattr(message, "root", None), "method", "")
        heard.append(method)
        if method == "notifications/tools/list_changed":
            changed.set()
        await anyio.lowlevel.checkpoint()

    async with (
        connect(url, transport) as streams,
        sdk.ClientSession(streams[0], streams[1], message_handler=handler) as session,
    ):

        async def execute(tool_path: str, **arguments: Any) -> str:
            given = {"tool_path": tool_path, "arguments": arguments}
            return text(await session.call_tool("execute_mcp_tool", given))

        initialized = await session.initialize()
        query = {"query": "what time is it in another timezone", "limit": 5}
        discovered = await session.call_tool("discover_mcp_tools", query)
        tools = (await session.list_tools()).tools
        findings: dict[str, Any] = {
            "version": initialized.protocolVersion,
            "tools": [tool.name for tool in tools],
            "hints": [tool.meta for tool in tools],
            "discovered": {"structured": discovered.structuredContent, "text": text(discovered)},
            "time": await execute("time:get_current_time", timezone="Europe/Berlin"),
            "git": await execute("git:git_status", repo_path=repository),
            "sqlite": await execute("sqlite:list_tables"),
            "resource": text(await session.call_tool("read_mcp_resource", {"uri": "sqlite|memo://insights"})),
        }
        zone = {"timezone": "Europe/Berlin"}
        calls = [{"tool_path": "time:get_current_time", "arguments": zone}, {"tool_path": "sqlite:list_tables"}]
        together = await session.call_tool("execute_mcp_tool", {"calls": calls})
        findings["together"] = together.structuredContent["results"]
        several = {"query": "what time is it", "queries": ["list the tables of a database"]}
        needs = await session.call_tool("discover_mcp_tools", several)
        findings["needs"] = needs.structuredContent["tools"]
        time = {"tool_path": "time:get_current_time", "arguments": zone}
        findings["picked"] = text(await session.call_tool("execute_mcp_tool", {**time, "pick": ["$.timezone"]}))
        if ONLY_READS in findings["tools"]:
            grow = {"tool_path": "growing:grow", "arguments": {}}
            findings["read"] = text(await session.call_tool(ONLY_READS, time))
            findings["refused"] = text(await session.call_tool(ONLY_READS, grow))
        wrong = await session.call_tool("execute_mcp_tool", {"tool_path": "time:no_such_tool", "arguments": {}})
        findings["failed"] = {"told": wrong.isError, "text": text(wrong), **wrong.structuredContent}
        sprout = await execute("growing:grow")
        await changed.wait()
        findings["notified"] = heard[-1]
        after = await session.call_tool("discover_mcp_tools", {"query": f"growing:{sprout}"})
        findings["grown"] = [f"growing:{sprout}", after.structuredContent["tools"][0]["tool_path"]]
        return findings


def run(reported: Callable[..., Awaitable[dict[str, Any]]]) -> None:
    """Print a report as a line of JSON, made with the arguments of the script; `--` begins those of another one.

    Each has the deadline for itself.
    """
    ways = [list(way) for is_end, way in groupby(sys.argv[1:], "--".__eq__) if not is_end]

    async def main() -> None:
        for way in ways:
            with anyio.fail_after(DEADLINE_S):
                print(json.dumps(await reported(*way)))

    warnings.simplefilter("ignore")  # the transports say that they are deprecated
    anyio.run(main)


if __name__ == "__main__":
    run(report)
