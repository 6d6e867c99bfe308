"""FastMCP's own proxy of one stdio server, run by the Python of an environment that has `fastmcp`.

`python fastmcp_proxy.py PORT COMMAND ARGS...`. One client session with the server is opened beforehand and shared by
all requests, answers are plain JSON, nothing is logged: what FastMCP offers for speed is on.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


async def main(anyio: Any) -> None:
    """Serve until killed."""
    client = importlib.import_module("fastmcp.client")
    transports = importlib.import_module("fastmcp.client.transports")
    server = importlib.import_module("fastmcp.server")
    port, command, *args = sys.argv[1:]
    backend = client.Client(transports.StdioTransport(command, args), mode="legacy")
    async with backend:
        proxy = server.create_proxy(backend, name="proxy")
        await proxy.run_http_async(
            host="127.0.0.1",
            port=int(port),
            path="/mcp",
            json_response=True,
            show_banner=False,
            log_level="error",
            uvicorn_config={"access_log": False},
        )


if __name__ == "__main__":
    loop = importlib.import_module("anyio")
    loop.run(main, loop)
