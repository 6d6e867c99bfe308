"""Hear of every change of the catalogue over WebSocket, as an MCP client does.

python examples/follow_changes.py [URL [COUNT]]: ends after COUNT changes, or never.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import trio
from trio_websocket import ConnectionClosed, HandshakeError, open_websocket_url

CHANGED = "notifications/tools/list_changed"
ABOUT = {"name": "follow-changes", "version": "1"}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": ABOUT}


async def main(url: str, count: int) -> None:
    """Open a session, then print one line for each of `count` changes; 0 is no limit."""
    address = url.replace("http", "ws", 1) + "/mcp"
    async with open_websocket_url(address) as socket:

        async def send(message: dict[str, Any]) -> None:
            await socket.send_message(json.dumps({"jsonrpc": "2.0", **message}))

        await send({"id": 1, "method": "initialize", "params": INITIALIZE})
        answer = json.loads(await socket.get_message())
        print(f"connected to {answer['result']['serverInfo']['name']}", flush=True)
        await send({"method": "notifications/initialized"})
        for number in itertools.count(1):
            while json.loads(await socket.get_message()).get("method") != CHANGED:
                continue
            print(f"change {number}: search again", flush=True)
            if number == count:
                return


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    url, said = given.get(1, "http://127.0.0.1:3001"), ""
    try:
        trio.run(main, url, int(given.get(2, "0")))
    except* (HandshakeError, OSError):
        said = f"nothing answers at {url}: is the daemon there? Start it with `mcpvisor run`; it says its URL."
    except* ConnectionClosed:
        said = "the daemon has ended the connection"
    if said:
        sys.exit(said)
