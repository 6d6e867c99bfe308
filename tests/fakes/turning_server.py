"""A stdio MCP server that turns into another one: `python turning_server.py STATE LEDGER [VERSION]`.

STATE is a file with the version of its tool `work`, of which each has another definition; VERSION is there for the
daemon alone, to be another launch. LEDGER gets a line for whatever it does, with the version that was in force then.
The tool `turn` takes `to`, a version, and `how`:

- `exit`: the process ends, and the next one is of that version.
- `list`: it says that its list has changed, and is of that version from the moment on in which it is listed.
- `at once`: it is of that version before it says so.
- `silently`: it is, and says nothing.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

STATE, LEDGER = Path(sys.argv[1]), Path(sys.argv[2])
OBJECT = {"type": "object", "properties": {"to": {"type": "string"}, "how": {"type": "string"}}}


class Server:
    """One process of it."""

    def __init__(self) -> None:
        self.version = self.listed = STATE.read_text()
        self.note("start")

    def note(self, what: str, **more: Any) -> None:
        with LEDGER.open("a") as ledger:
            ledger.write(json.dumps({"what": what, "version": self.version, "pid": os.getpid(), **more}) + "\n")

    def result_of(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        match method:
            case "initialize":
                info = {"name": "turning", "version": "1"}
                capabilities = {"tools": {"listChanged": True}}
                return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
            case "tools/list":
                self.version = self.listed
                self.note("list")
                return {
                    "tools": [
                        {"name": "work", "description": f"Does work, as {self.version}.", "inputSchema": OBJECT},
                        {"name": "turn", "description": "Turns it into another one.", "inputSchema": OBJECT},
                    ]
                }
            case "tools/call" if params["name"] == "turn":
                self.turn(**params["arguments"])
                return {"content": [{"type": "text", "text": "turned"}]}
            case "tools/call":
                self.note("call", who=params["arguments"].get("to", ""))
                return {"content": [{"type": "text", "text": self.version}]}
            case "ping":
                return {}
        return None

    def turn(self, to: str, how: str) -> None:
        self.note("turn", to=to, how=how)
        STATE.write_text(to)
        if how == "exit":
            os._exit(3)
        self.listed = to
        if how != "list":
            self.version = to
        if how != "silently":
            tell({"method": "notifications/tools/list_changed"})


def tell(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    """Answer one request after the other until the input ends."""
    server = Server()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = server.result_of(message["method"], message.get("params", {}))
            told = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
            tell({"id": message["id"], **told})


if __name__ == "__main__":
    main()
