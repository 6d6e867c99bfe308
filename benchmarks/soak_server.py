"""A stdio MCP server with moods, standard library only: `python soak_server.py MOOD`. For `benchmarks.soak`.

`steady` answers; `slow` needs half a second; `large` answers with 2,000 times the text; `failing` answers with errors
of every kind; `mortal` exits in the middle of every tenth call; `restless` says that its lists changed with every fifth
call, and they did; `babbling` writes banners between its answers and much to stderr; `looping` exits as soon as it has
been greeted; `mute` never answers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Server:
    """Answers one message after the other."""

    def __init__(self, mood: str) -> None:
        self.mood = mood
        self.calls = 0

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the members of the answer to a request."""
        match message["method"]:
            case "initialize":
                capabilities = {"tools": {"listChanged": True}, "resources": {}}
                info = {"name": f"soak-{self.mood}", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
                return {"result": result}
            case "tools/list":
                return {"result": {"tools": self.tools()}}
            case "resources/list":
                return {"result": {"resources": [{"uri": "soak://state", "name": f"state of {self.mood}"}]}}
            case "resources/read":
                return {"result": {"contents": [{"uri": message["params"]["uri"], "text": f"{self.calls} calls"}]}}
            case "tools/call":
                self.calls += 1
                return self.called(message["params"])
            case "ping":
                return {"result": {}}
        return {"error": {"code": -32601, "message": "Method not found"}}

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools that there are now."""
        names = ["echo", "repeat"] + ([f"extra_{self.calls // 5 % 7}"] if self.mood == "restless" else [])
        text = f"Answer with the text that was given, as the {self.mood} server does it."
        return [{"name": name, "description": text, "inputSchema": SCHEMA} for name in names]

    def called(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a call, as the mood is."""
        text = params.get("arguments", {}).get("text", "")
        if self.mood == "slow":
            time.sleep(0.5)  # noqa: TID251 - a server that is slow
        if self.mood == "mortal" and self.calls % 10 == 0:
            os._exit(3)
        if self.mood == "failing":
            if self.calls % 2:
                return {"error": {"code": -32050, "message": "the desk is closed", "data": {"opens": "tomorrow"}}}
            return {"result": {"content": [{"type": "text", "text": "no such row"}], "isError": True}}
        return {"result": {"content": [{"type": "text", "text": text * (2000 if self.mood == "large" else 1)}]}}

    def aside(self) -> bytes:
        """Return what is written besides the answer."""
        if self.mood == "babbling":
            sys.stderr.write(f"call {self.calls} is done\n" * 20)
            sys.stderr.flush()
            return b"*** thank you for calling ***\n"
        if self.mood == "restless" and self.calls % 5 == 0:
            return b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        return b""


def main() -> None:
    """Answer requests until the input ends."""
    server = Server(sys.argv[1])
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message or server.mood == "mute":
            continue
        if server.mood == "looping" and message["method"] == "tools/list":
            sys.exit("soak: this server ends on purpose")
        answer = {"jsonrpc": "2.0", "id": message["id"], **server.answer(message)}
        sys.stdout.buffer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        if message["method"] == "tools/call":
            sys.stdout.buffer.write(server.aside())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
