"""A minimal MCP server over Streamable HTTP on bare sockets: what it costs is close to what any server must cost.

`python -m benchmarks.remote_echo PORT [--delay S]`: whatever the path is, it has the tool `echo`. Every
answer comes S seconds late, as from far away. Legacy era (2025-11-25), answers in JSON.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import Any

import trio

from benchmarks.bare_http import Requests

ECHO = {
    "name": "echo",
    "description": "Answer with the text that was given.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--delay", type=float, default=0.0)
    arguments = parser.parse_args()
    handler = partial(_converse, delay_s=arguments.delay)
    trio.run(partial(trio.serve_tcp, handler, arguments.port, host="127.0.0.1", backlog=1000))


async def _converse(stream: trio.SocketStream, delay_s: float) -> None:
    requests = Requests(stream)
    try:
        while (request := await requests.next()) is not None:
            head, body = request
            if delay_s:
                await trio.sleep(delay_s)
            await stream.send_all(_answer(head, body))
    except trio.BrokenResourceError:
        pass


def _answer(head: str, body: bytes) -> bytes:
    if not head.startswith("post"):
        return _response("405 No" if head.startswith("get") else "200 OK", b"")
    message = json.loads(body)
    if "id" not in message:
        return _response("202 Accepted", b"")
    answer = {"jsonrpc": "2.0", "id": message["id"], **_told(message)}
    session = "mcp-session-id: one\r\n" if message["method"] == "initialize" else ""
    return _response("200 OK", json.dumps(answer, separators=(",", ":")).encode(), session)


def _response(status: str, body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _told(message: dict[str, Any]) -> dict[str, Any]:
    match message["method"]:
        case "initialize":
            return {"result": INFO}
        case "tools/list":
            return {"result": {"tools": [ECHO]}}
        case "tools/call":
            text = message["params"]["arguments"]["text"]
            return {"result": {"content": [{"type": "text", "text": text}]}}
        case "ping":
            return {"result": {}}
    return {"error": {"code": -32601, "message": "unknown method"}}


if __name__ == "__main__":
    main()
