"""`python -m benchmarks.remotes`: published servers over HTTP, HTTP+SSE and WebSocket, behind the daemon.

Installs them by the ordinary clients of npm and PyPI into a directory of its own, starts them, and calls a tool of each
through one daemon. Needs the package indexes, and Node.js. Nothing is compared: the table says what was found out and
what was answered.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import client as mcp
from benchmarks.machine import ROOT, free_port, program, until
from benchmarks.running import Place, daemon, status

INSTALL_S = 900.0
NPM = ("@modelcontextprotocol/server-everything", "supergateway")
FASTMCP = (
    "import sys\nfrom fastmcp import FastMCP\nm = FastMCP('fastmcp')\n"
    "@m.tool\ndef add(a: int, b: int) -> int:\n    return a + b\n"
    "m.run(transport=sys.argv[1], host='127.0.0.1', port=int(sys.argv[2]), show_banner=False)\n"
)
SDK = str(ROOT / "tests" / "e2e" / "sdk_server.py")


class Served(msgspec.Struct, frozen=True):
    """How a published server is started, where it is, and what is called. `{port}` is put in."""

    command: tuple[str, ...]
    path: str
    tool: str
    arguments: dict[str, Any]
    package: str
    env: dict[str, str] = {}


ADD = ("add", {"a": 2, "b": 40})


def main() -> int:
    """Install, start, call; print the table. Return 1 if a call was not answered."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remotes", description=__doc__)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    parser.add_argument(
        "--into", type=Path, default=Path(base) / "mcpvisor" / "remotes", help="where the servers are installed"
    )
    arguments = parser.parse_args()
    served = _served(arguments.into)
    with tempfile.TemporaryDirectory(prefix="remotes-") as directory, ExitStack() as stack:
        entries = {
            name: {"url": stack.enter_context(_running(name, one, Path(directory)))} for name, one in served.items()
        }
        rows = _called(served, entries, Path(directory))
    print(
        "| server | package | transport found | revision | tools | known after | call | answer |\n" + "| --- " * 8 + "|"
    )
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return int(any(row[-1].startswith("**") for row in rows))


def _served(into: Path) -> Mapping[str, Served]:
    """Install what is not there yet; return the servers."""
    modules = into / "npm" / "node_modules"
    if not (modules / "supergateway").exists():
        (into / "npm").mkdir(parents=True, exist_ok=True)
        _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(into / "npm"), *NPM)
    pythons = {
        "fastmcp": _environment(into / "fastmcp", ("fastmcp>=3",)),
        "sdk1": _environment(into / "sdk1", ("mcp>=1.20,<2", "websockets", "mcp-proxy", "mcp-server-time<2026")),
        "sdk2": _environment(into / "sdk2", ("mcp>=2.3,<3",)),
    }
    return {**_of_node(modules, pythons["sdk1"]), **_of_python(pythons)}


def _of_node(modules: Path, python: Path) -> dict[str, Served]:
    everything = str(modules / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")
    gateway = str(modules / "supergateway" / "dist" / "index.js")
    behind = f"{python} -m mcp_server_time"
    echo, clock = ("echo", {"message": "hello"}), ("get_current_time", {"timezone": "Europe/Berlin"})
    package, port = NPM[0], {"PORT": "{port}"}
    listen = ("node", gateway, "--stdio", behind, "--port", "{port}", "--logLevel", "none", "--outputTransport")
    return {
        "everything-http": Served(("node", everything, "streamableHttp"), "http:/mcp", *echo, package, port),
        "everything-sse": Served(("node", everything, "sse"), "http:/sse", *echo, package, port),
        "supergateway-http": Served((*listen, "streamableHttp"), "http:/mcp", *clock, NPM[1]),
        "supergateway-stateful": Served((*listen, "streamableHttp", "--stateful"), "http:/mcp", *clock, NPM[1]),
        "supergateway-sse": Served((*listen, "sse"), "http:/sse", *clock, NPM[1]),
        "supergateway-ws": Served((*listen, "ws"), "ws:/message", *clock, NPM[1]),
    }


def _of_python(pythons: Mapping[str, Path]) -> dict[str, Served]:
    served = {}
    for transport, path in (("http", "http:/mcp"), ("sse", "http:/sse")):
        command: tuple[str, ...] = (str(pythons["fastmcp"]), "-c", FASTMCP, transport, "{port}")
        served[f"fastmcp-{transport}"] = Served(command, path, *ADD, "fastmcp")
    listens = {"http": "http:/mcp", "json": "http:/mcp", "sse": "http:/sse", "websocket": "ws:/"}
    for name in ("sdk1", "sdk2"):
        for transport, path in listens.items():
            if (name, transport) != ("sdk2", "websocket"):  # which it has not
                command = (str(pythons[name]), SDK, transport, "{port}")
                served[f"{name}-{transport}"] = Served(command, path, *ADD, "mcp")
    proxy = (str(pythons["sdk1"].with_name("mcp-proxy")), "--port", "{port}", "--", str(pythons["sdk1"]))
    clock = ("get_current_time", {"timezone": "Europe/Berlin"})
    for transport, path in (("http", "http:/mcp"), ("sse", "http:/sse")):
        served[f"mcp-proxy-{transport}"] = Served((*proxy, "-m", "mcp_server_time"), path, *clock, "mcp-proxy")
    return served


def _environment(root: Path, packages: Sequence[str]) -> Path:
    python = root / "bin" / "python"
    if not (root / "made").exists():
        _run(sys.executable, "-m", "venv", str(root))
        _run(str(python), "-m", "pip", "install", "--quiet", *packages)
        (root / "made").touch()
    return python


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_S, stdout=subprocess.DEVNULL)


@contextmanager
def _running(name: str, served: Served, directory: Path) -> Iterator[str]:
    """Run a server for the block; its address."""
    port = str(free_port())
    command = [part.replace("{port}", port) for part in served.command]
    env = {key: value.replace("{port}", port) for key, value in served.env.items()}
    with program(command, int(port), directory / f"{name}.log", env=env, end_s=5.0):
        scheme, _, path = served.path.partition(":")
        yield f"{scheme}://127.0.0.1:{port}{path}"


def _called(served: Mapping[str, Served], entries: Mapping[str, Any], directory: Path) -> list[list[str]]:
    began = time.monotonic()
    known: dict[str, float] = {}

    def all_known() -> bool:
        for row in status(running.port)["servers"]:
            if row.get("tools") is not None:
                known.setdefault(row["server"], time.monotonic() - began)
        return len(known) == len(served)

    with daemon(Place(directory), entries) as running:
        try:
            until(all_known, "all servers are known", 60.0)
        except TimeoutError as error:
            print(error, file=sys.stderr)
        rows = {row["server"]: row for row in status(running.port)["servers"]}
        with mcp.Client(running.port) as session:
            answers = {name: _answer(session, name, one) for name, one in served.items()}
    found = [(name, one, rows[name]) for name, one in served.items()]
    return [
        [
            name,
            one.package,
            row["transport"],
            row.get("protocol_version") or "-",
            str(row.get("tools", "-")),
            f"{known[name]:.1f} s" if name in known else "never",
            one.tool,
            answers[name] if name in known else f"**{row.get('last_error')}**",
        ]
        for name, one, row in found
    ]


def _answer(session: mcp.Client, name: str, served: Served) -> str:
    given = {"tool_path": f"{name}:{served.tool}", "arguments": served.arguments}
    answer = session.answer(("execute_mcp_tool", given))
    result = answer.get("result", {})
    if not result or result.get("isError"):
        return f"**{msgspec.json.encode(answer).decode()[:200]}**"
    return " ".join(str(result["content"][0].get("text", "")).split())[:60]


if __name__ == "__main__":
    sys.exit(main())
