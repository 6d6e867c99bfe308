"""A server made with the official Python SDK, 1.x or 2.x, as the interpreter has it. `sdk_server.py TRANSPORT [PORT]`.

It listens on that port, or a free one, and writes which as its first line.
"""

from __future__ import annotations

import importlib
import socket
import sys
from typing import Annotated, Any


def application(transport: str) -> Any:
    """Return the ASGI application for `http`, `json`, `sse` or `websocket`."""
    try:
        server = importlib.import_module("mcp.server.mcpserver").MCPServer("sdk2")
        options: dict[str, Any] = {"json_response": transport == "json"}
    except ImportError:
        server = importlib.import_module("mcp.server.fastmcp").FastMCP("sdk1", json_response=transport == "json")
        options = {}
    offer(server)
    if transport == "websocket":
        return over_websockets(server._mcp_server)
    return server.sse_app() if transport == "sse" else server.streamable_http_app(**options)


def offer(server: Any) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    def fail() -> None:
        raise ValueError("out of order")

    def route(region: str) -> str:
        return region

    field = importlib.import_module("pydantic").Field(json_schema_extra={"x-mcp-header": "Region"})
    route.__annotations__["region"] = Annotated[str, field]
    for function in (add, fail, route):
        server.tool()(function)
    server.resource("memo://one")(memo)


def memo() -> str:
    return "hello"


def over_websockets(server: Any) -> Any:
    websocket_server = importlib.import_module("mcp.server.websocket").websocket_server

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            async with websocket_server(scope, receive, send) as (read, write):
                await server.run(read, write, server.create_initialization_options())

    return app


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    listener.listen(100)  # who comes before the application is there waits
    print(listener.getsockname()[1], flush=True)
    uvicorn = importlib.import_module("uvicorn")
    config = uvicorn.Config(application(sys.argv[1]), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
