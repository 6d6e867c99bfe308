"""An MCP server over stdio that sees when it runs twice: `locked_server.py NAME DIRECTORY`. Standard library only.

It holds the lock of its name as long as it lives, and notes in the ledger of the directory, a file of JSON lines, that
it was started, that the lock was somebody else's (`twice`), and each call with its key.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}


class LockedServer:
    """One process of it."""

    def __init__(self, name: str, directory: Path) -> None:
        self._name = name
        self._ledger = os.open(directory / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._lock = os.open(directory / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.note("twice")
        self.note("start")

    def note(self, what: str, key: str = "") -> None:
        """Write one line at once, which other processes do not cut."""
        entry = {"what": what, "server": self._name, "pid": os.getpid(), "at_s": time.monotonic(), "key": key}
        os.write(self._ledger, json.dumps(entry).encode() + b"\n")

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return what is answered to a message, if anything."""
        result: dict[str, Any]
        match message.get("method"):
            case "initialize":
                result = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "locked", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "note", "description": "Notes a key.", "inputSchema": SCHEMA}]}
            case "tools/call":
                key = message["params"]["arguments"]["key"]
                self.note("call", key)
                time.sleep(0.01)  # noqa: TID251 - it has no loop; so long a call may be interrupted
                result = {"content": [{"type": "text", "text": key}]}
            case _ if "id" in message:
                return {"error": {"code": -32601, "message": "there is no such method"}}
            case _:
                return None
        return {"result": result}


def main() -> None:
    server = LockedServer(sys.argv[1], Path(sys.argv[2]))
    for line in sys.stdin:
        message = json.loads(line)
        if (answer := server.answer(message)) is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
