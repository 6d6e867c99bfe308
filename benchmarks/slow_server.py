"""An MCP server over stdio whose calls take a second each, several at once, standard library only.

`look_up` reads (`readOnlyHint`), `change_entry` does not. A result says how it reached its reader: one thing in its
text, another one in its structured content. Speaks the legacy era (2025-11-25).
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any, Final

TAKES_S: Final = 1.0
LOOK_UP: Final = "look_up"
TEXT, STRUCTURED = "read as text", "read as structured content"
"""What of a result a model has got, if it has got this."""
NUMBER: Final = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
TOOLS: Final = [
    {
        "name": LOOK_UP,
        "description": "Look up an entry of the archive by its number.",
        "inputSchema": NUMBER,
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "change_entry",
        "description": "Change an entry of the archive.",
        "inputSchema": NUMBER,
        "annotations": {"readOnlyHint": False, "destructiveHint": True},
    },
]
INFO: Final = {"name": "archive", "version": "1"}
ANSWERS: Final[dict[str, Any]] = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO},
    "tools/list": {"tools": TOOLS},
    "ping": {},
}


def main() -> None:
    """Answer requests until the input ends."""
    writing = threading.Lock()

    def answer(message: dict[str, Any]) -> None:
        said = {"jsonrpc": "2.0", "id": message["id"], **_outcome(message["method"])}
        with writing:
            print(json.dumps(said), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            threading.Thread(target=answer, args=(message,), daemon=True).start()


def _outcome(method: str) -> dict[str, Any]:
    if method == "tools/call":
        time.sleep(TAKES_S)  # noqa: TID251 - a program of its own, without a loop
        return {"result": {"content": [{"type": "text", "text": TEXT}], "structuredContent": {"how": STRUCTURED}}}
    if method in ANSWERS:
        return {"result": ANSWERS[method]}
    return {"error": {"code": -32601, "message": "Method not found"}}


if __name__ == "__main__":
    main()
