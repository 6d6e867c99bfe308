"""The official Python client 2.x at any door: `mcp2_doors.py URL MODE PREFIX` prints a report as JSON.

PREFIX stands before the names of the tools `echo` and `grow`.
"""

from __future__ import annotations

from typing import Any

import trio
from mcp import Client, MCPError
from mcp2_client import changes, run, server, text  # type: ignore[import-not-found]  # stands beside this script


async def report(url: str, mode: str, prefix: str) -> dict[str, Any]:
    heard_in, heard = trio.open_memory_channel[str](100)  # noqa: TID251 - a client of its own, not the daemon

    async def handler(message: Any) -> None:
        await heard_in.send(str(getattr(message, "method", "")))

    async with Client(server(url), mode=mode, message_handler=handler) as client, changes(client, heard) as following:

        async def names() -> list[str]:
            return [tool.name for tool in (await client.list_tools()).tools]

        findings: dict[str, Any] = {
            "version": client.protocol_version,
            "server": client.server_info.name if client.server_info is not None else "",
            "tools": await names(),
            "echoed": text(await client.call_tool(f"{prefix}echo", {"text": "hello"})),
        }
        try:
            findings["wrong"] = {"told": (await client.call_tool(f"{prefix}no_such", {})).is_error}
        except MCPError as error:
            findings["wrong"] = {"code": error.error.code, "text": error.error.message}
        findings["sprout"] = prefix + text(await client.call_tool(f"{prefix}grow", {}))
        findings["notified"] = await following()
        findings["after"] = await names()
        return findings


if __name__ == "__main__":
    run(report)
