"""Everything that a server may tell and ask, with the official Python client 2.x.

`mcp2_features.py MODE META NAME=ADDRESS...` prints a report as JSON.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from features import LEVEL, ROOT, Heard, Next, Told, run, sampled  # type: ignore[import-not-found]  # stands beside
from mcp import Client, types
from mcp2_client import server  # type: ignore[import-not-found]  # stands beside this script

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


class Session:
    """One connected client."""

    def __init__(self, heard: Heard, updated: trio.MemoryReceiveChannel[str]) -> None:
        self.heard = heard
        self.sdk: Any = None
        self.version = ""
        self._updated = updated

    async def call(self, tool: str, arguments: dict[str, Any], told: Told | None = None, **options: Any) -> str:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            if told is not None:
                told(done)
            await trio.lowlevel.checkpoint()

        result = await self.sdk.call_tool(tool, arguments, progress_callback=progress, **options)
        if result.is_error:
            raise RuntimeError(result.content[0].text)
        return str(result.content[0].text)

    async def call_from_level(self, tool: str) -> None:
        if self.version < "2026":
            await self.sdk.set_logging_level(LEVEL)
            await self.call(tool, {})
        else:
            await self.call(tool, {}, meta={LOG_LEVEL: LEVEL})

    async def abandon(self, tool: str, arguments: dict[str, Any]) -> None:
        running = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.call, tool, arguments, lambda _: running.set())
            await running.wait()
            nursery.cancel_scope.cancel()

    @asynccontextmanager
    async def subscribed(self, uri: str) -> AsyncIterator[Next]:
        if self.version < "2026":
            await self.sdk.subscribe_resource(uri)
            yield self._updated.receive
            await self.sdk.unsubscribe_resource(uri)
            return
        async with self.sdk.listen(resource_subscriptions=[uri]) as subscription:
            events = aiter(subscription)

            async def following() -> str:
                return str((await anext(events)).uri)

            yield following


@asynccontextmanager
async def connect(url: str, heard: Heard) -> AsyncIterator[Session]:
    """Connect in the mode that was named."""
    updated_in, updated = trio.open_memory_channel[str](100)  # noqa: TID251 - a client of its own, not the daemon

    async def handler(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            await updated_in.send(str(message.params.uri))

    async def log(params: Any) -> None:
        heard.levels.append(params.level)
        await trio.lowlevel.checkpoint()

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        await trio.lowlevel.checkpoint()
        return types.ElicitResult(**heard.answer(params))

    async def sample(context: Any, params: Any) -> types.CreateMessageResult | types.CreateMessageResultWithTools:
        await trio.lowlevel.checkpoint()
        answer = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return answer.model_validate(sampled(params))

    async def roots(context: Any) -> types.ListRootsResult:
        await trio.lowlevel.checkpoint()
        return types.ListRootsResult.model_validate({"roots": [{"uri": ROOT}]})

    callbacks: dict[str, Any] = {"elicitation_callback": elicit, "sampling_callback": sample}
    callbacks |= {"list_roots_callback": roots, "logging_callback": log, "message_handler": handler}
    callbacks["sampling_capabilities"] = types.SamplingCapability(tools=types.SamplingToolsCapability())
    session = Session(heard, updated)
    async with Client(server(url), mode=sys.argv[1], **callbacks) as session.sdk:
        session.version = session.sdk.protocol_version
        yield session


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of features that the newest revision has given up
    run(connect, "trio")
