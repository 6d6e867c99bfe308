"""An MCP server over stdio whose tools change all the time: `storming_server.py`. Standard library only.

`storm` has it say so `per_s` times a second for `seconds`, each time with another tool; its answer comes when that is
over, and names the last one. `lists` answers with how often its tools were listed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
TICK_S = 0.01

changes = 0
lists = 0


def write(id_: Any, result: dict[str, Any]) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode() + b"\n")


def text(said: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(said)}]}


def storm(id_: Any, seconds: float, per_s: float) -> None:
    global changes
    begun, said = time.monotonic(), 0
    while said < seconds * per_s:
        due = min(int((time.monotonic() - begun) * per_s) + 1, int(seconds * per_s)) - said
        changes, said = changes + due, said + due
        os.write(1, CHANGED * due)
        time.sleep(TICK_S)  # noqa: TID251 - a process of its own
    write(id_, text(f"changed_{changes}"))


def called(id_: Any, name: str, given: dict[str, Any]) -> None:
    if name == "storm":
        threading.Thread(target=storm, args=(id_, given["seconds"], given["per_s"]), daemon=True).start()
    else:
        write(id_, text(lists))


def main() -> None:
    global lists
    for line in sys.stdin:
        message = json.loads(line)
        method, id_ = message.get("method"), message.get("id")
        if method == "initialize":
            info = {"name": "storming", "version": "1"}
            able = {"tools": {"listChanged": True}}
            write(id_, {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info})
        elif method == "tools/list":
            lists += 1
            names = ("storm", "lists", f"changed_{changes}")
            write(id_, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]})
        elif method == "tools/call":
            called(id_, message["params"]["name"], message["params"].get("arguments", {}))
        elif id_ is not None and method is not None:
            refusal = {"code": -32601, "message": "Method not found"}
            os.write(1, json.dumps({"jsonrpc": "2.0", "id": id_, "error": refusal}).encode() + b"\n")


if __name__ == "__main__":
    main()
