"""The official Python client 1.x, subscribed to a resource: `mcp1_subscriptions.py URL TRANSPORT TOOL URI`.

TOOL writes what the resource of URI then holds. Prints a report as JSON.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import anyio


async def report(url: str, transport: str, tool: str, uri: str) -> dict[str, Any]:
    sdk: Any = import_module("mcp")
    beside: Any = import_module("mcp1_client")
    told_in, told = anyio.create_memory_object_stream[str](100)

    async def handler(message: Any) -> None:
        said: Any = getattr(message, "root", None)
        if said is not None and getattr(said, "method", "") == "notifications/resources/updated":
            await told_in.send(str(said.params.uri))
        await anyio.lowlevel.checkpoint()

    async with (
        beside.connect(url, transport) as streams,
        sdk.ClientSession(streams[0], streams[1], message_handler=handler) as session,
    ):

        async def read() -> str:
            return str((await session.read_resource(uri)).contents[0].text)

        initialized = await session.initialize()
        findings: dict[str, Any] = {
            "version": initialized.protocolVersion,
            "announced": initialized.capabilities.resources.subscribe,
            "before": await read(),
        }
        await session.subscribe_resource(uri)
        for text in ("first", "second"):
            await session.call_tool(tool, {"text": text})
            findings[text] = [await told.receive(), await read()]
        await session.unsubscribe_resource(uri)
        try:
            await session.subscribe_resource("memo://none")
        except sdk.McpError as error:
            findings["wrong"] = error.error.code
        await session.call_tool(tool, {"text": "nothing"})
        return findings


if __name__ == "__main__":
    import_module("mcp1_client").run(report)
