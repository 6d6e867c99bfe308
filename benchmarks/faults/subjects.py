"""What the faults are tried on: this daemon, and proxies that can be installed, each started as its documentation says.

Where one has a documented deadline for calls, it is `CALL_S`, so that the client's patience is longer.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from benchmarks import peers
from benchmarks.client import Tool
from benchmarks.machine import ROOT
from benchmarks.running import Place, entry
from supervisor.host.version import VERSION

CALL_S = 4.0
NAME = "it"

Server = tuple[str, ...]
"""The command of a server; of one over HTTP its address alone."""
Start = Callable[[Server, int, Path], list[str]]
"""Makes the command of a proxy of a server, at a port, with a directory for its files."""


def _as_it_is(tool: Tool) -> Tool:
    return tool


class Subject(msgspec.Struct, frozen=True):
    """A program that the faults are tried on. `how` is its command line, without the server's.

    `remote`: it can have a server over HTTP. `restarts`: it starts a dead server again, for a new session at least.
    `tool` makes of a call of the server's tool a call of the subject's.
    """

    name: str
    version: str
    how: str
    start: Start
    path: str = "/mcp"
    remote: bool = True
    restarts: bool = True
    tool: Callable[[Tool], Tool] = _as_it_is


def _ours(server: Server, port: int, directory: Path) -> list[str]:
    settings = {"call_timeout_s": CALL_S}
    remote = server[0].startswith("http")
    one = {"url": server[0], **settings} if remote else entry(server, **settings)
    config = Place(directory).write({NAME: one}, port, log_level="warning")
    return [sys.executable, "-m", "supervisor", "run", "--config", str(config)]


def subjects() -> Iterator[Subject]:
    """Yield this daemon, and each of the others that can be installed here."""
    how = f'mcpvisor run --config ..., "call_timeout_s": {CALL_S:g}, at /mcp/servers/NAME'
    yield Subject("mcpvisor", VERSION, how, _ours, f"/mcp/servers/{NAME}")
    yield from _of_python()
    yield from _of_node()


def _of_python() -> Iterator[Subject]:
    python = peers.prepared(None)
    if python is not None:
        script = str(ROOT / "benchmarks" / "fastmcp_proxy.py")
        version = peers.version(python, "fastmcp")
        start = partial(_at_port, [str(python), script, f"{CALL_S:g}"])
        how = f"create_proxy(Client(transport, timeout={CALL_S:g})).run_http_async(json_response=True)"
        yield Subject("FastMCP's proxy", version, how, start)
    python = peers.prepared(None, ("mcp-proxy",), "mcp_proxy", "mcp-proxy")
    if python is not None:
        version = peers.version(python, "mcp-proxy")
        start = partial(_behind_dashes, [str(python.with_name("mcp-proxy"))])
        yield Subject("Python mcp-proxy", version, "mcp-proxy --port PORT -- ...", start, remote=False, restarts=False)

    python = peers.prepared(None, ("mcp-hangar",), "mcp_hangar", "mcp-hangar")
    if python is not None:
        version = peers.version(python, "mcp-hangar")
        start = partial(_hangar, str(python.with_name("mcp-hangar")))
        how = f'mcp-hangar serve --config ... --http --port PORT, by hangar_call with "timeout": {CALL_S:g}'
        yield Subject("MCP Hangar", version, how, start, tool=_by_hangar)


def _hangar(program: str, server: Server, port: int, directory: Path) -> list[str]:
    remote = server[0].startswith("http")
    one = {"mode": "remote", "endpoint": server[0]} if remote else {"mode": "subprocess", "command": list(server)}
    config = directory / "config.yaml"
    store = {"path": str(directory / "events.db")}
    config.write_text(json.dumps({"mcp_servers": {NAME: one}, "event_store": store}))  # JSON is YAML
    return [program, "serve", "--config", str(config), "--http", "--port", str(port), "--log-level", "ERROR"]


def _by_hangar(tool: Tool) -> Tool:
    name, arguments = tool
    return "hangar_call", {"calls": [{"mcp_server": NAME, "tool": name, "arguments": arguments, "timeout": CALL_S}]}


def _of_node() -> Iterator[Subject]:
    if gateway := peers.node_script("supergateway", "dist/index.js"):
        how = "supergateway --outputTransport streamableHttp --stateful --port PORT --stdio ..."
        start = partial(_one_text, list(gateway))
        yield Subject("supergateway", _npm_version(gateway), how, start, remote=False)
    if proxy := peers.node_script("mcp-proxy", "dist/bin/mcp-proxy.mjs"):
        flags = ["--server", "stream", "--requestTimeout", f"{CALL_S * 1000:g}"]
        how = f"mcp-proxy {shlex.join(flags)} --port PORT -- ..."
        start = partial(_behind_dashes, [*proxy, "--host", "127.0.0.1", *flags])
        yield Subject("npm mcp-proxy", _npm_version(proxy), how, start, remote=False, restarts=False)


def _at_port(command: list[str], server: Server, port: int, _: Path) -> list[str]:
    return [*command, str(port), *server]


def _behind_dashes(command: list[str], server: Server, port: int, _: Path) -> list[str]:
    return [*command, "--port", str(port), "--", *server]


def _one_text(command: list[str], server: Server, port: int, _: Path) -> list[str]:
    flags = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none"]
    return [*command, "--port", str(port), *flags, "--stdio", shlex.join(server)]


def _npm_version(command: tuple[str, ...]) -> str:
    packages = (folder / "package.json" for folder in Path(command[1]).parents)
    return str(json.loads(next(file for file in packages if file.exists()).read_text())["version"])
