"""The official Python client 2.x: `mcp2_client.py URL MODE REPOSITORY` prints a report as JSON.

It listens for changes the way it does by itself: `subscriptions/listen` in the modern era, else its GET stream.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any

import trio
from bridge import PIPED, parameters  # type: ignore[import-not-found]  # stands beside this script
from mcp import Client, StdioServerParameters

DEADLINE_S = 30.0
ONLY_READS = "execute_read_only_mcp_tool"


def server(url: str) -> str | StdioServerParameters:
    """Return what a client connects to."""
    return StdioServerParameters(**parameters(url)) if url.startswith(PIPED) else url


def text(result: Any) -> str:
    return str(result.content[0].text)


@asynccontextmanager
async def changes(client: Client, heard: trio.MemoryReceiveChannel[str]) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """Give a function that waits for the next notification."""
    if client.protocol_version < "2026":
        yield heard.receive
        return
    async with client.listen(tools_list_changed=True) as subscription:
        events = aiter(subscription)

        async def following() -> str:
            return type(await anext(events)).__name__

        yield following


async def report(url: str, mode: str, repository: str) -> dict[str, Any]:
    heard_in, heard = trio.open_memory_channel[str](100)  # noqa: TID251 - a client of its own, not the daemon

    async def handler(message: Any) -> None:
        await heard_in.send(str(getattr(message, "method", "")))

    async with Client(server(url), mode=mode, message_handler=handler) as client, changes(client, heard) as following:

        async def use(name: str, **arguments: Any) -> Any:
            return await client.call_tool(name, arguments)

        async def execute(tool_path: str, **arguments: Any) -> str:
            return text(await use("execute_mcp_tool", tool_path=tool_path, arguments=arguments))

        discovered = await use("discover_mcp_tools", query="what time is it in another timezone", limit=5)
        tools = (await client.list_tools()).tools
        findings: dict[str, Any] = {
            "version": client.protocol_version,
            "tools": [tool.name for tool in tools],
            "hints": [tool.meta for tool in tools],
            "discovered": {"structured": discovered.structured_content, "text": text(discovered)},
            "time": await execute("time:get_current_time", timezone="Europe/Berlin"),
            "git": await execute("git:git_status", repo_path=repository),
            "sqlite": await execute("sqlite:list_tables"),
            "resource": text(await use("read_mcp_resource", uri="sqlite|memo://insights")),
        }
        zone = {"timezone": "Europe/Berlin"}
        calls = [{"tool_path": "time:get_current_time", "arguments": zone}, {"tool_path": "sqlite:list_tables"}]
        findings["together"] = (await use("execute_mcp_tool", calls=calls)).structured_content["results"]
        needs = await use("discover_mcp_tools", query="what time is it", queries=["list the tables of a database"])
        findings["needs"] = needs.structured_content["tools"]
        picked = await use("execute_mcp_tool", tool_path="time:get_current_time", arguments=zone, pick=["$.timezone"])
        findings["picked"] = text(picked)
        if ONLY_READS in findings["tools"]:
            findings["read"] = text(await use(ONLY_READS, tool_path="time:get_current_time", arguments=zone))
            findings["refused"] = text(await use(ONLY_READS, tool_path="growing:grow", arguments={}))
        wrong = await use("execute_mcp_tool", tool_path="time:no_such_tool", arguments={})
        findings["failed"] = {"told": wrong.is_error, "text": text(wrong), **wrong.structured_content}
        sprout = await execute("growing:grow")
        findings["notified"] = await following()
        after = await use("discover_mcp_tools", query=f"growing:{sprout}")
        findings["grown"] = [f"growing:{sprout}", after.structured_content["tools"][0]["tool_path"]]
        return findings


def run(reported: Callable[..., Awaitable[dict[str, Any]]]) -> None:
    """Print a report as a line of JSON, made with the arguments of the script; `--` begins those of another one.

    Each has the deadline for itself.
    """
    ways = [list(way) for is_end, way in groupby(sys.argv[1:], "--".__eq__) if not is_end]

    async def main() -> None:
        for way in ways:
            with trio.fail_after(DEADLINE_S):
                print(json.dumps(await reported(*way)))

    trio.run(main)


if __name__ == "__main__":
    run(report)
