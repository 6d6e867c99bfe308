"""A server over stdio that lists what a file says: `python misshapen.py FILE`, an object of pages by their method."""

from __future__ import annotations

import json
import sys
from pathlib import Path

LISTS = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
HELLO = {
    "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
    "serverInfo": {"name": "misshapen", "version": "1"},
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, said = message["method"], {"error": {"code": -32601, "message": "no such method"}}
    if method == "initialize":
        said = {"result": {"protocolVersion": message["params"]["protocolVersion"], **HELLO}}
    if method in LISTS:
        at = int((message.get("params") or {}).get("cursor", 0))
        more = {"nextCursor": str(at + 1)} if at + 1 < len(LISTS[method]) else {}
        said = {"result": {**LISTS[method][at], **more}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
