"""A stdio MCP server whose tools are in its command line: `python edited_server.py VARIANT PLACE`.

For `benchmarks.edits`; standard library only. `work` takes `seconds` and answers with the variant and its process;
`only_VARIANT` is there so that a list says which variant it is of. PLACE means nothing to it: whoever looks for its
processes finds them by it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

VARIANT = sys.argv[1]


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None for a method that it does not know."""
    match method:
        case "initialize":
            info = {"name": "edited", "version": VARIANT}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            schema = {"type": "object", "properties": {"seconds": {"type": "number"}}}
            names = ("work", f"only_{VARIANT}")
            return {"tools": [{"name": name, "description": "Do work.", "inputSchema": schema} for name in names]}
        case "tools/call":
            time.sleep(params["arguments"].get("seconds", 0))  # noqa: TID251 - this is the work
            return {"content": [{"type": "text", "text": f"{VARIANT} {os.getpid()}"}]}
        case "ping":
            return {}
    return None


def main() -> None:
    """Answer one request after the other until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = result_of(message["method"], message.get("params", {}))
        told = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)


if __name__ == "__main__":
    main()
