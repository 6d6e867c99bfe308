"""An MCP server over stdio that is hard to end: it ignores the end of its input and SIGTERM, and leaves others behind.

`stubborn_server.py MARK`: MARK is only for who looks for its processes. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

TOOLS = [{"name": "pid", "description": "Say the process of this server.", "inputSchema": {"type": "object"}}]


def leave_behind(*, detached: bool) -> None:
    """Fork a child that does nothing for ever; a detached one is no child of ours, and in a session of its own."""
    if os.fork():
        if detached:
            os.wait()
        return
    if detached:
        os.setsid()
        if os.fork():
            os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    while True:
        signal.pause()


def answer(method: str) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "stubborn", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case _:
            return {"content": [{"type": "text", "text": str(os.getpid())}]}


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leave_behind(detached=False)
    leave_behind(detached=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and message.get("method") == "server/discover":
            refusal = {"code": -32601, "message": "Method not found"}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": refusal}), flush=True)
        elif "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"])}), flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
