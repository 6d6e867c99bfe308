"""The official Python client 1.x before and after the end of a daemon: `mcp1_restart.py URL`.

Prints what a call gave, waits for a line, and prints what the same call gives then, and whether it heard of a change.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

import anyio
from mcp1_client import DEADLINE_S, connect, text  # type: ignore[import-not-found]  # stands beside this script


async def main() -> None:
    sdk: Any = import_module("mcp")
    changed = anyio.Event()

    async def handler(message: Any) -> None:
        if getattr(getattr(message, "root", None), "method", "") == "notifications/resources/list_changed":
            changed.set()
        await anyio.lowlevel.checkpoint()

    given = {"tool_path": "growing:echo", "arguments": {"text": "hello"}}
    with anyio.fail_after(2 * DEADLINE_S):
        async with (
            connect(sys.argv[1], "stdio") as streams,
            sdk.ClientSession(streams[0], streams[1], message_handler=handler) as session,
        ):
            await session.initialize()
            print(json.dumps({"text": text(await session.call_tool("execute_mcp_tool", given))}), flush=True)
            await anyio.to_thread.run_sync(sys.stdin.readline)
            again = text(await session.call_tool("execute_mcp_tool", given))
            await changed.wait()
            print(json.dumps({"text": again}), flush=True)


if __name__ == "__main__":
    anyio.run(main)
