"""The official Python client 1.x, which is asked to open addresses: `mcp1_visits.py URL TRANSPORT PREFIX`.

Its session is one of two: the other one calls the tool that tells of the end. Prints what both heard as JSON.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import anyio

COMPLETE = "notifications/elicitation/complete"


@asynccontextmanager
async def connected(url: str, transport: str, heard: Any) -> AsyncIterator[Any]:
    sdk: Any = import_module("mcp")
    beside: Any = import_module("mcp1_client")

    async def handler(message: Any) -> None:
        said: Any = getattr(message, "root", None)
        if said is not None and getattr(said, "method", "") == COMPLETE:
            await heard.send(str(said.params.elicitationId))
        await anyio.lowlevel.checkpoint()

    async def open_address(context: Any, params: Any) -> Any:
        del context, params
        return sdk.types.ElicitResult(action="accept")

    async with (
        beside.connect(url, transport) as streams,
        sdk.ClientSession(
            streams[0], streams[1], message_handler=handler, elicitation_callback=open_address
        ) as session,
    ):
        await session.initialize()
        yield session


async def report(url: str, transport: str, prefix: str) -> dict[str, Any]:
    sdk: Any = import_module("mcp")
    heard_in, heard = anyio.create_memory_object_stream[str](100)
    others_in, others = anyio.create_memory_object_stream[str](100)
    async with connected(url, transport, heard_in) as session, connected(url, transport, others_in) as other:
        asked = await session.call_tool(f"{prefix}ask", {"visit": "one"})
        await other.call_tool(f"{prefix}done", {"visit": "one"})
        findings: dict[str, Any] = {"asked": asked.content[0].text, "first": await heard.receive()}
        try:
            await session.call_tool(f"{prefix}refuse", {"visit": "two"})
        except sdk.McpError as error:
            findings["refused"] = [error.error.code, error.error.data["elicitations"][0]["elicitationId"]]
        await other.call_tool(f"{prefix}done", {"visit": "foreign"})
        await other.call_tool(f"{prefix}done", {"visit": "two"})
        findings["second"] = await heard.receive()
        await other.call_tool(f"{prefix}ask", {"visit": "three"})
        await session.call_tool(f"{prefix}done", {"visit": "three"})
        findings["other"] = await others.receive()
        findings["more"] = heard.statistics().current_buffer_used + others.statistics().current_buffer_used
        return findings


if __name__ == "__main__":
    import_module("mcp1_client").run(report)
