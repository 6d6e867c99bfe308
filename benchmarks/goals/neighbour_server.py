"""A neighbour that nobody wants, an MCP server over stdio: `neighbour_server.py looping | flooding | spinning | quiet`.

`looping` ends as soon as it was greeted, `flooding` writes without end, `spinning` computes without end; `quiet` is for
who stops it from outside. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
SAID = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"so it goes on"}}\n'


def answer(method: str) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "neighbour", "version": "1"}
            return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": [{"name": "nothing", "inputSchema": {"type": "object"}}]}}
        case "ping":
            return {"result": {}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def flood() -> None:
    while True:
        os.write(1, CHANGED + SAID * 20)


def spin() -> None:
    while True:
        pass


def main(mood: str) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            said = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"])}
            os.write(1, json.dumps(said).encode() + b"\n")
        elif message.get("method") == "notifications/initialized":
            if mood == "looping":
                sys.exit(1)
            if mood in ("flooding", "spinning"):
                threading.Thread(target=flood if mood == "flooding" else spin, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
