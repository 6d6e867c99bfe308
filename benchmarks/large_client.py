"""The official Python client 1.x before servers with large answers: for `large`, which says what it is asked.

`python large_client.py` reads one JSON text: `sizes`, a list of bytes and rounds, and `pairs` of ways, each a list of
the name of a transport (`http`, `sse`, `websocket`, `stdio`) and an address or a command. In each round it calls all
ways once, one after the other; which of a pair is first changes from round to round, and what a round of a size costs
the first time is not counted. It prints the seconds of each call: a list for each size, of a list for each round, of
one for each pair.
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


async def _round(pairs: list[list[Any]], size: int, *, backwards: bool = False) -> list[list[float]]:
    """Call all; return the seconds of each pair, in the order of its ways."""
    step = -1 if backwards else 1
    return [[await _took_s(session, size) for session in pair[::step]][::step] for pair in pairs]


async def main() -> None:
    """Call, and print what it took."""
    asked = json.load(sys.stdin)
    sockets: Any = importlib.import_module("mcp.client.websocket")
    sockets.ws_connect = partial(sockets.ws_connect, max_size=None)  # else it takes 1 MiB
    async with AsyncExitStack() as stack:
        pairs = [[await _session(stack, kind, where) for kind, where in pair] for pair in asked["pairs"]]
        took = []
        for size, rounds in asked["sizes"]:
            await _round(pairs, size)
            took.append([await _round(pairs, size, backwards=bool(number % 2)) for number in range(rounds)])
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    importlib.import_module("anyio").run(main)
