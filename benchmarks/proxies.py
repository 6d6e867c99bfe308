"""Other proxies of one stdio server, as their READMEs start them for many requests: what we are compared with."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks import peers
from benchmarks.machine import free_port, program
from benchmarks.running import ECHO, Running

Command = list[str]


class Proxy(msgspec.Struct, frozen=True):
    """One of them: its name, what it is started with at a port, and whether it answers with events only."""

    name: str
    command: Callable[[int], Command]

    @contextmanager
    def running(self, directory: Path) -> Iterator[Running]:
        """Run it before the echo server."""
        port = free_port()
        with program(self.command(port), port, directory / "proxy.log", end_s=5.0) as process:
            yield Running(port, process)


def installed() -> Iterator[Proxy]:
    """Yield those that can be installed here; the two for Node.js where there is Node.js."""
    python = peers.prepared(None, ("mcp-proxy",), "mcp_proxy", "mcp-proxy")
    if python is not None:
        script = str(python.parent / "mcp-proxy")
        yield Proxy("Python mcp-proxy", lambda port: [script, "--port", str(port), "--", *ECHO])
    if gateway := peers.node_script("supergateway", "dist/index.js"):
        flags = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--stdio", shlex.join(ECHO)]
        yield Proxy("supergateway", lambda port: [*gateway, "--port", str(port), *flags])
    if proxy := peers.node_script("mcp-proxy", "dist/bin/mcp-proxy.mjs"):
        listen = ["--host", "127.0.0.1", "--server", "stream"]
        yield Proxy("npm mcp-proxy", lambda port: [*proxy, "--port", str(port), *listen, "--", *ECHO])
