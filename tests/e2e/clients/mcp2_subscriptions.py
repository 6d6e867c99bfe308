"""The official Python client 2.x, subscribed to a resource: `mcp2_subscriptions.py URL MODE TOOL URI`.

TOOL writes what the resource of URI then holds. Prints a report as JSON. In the modern era it is subscribed by
`subscriptions/listen`, else by `resources/subscribe`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from mcp import Client, MCPError
from mcp2_client import run, server  # type: ignore[import-not-found]  # stands beside this script

Next = Callable[[], Awaitable[str]]


@asynccontextmanager
async def subscribed(client: Client, uri: str, told: trio.MemoryReceiveChannel[str]) -> AsyncIterator[Next]:
    """Give a function that waits for the next update and returns whose it is."""
    if client.protocol_version < "2026":
        await client.subscribe_resource(uri)
        yield told.receive
        await client.unsubscribe_resource(uri)
        return
    async with client.listen(resource_subscriptions=[uri, "memo://none"]) as subscription:
        assert list(subscription.honored.resource_subscriptions or ())[:1] == [uri]
        events = aiter(subscription)

        async def following() -> str:
            event: Any = await anext(events)
            return str(event.uri)

        yield following


async def report(url: str, mode: str, tool: str, uri: str) -> dict[str, Any]:
    told_in, told = trio.open_memory_channel[str](100)  # noqa: TID251 - a client of its own, not the daemon

    async def handler(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            await told_in.send(str(message.params.uri))

    async with Client(server(url), mode=mode, message_handler=handler) as client:

        async def read() -> str:
            content: Any = (await client.read_resource(uri)).contents[0]
            return str(content.text)

        resources = client.server_capabilities.resources
        findings: dict[str, Any] = {
            "version": client.protocol_version,
            "announced": resources is not None and resources.subscribe,
            "before": await read(),
        }
        async with subscribed(client, uri, told) as following:
            for text in ("first", "second"):
                await client.call_tool(tool, {"text": text})
                findings[text] = [await following(), await read()]
        try:
            await client.subscribe_resource("memo://none")
        except MCPError as error:
            findings["wrong"] = error.error.code
        await client.call_tool(tool, {"text": "nothing"})
        return findings


if __name__ == "__main__":
    run(report)
