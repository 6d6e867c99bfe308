"""A server that spills whatever it was given, wherever a server can say something. It offers the same in two forms:

- a program for stdio, `python spilling_server.py FILE ...`: what it was given is its environment and its arguments,
  which it also writes to FILE, with every message that it reads; with `--fail` it knows no method at all;
- `SpillingServer`, over HTTP: what it was given is the head of each request. It is its own authorization server.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio

from tests.fakes.issuer_server import MCP, IssuerServer, Reply
from tests.fakes.remote_server import read_request

TOOLS = ("spill", "cargo", "crash", "log")
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}, "logging": {}}


def forms(given: str) -> str:
    """What was given, as programs print it; each word of it in base64, too, as in the header `Authorization`."""
    words = [base64.b64encode(word.encode()).decode() for word in re.findall(r"[\w.-]{8,}", given)]
    return f"{given} | {json.dumps({'given': given})} | {given!r} | {' '.join(words)}"


def answer(message: dict[str, Any], given: str) -> dict[str, Any] | None:
    """Return the answer to a message: an error with what was given to all but the least. None: it wants none."""
    if "id" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    result: dict[str, Any] | None = None
    if method == "initialize":
        info = {"name": "spilling", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    elif method == "tools/call" and params["name"] == "cargo":
        result = {"content": [{"type": "text", "text": given}], "isError": True}
    if result is not None:
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}
    error = {"code": -32603, "message": f"refused with {forms(given)}", "data": {"given": given}}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


class SpillingServer(IssuerServer):
    """`guarded`: the token without which it answers nothing."""

    def __init__(self, *, guarded: str = "") -> None:
        super().__init__()
        self.guarded = guarded

    async def _answer(self, stream: trio.SocketStream) -> None:
        while (request := await read_request(stream)) is not None:
            self.requests.append(request)
            path = request.path.partition("?")[0]
            shown = request.headers.get("authorization", "")
            if path != MCP or (self.guarded and shown != f"Bearer {self.guarded}"):
                reply = self.pages.get(path, Reply(status=404))
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                await request.respond(reply.status, body, **reply.headers)
                continue
            if request.verb != "POST":
                await request.respond(405)
                continue
            given = json.dumps([request.path, {name: request.headers[name] for name in sorted(request.headers)}])
            message = request.message
            said = answer(message, given)
            if message.get("method") == "tools/call" and message["params"]["name"] == "crash":
                await request.respond(500, forms(given).encode(), "text/plain")
            elif said is None:
                await request.respond(202)
            else:
                await request.respond(200, json.dumps(said).encode())


def main(file: str) -> None:
    given = json.dumps([dict(os.environ), sys.argv])
    print("starting with", forms(given), *os.environ.values(), file=sys.stderr, flush=True)
    with Path(file).open("a") as kept:
        print(given, file=kept, flush=True)
        for line in sys.stdin:
            print(line, file=kept, flush=True)
            message = json.loads(line)
            params = message.get("params") or {}
            if message["method"] == "tools/call" and params["name"] == "crash":
                sys.exit(f"bye {forms(given)}")
            if message["method"] == "tools/call" and params["name"] == "log":
                note = {"level": "error", "data": {"given": given}, "logger": given}
                print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": note}), flush=True)
                print("no message:", given, flush=True)
            said = answer({**message, "method": "x"} if "--fail" in sys.argv else message, given)
            if said is not None:
                print(json.dumps(said), flush=True)


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main(sys.argv[1])
