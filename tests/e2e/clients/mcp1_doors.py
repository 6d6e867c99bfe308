"""The official Python client 1.x at any door: `mcp1_doors.py URL TRANSPORT PREFIX` prints a report as JSON.

PREFIX stands before the names of the tools `echo` and `grow`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import anyio


async def report(url: str, transport: str, prefix: str) -> dict[str, Any]:
    sdk: Any = import_module("mcp")
    beside: Any = import_module("mcp1_client")
    changed = anyio.Event()

    async def handler(message: Any) -> None:
        if getattr(getattr(message, "root", None), "method", "") == "notifications/tools/list_changed":
            changed.set()
        await anyio.lowlevel.checkpoint()

    async with (
        beside.connect(url, transport) as streams,
        sdk.ClientSession(streams[0], streams[1], message_handler=handler) as session,
    ):

        async def names() -> list[str]:
            return [tool.name for tool in (await session.list_tools()).tools]

        initialized = await session.initialize()
        findings: dict[str, Any] = {
            "version": initialized.protocolVersion,
            "server": initialized.serverInfo.name,
            "tools": await names(),
            "echoed": beside.text(await session.call_tool(f"{prefix}echo", {"text": "hello"})),
        }
        try:
            findings["wrong"] = {"told": (await session.call_tool(f"{prefix}no_such", {})).isError}
        except sdk.McpError as error:
            findings["wrong"] = {"code": error.error.code, "text": error.error.message}
        findings["sprout"] = prefix + beside.text(await session.call_tool(f"{prefix}grow", {}))
        await changed.wait()
        findings["notified"] = "notifications/tools/list_changed"
        findings["after"] = await names()
        return findings


if __name__ == "__main__":
    import_module("mcp1_client").run(report)
