"""The reference server of the Python SDK, in one era or both: `--era ERA --transport TRANSPORT [--overlay]`.

Over HTTP it listens on a free port and writes which as its first line. Its package has to be importable, see
`Installation.reference`.
"""

from __future__ import annotations

import argparse
import importlib
import io
import socket
import sys
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from tests.conformance import installation
from tests.conformance.era_lock import LockedApp, LockedInput
from tests.conformance.overlay import ask_by_requests, ask_by_results

RETRY_MS = 100
"""After which a client whose stream ended may ask for it again: as the reference has it."""


def main() -> None:
    """Serve until the end of the input, or of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--era", choices=["dual", "legacy", "modern"], default="dual")
    parser.add_argument("--transport", choices=["stdio", "http"], default="stdio")
    parser.add_argument("--overlay", action="store_true", help="ask in the way of --era what the other era's tools ask")
    chosen = parser.parse_args()
    reference = importlib.import_module(f"{installation.REFERENCE}.server")
    if chosen.overlay:
        ask_by_requests(reference) if chosen.era == "legacy" else ask_by_results(reference)
    if chosen.transport == "http":
        _listen(reference, chosen.era)
    else:
        anyio.run(_serve_stdio, reference.mcp, chosen.era)


def _listen(reference: Any, era: Any) -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(100)  # who comes before the application is there waits
    print(listener.getsockname()[1], flush=True)
    app = reference.mcp.streamable_http_app(event_store=reference.event_store, retry_interval=RETRY_MS)
    uvicorn = importlib.import_module("uvicorn")
    config = uvicorn.Config(app if era == "dual" else LockedApp(app, era), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


class _Output:
    """Standard output, in whole lines: the SDK writes to it, and the lock does."""

    def __init__(self) -> None:
        self._file = anyio.wrap_file(io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8"))
        self._turn = anyio.Lock()

    async def write(self, line: str) -> None:
        async with self._turn:
            await self._file.write(line)
            await self._file.flush()

    async def flush(self) -> None:
        """Nothing waits."""


async def _serve_stdio(server: Any, era: Any) -> None:
    """As the SDK does it, with the lock in between. It is private there how a server is run on streams."""
    output: Any = _Output()
    lines: Any = anyio.wrap_file(io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8"))
    given: Any = lines if era == "dual" else LockedInput(lines, output.write, era)
    async with stdio_server(given, output) as (read, write):
        lowlevel = server._lowlevel_server
        await lowlevel.run(read, write, lowlevel.create_initialization_options())


if __name__ == "__main__":
    main()
