"""The official Python client 1.x before servers with large answers: for `large`, which says what it is asked.

`python large_client.py` reads one JSON text: `sizes` in bytes, `rounds`, and `ways`, each a list of the name of a
transport (`http`, `sse`, `websocket`, `stdio`) and an address or a command. In each round it calls all ways once, one
after the other, and prints the seconds of each call: a list for each size, of a list for each round.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Any


def _client(transport: str, name: str) -> Any:
    return getattr(importlib.import_module(f"mcp.client.{transport}"), name)


def _streams(kind: str, where: Any) -> Any:
    match kind:
        case "http":
            return _client("streamable_http", "streamablehttp_client")(where)
        case "sse":
            return _client("sse", "sse_client")(where)
        case "websocket":
            return _client("websocket", "websocket_client")(where)
        case _:
            stdio = importlib.import_module("mcp.client.stdio")
            return stdio.stdio_client(stdio.StdioServerParameters(command=where[0], args=where[1:]))


async def _session(stack: AsyncExitStack, kind: str, where: Any) -> Any:
    reading, writing, *_ = await stack.enter_async_context(_streams(kind, where))
    session = await stack.enter_async_context(_client("session", "ClientSession")(reading, writing))
    await session.initialize()
    return session


async def _took_s(session: Any, size: int) -> float:
    begin = time.perf_counter()
    result = await session.call_tool("large", {"size": size})
    took = time.perf_counter() - begin
    text = getattr(result.content[0], "text", "")
    if result.isError or not size * 0.9 < len(text) <= size:
        print(f"{size} bytes were answered with {len(text)}: {text[:300]!r}", file=sys.stderr, flush=True)
        os._exit(1)  # what is raised here comes out as a traceback of all sessions
    return took


async def main() -> None:
    """Call, and print what it took."""
    asked = json.load(sys.stdin)
    sockets: Any = importlib.import_module("mcp.client.websocket")
    sockets.ws_connect = partial(sockets.ws_connect, max_size=None)  # else it takes 1 MiB
    async with AsyncExitStack() as stack:
        sessions = [await _session(stack, kind, where) for kind, where in asked["ways"]]
        for session in sessions:
            await _took_s(session, 1000)
        took = [
            [[await _took_s(session, size) for session in sessions] for _ in range(asked["rounds"])]
            for size in asked["sizes"]
        ]
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    importlib.import_module("anyio").run(main)
