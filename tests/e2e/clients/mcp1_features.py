"""Everything that a server may tell and ask, with the official Python client 1.x.

`mcp1_features.py TRANSPORT META NAME=ADDRESS...` prints a report as JSON. It runs in an environment of its own,
which the type checker does not see.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import anyio
from features import LEVEL, ROOT, Heard, Next, Told, run, sampled  # type: ignore[import-not-found]  # stands beside
from mcp1_client import connect as opened  # type: ignore[import-not-found]  # stands beside this script

types: Any = import_module("mcp.types")


class Session:
    """One connected client."""

    def __init__(self, heard: Heard, updated: Any) -> None:
        self.heard = heard
        self.sdk: Any = None
        self.version = ""
        self._updated = updated

    async def call(self, tool: str, arguments: dict[str, Any], told: Told | None = None) -> str:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            if told is not None:
                told(done)

        result = await self.sdk.call_tool(tool, arguments, progress_callback=progress)
        if result.isError:
            raise RuntimeError(result.content[0].text)
        return str(result.content[0].text)

    async def call_from_level(self, tool: str) -> None:
        await self.sdk.set_logging_level(LEVEL)
        await self.call(tool, {})

    async def abandon(self, tool: str, arguments: dict[str, Any]) -> None:
        """The SDK does not say that a call was taken back: the client says so itself."""
        running = anyio.Event()
        request = self.sdk._request_id
        async with anyio.create_task_group() as group:
            group.start_soon(self.call, tool, arguments, lambda _: running.set())
            await running.wait()
            params = types.CancelledNotificationParams(requestId=request)
            await self.sdk.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
            group.cancel_scope.cancel()

    @asynccontextmanager
    async def subscribed(self, uri: str) -> AsyncIterator[Next]:
        await self.sdk.subscribe_resource(uri)
        yield self._updated.receive
        await self.sdk.unsubscribe_resource(uri)


@asynccontextmanager
async def connect(url: str, heard: Heard) -> AsyncIterator[Session]:
    """Connect over the transport that was named."""
    updated_in, updated = anyio.create_memory_object_stream[str](100)

    async def handler(message: Any) -> None:
        if getattr(getattr(message, "root", None), "method", "") == "notifications/resources/updated":
            await updated_in.send(str(message.root.params.uri))

    async def log(params: Any) -> None:
        heard.levels.append(params.level)

    async def elicit(context: Any, params: Any) -> Any:
        return types.ElicitResult(**heard.answer(params))

    async def sample(context: Any, params: Any) -> Any:
        answer = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return answer(**sampled(params))

    async def roots(context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri=ROOT)])

    callbacks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    callbacks["sampling_capabilities"] = types.SamplingCapability(tools=types.SamplingToolsCapability())
    session = Session(heard, updated)
    sdk: Any = import_module("mcp").ClientSession
    transport = sys.argv[1]
    url = url.replace("http", "ws", 1) if transport == "websocket" else url
    async with (
        opened(url, transport) as streams,
        sdk(streams[0], streams[1], logging_callback=log, message_handler=handler, **callbacks) as session.sdk,
    ):
        session.version = (await session.sdk.initialize()).protocolVersion
        yield session


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the transports say that they are deprecated
    run(connect, "asyncio")
