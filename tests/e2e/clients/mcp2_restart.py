"""The official Python client 2.x before and after the end of a daemon: `mcp2_restart.py URL MODE`.

Prints what a call gave, waits for a line, and prints what the same call gives then. In the modern era it listens, and
hears of a change.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import trio
from mcp import Client
from mcp2_client import DEADLINE_S, changes, server, text  # type: ignore[import-not-found]  # stands beside this script


async def main() -> None:
    heard_in, heard = trio.open_memory_channel[str](100)  # noqa: TID251 - a client of its own, not the daemon

    async def handler(message: Any) -> None:
        await heard_in.send(str(getattr(message, "method", "")))

    url, mode = sys.argv[1:]
    options: dict[str, Any] = {"mode": mode, "message_handler": handler}
    given = {"tool_path": "growing:echo", "arguments": {"text": "hello"}}
    with trio.fail_after(2 * DEADLINE_S):
        async with (
            Client(server(url), **options) as client,
            changes(client, heard) as following,
        ):
            print(json.dumps({"text": text(await client.call_tool("execute_mcp_tool", given))}), flush=True)
            await trio.to_thread.run_sync(sys.stdin.readline)
            again = text(await client.call_tool("execute_mcp_tool", given))
            await following()
            print(json.dumps({"text": again}), flush=True)


if __name__ == "__main__":
    trio.run(main)
