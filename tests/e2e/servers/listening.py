"""How the servers of the matrix are run: over stdio, or on a port of the system's choice, which is the first line."""

from __future__ import annotations

import importlib
import socket
import sys
from typing import Any


def run(server: Any) -> None:
    """Run a `FastMCP` or an `MCPServer` as the first argument says, `stdio` or `http`."""
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(100)  # who comes before the application is there waits
    print(listener.getsockname()[1], flush=True)
    uvicorn: Any = importlib.import_module("uvicorn")
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
