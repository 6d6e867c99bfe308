"""A neighbour that nobody wants, an MCP server over stdio: `neighbour_server.py MOOD`.

`looping` ends as soon as it was greeted, `flooding` writes messages without end, `shouting` writes to stderr without
end, `spinning` computes without end; `quiet` is for who stops it from outside. Standard library only.
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


def shout() -> None:
    while True:
        os.write(2, b"DEBUG so it goes on, and everybody is told of it\n" * 40)


def spin() -> None:
    while True:
        pass


WORK = {"flooding": flood, "shouting": shout, "spinning": spin}


def main(mood: str) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            said = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"])}
            os.write(1, json.dumps(said).encode() + b"\n")
        elif message.get("method") == "notifications/initialized":
            if mood == "looping":
                sys.exit(1)
            if mood in WORK:
                threading.Thread(target=WORK[mood], daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
