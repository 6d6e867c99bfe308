"""An MCP server whose lists are as large as asked for, standard library only. Used by `benchmarks.lists`.

`python list_server.py TOOLS BYTES PAGE_BYTES CAPABILITY_BYTES`: so many tools with a schema of about that many bytes
each, in pages of about that many bytes, and a capability of that many. Calling its tool `change` makes it say that its
list of tools changed. Speaks the legacy era (2025-11-25).
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Answer requests until the input ends."""
    tools, size, page_size, capability = (int(text) for text in sys.argv[1:5])
    per_page = max(1, page_size // max(size, 1))
    made = [tool(number, size) for number in range(tools)]
    declared = {"tools": {"listChanged": True}, "experimental": {"filler": [{"n": 1}] * (capability // 8)}}
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        match message["method"]:
            case "tools/list":
                start = int(message.get("params", {}).get("cursor", 0))
                result: dict[str, Any] = {"tools": made[start : start + per_page]}
                if start + per_page < tools:
                    result["nextCursor"] = str(start + per_page)
                say({"id": message["id"], "result": result})
            case "initialize":
                info = {"name": "lists", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": declared, "serverInfo": info}
                say({"id": message["id"], "result": result})
            case "tools/call":
                say({"id": message["id"], "result": {"content": []}})
                say({"method": "notifications/tools/list_changed"})
            case _:
                say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


def tool(number: int, size: int) -> dict[str, Any]:
    """Return a tool with a schema of many parameters, as those of large servers have."""
    one = {"type": "string", "description": "A text of any length that says what it is about."}
    count = max(0, (size - 200) // 90)
    schema = {"type": "object", "properties": {f"p{n}": one for n in range(count)}, "required": ["p0"][:count]}
    return {"name": f"tool_{number}", "description": f"Does thing number {number}.", "inputSchema": schema}


def say(message: dict[str, Any]) -> None:
    """Write one message."""
    line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
