"""A server over stdio whose every text is hostile to whoever shows it: descriptions, schemas, results, errors, logs."""

from __future__ import annotations

import json
import sys
from typing import Any

RUNS = "<img src=x onerror=alert(1)><script>alert(2)</script><style>*{display:none}</style>"
BREAKS = '"><b>bold</b>{{7*7}}{% raw %}\u202e reversed \u200b hidden \x1b[31m red javascript:alert(3)' + "w" * 400
TEXT = f"{RUNS} {BREAKS}"
TOOLS = [
    {
        "name": "show",
        "title": TEXT,
        "description": TEXT,
        "inputSchema": {
            "type": "object",
            "properties": {
                RUNS: {"type": "string", "description": TEXT, "enum": [TEXT, "a"]},
                "what": {"type": "string", "title": TEXT},
            },
            "required": ["what"],
        },
    },
    {"name": "fail", "description": TEXT, "inputSchema": {"type": "object"}},
    {"name": "picture", "description": "Draws.", "inputSchema": {"type": "object"}},
]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": TEXT, "version": TEXT, "title": TEXT}
        return {
            "result": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": info,
                "instructions": TEXT,
            }
        }
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call" and params["name"] == "fail":
        return {"error": {"code": -32000, "message": TEXT}}
    if method == "tools/call" and params["name"] == "picture":
        svg = {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz48L3N2Zz4="}
        return {"result": {"content": [{"type": "image", "mimeType": "image/png", "data": PIXEL}, svg]}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": f"{TEXT} {params['arguments']}"}]}}
    return {"error": {"code": -32601, "message": TEXT}}


print(TEXT, file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        said = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
        print(TEXT, file=sys.stderr, flush=True)
