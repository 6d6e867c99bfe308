"""A minimal MCP server over stdio, standard library only: what it costs is close to what any server must cost.

`python echo_server.py [--tools-file FILE] [--takes-s SECONDS]`: its one tool is `echo`, which answers with its `text`.
With FILE, a JSON array of tool definitions, it lists those instead, to be found. Each call takes SECONDS, one after the
other. Speaks the legacy era (2025-11-25).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

ECHO = {
    "name": "echo",
    "description": "Answer with the text that was given.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def main() -> None:
    """Answer requests until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools-file", type=Path)
    parser.add_argument("--takes-s", type=float, default=0.0, help="each call takes so long, one after the other")
    arguments = parser.parse_args()
    tools = json.loads(arguments.tools_file.read_text()) if arguments.tools_file else [ECHO]
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            if arguments.takes_s and message["method"] == "tools/call":
                time.sleep(arguments.takes_s)  # noqa: TID251 - a program of its own, without a loop
            answer = {"jsonrpc": "2.0", "id": message["id"], **_answer(message, tools)}
            output.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
            output.flush()


def _answer(message: dict[str, Any], tools: list[Any]) -> dict[str, Any]:
    match message["method"]:
        case "tools/call":
            params = message.get("params")
            given = params.get("arguments") if isinstance(params, dict) else None
            if not isinstance(given, dict):
                return {"error": {"code": -32602, "message": "Invalid params"}}
            return {"result": {"content": [{"type": "text", "text": given.get("text", "")}]}}
        case "tools/list":
            return {"result": {"tools": tools}}
        case "initialize":
            info = {"name": "echo", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            return {"result": result}
        case "ping":
            return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


if __name__ == "__main__":
    main()
