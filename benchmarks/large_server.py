"""A server of the official Python SDK 1.x with one tool, whose answers are large: for `large`.

`python large_server.py KIND [PORT]`: `json` and `events` are Streamable HTTP that answers in either, `sse` is HTTP+SSE,
`websocket` what the SDK 1.x calls so, `stdio` needs no port. The Python must have mcp 1.x with its extra `ws`.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

LINE = "a line of text, " * 6 + "\n"


def large(size: int) -> str:
    """Answer with a text of so many bytes."""
    return LINE * (size // len(LINE))


def main(kind: str, port: int) -> None:
    """Serve until killed."""
    server = importlib.import_module("mcp.server.fastmcp").FastMCP(
        "large", host="127.0.0.1", port=port, log_level="WARNING", json_response=kind == "json"
    )

    server.tool(structured_output=False)(large)
    match kind:
        case "stdio" | "sse":
            server.run(kind)
        case "websocket":
            importlib.import_module("anyio").run(_serve_socket, server, port)
        case _:
            server.run("streamable-http")


async def _serve_socket(server: Any, port: int) -> None:
    websocket_server = importlib.import_module("mcp.server.websocket").websocket_server
    inner = server._mcp_server

    async def speak(websocket: Any) -> None:
        async with websocket_server(websocket.scope, websocket.receive, websocket.send) as (reading, writing):
            await inner.run(reading, writing, inner.create_initialization_options())

    route = importlib.import_module("starlette.routing").WebSocketRoute("/ws", speak)
    app = importlib.import_module("starlette.applications").Starlette(routes=[route])
    uvicorn = importlib.import_module("uvicorn")
    await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
