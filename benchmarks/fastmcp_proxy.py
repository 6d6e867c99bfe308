"""FastMCP's own proxy of one server, run by the Python of an environment that has `fastmcp`.

`python fastmcp_proxy.py SESSIONS PORT COMMAND ARGS...`, or the address of a server in place of its command. Answers are
plain JSON and nothing is logged. SESSIONS is "isolated", what `create_proxy` does with a server by default (each
request has a session with it), or "shared": one session is opened beforehand for all requests, which is faster and
which FastMCP warns of, as contexts mix. With a number in place of it they are isolated, and the proxy waits at most so
many seconds for an answer.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


async def main() -> None:
    """Serve until killed."""
    client = importlib.import_module("fastmcp.client")
    transports = importlib.import_module("fastmcp.client.transports")
    sessions, port, command, *args = sys.argv[1:]
    address = command.startswith("http")
    transport = transports.StreamableHttpTransport(command) if address else transports.StdioTransport(command, args)
    if sessions == "isolated":
        await _serve(transport, int(port))
    elif sessions != "shared":
        await _serve(client.Client(transport, timeout=float(sessions)), int(port))
    else:
        async with client.Client(transport, mode="legacy") as shared:
            await _serve(shared, int(port))


async def _serve(target: Any, port: int) -> None:
    proxy = importlib.import_module("fastmcp.server").create_proxy(target, name="proxy")
    await proxy.run_http_async(
        host="127.0.0.1",
        port=port,
        path="/mcp",
        json_response=True,
        show_banner=False,
        log_level="error",
        uvicorn_config={"access_log": False},
    )


if __name__ == "__main__":
    importlib.import_module("anyio").run(main)
