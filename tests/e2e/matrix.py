"""What the official clients see of the official servers, feature by feature; `PAGE` has it as lists.

`python -m tests.e2e.matrix --write` rewrites those lists; run it in the root of a checkout. `tests/e2e/test_matrix.py`
holds the daemon to the same features.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

Era = Literal["legacy", "modern"]
PAGE = "docs/background/matrix.md"
USAGE = "usage: python -m tests.e2e.matrix --write\n"
VERSIONS: dict[Era, str] = {"legacy": "2025-11-25", "modern": "2026-07-28"}


class Client(NamedTuple):
    """A client, as it is started: `how` is an argument of its script; `piped`: it starts `mcpvisor stdio`."""

    title: str
    script: str
    how: str
    era: Era
    piped: bool = False


class Server(NamedTuple):
    """A server, as it is started; `pinned`: its entry says `era`."""

    title: str
    script: str
    era: Era
    pinned: bool = False


class Loss(NamedTuple):
    """What a feature is less between these eras over one transport: the text on the page, and what is seen."""

    feature: str
    client: Era
    server: Era
    transport: str
    text: str
    seen: Any


class Difference(NamedTuple):
    """What a client sees otherwise of a server of its own era without a daemon: the text on the page, what is seen."""

    feature: str
    text: str
    seen: Any


CLIENTS = {
    "python-1": Client("Python 1.x, HTTP", "mcp1_features.py", "http", "legacy"),
    "python-1-websocket": Client("Python 1.x, WebSocket", "mcp1_features.py", "websocket", "legacy"),
    "python-2-legacy": Client("Python 2.x, `legacy`", "mcp2_features.py", "legacy", "legacy"),
    "python-2": Client("Python 2.x", "mcp2_features.py", "auto", "modern"),
    "typescript-1": Client("TypeScript 1.x", "typescript_features.cjs", "sdk", "legacy"),
    "typescript-2-legacy": Client("TypeScript 2.x, default", "typescript_features.cjs", "default", "legacy"),
    "typescript-2": Client("TypeScript 2.x, `auto`", "typescript_features.cjs", "auto", "modern"),
    "python-1-stdio": Client("Python 1.x, `mcpvisor stdio`", "mcp1_features.py", "stdio", "legacy", piped=True),
    "python-2-stdio": Client("Python 2.x, `mcpvisor stdio`", "mcp2_features.py", "auto", "modern", piped=True),
    "typescript-1-stdio": Client(
        "TypeScript 1.x, `mcpvisor stdio`", "typescript_features.cjs", "sdk", "legacy", piped=True
    ),
    "typescript-2-stdio": Client(
        "TypeScript 2.x, `auto`, `mcpvisor stdio`", "typescript_features.cjs", "auto", "modern", piped=True
    ),
}
SERVERS = {
    "python-1": Server("Python 1.x", "python_1.py", "legacy"),
    "python-2-legacy": Server("Python 2.x, `era: legacy`", "python_2.py", "legacy", pinned=True),
    "python-2": Server("Python 2.x", "python_2.py", "modern"),
    "typescript-1": Server("TypeScript 1.x", "typescript_1.cjs", "legacy"),
    "typescript-2-legacy": Server("TypeScript 2.x, `era: legacy`", "typescript_2.cjs", "legacy", pinned=True),
    "typescript-2": Server("TypeScript 2.x", "typescript_2.cjs", "modern"),
}
TRANSPORTS = ("stdio", "http")
WISHED = ["error"]
LOUD = ["info", "warning", "error"]
EVERY = ["debug", *LOUD]
FEATURES: dict[str, tuple[str, Any]] = {
    "form": ("form", "accept Ada"),
    "address": ("address", ["accept", "https://example.com/open"]),
    "sample": ("sample", "Paris"),
    "sample with tools": ("sample with tools", "tool_use required capital_of France"),
    "roots": ("roots", "file:///home/ada"),
    "progress": ("progress", [1, 2, 3]),
    "logs": ("log messages", {"legacy": [LOUD, WISHED], "modern": [[], WISHED]}),
    "cancellation": ("cancellation", "yes"),
    "subscription": ("subscription", ["memo://one", "first"]),
    "completion": ("completion", ["Paris"]),
    "execute": ("form at `/mcp`", "accept Ada"),
}
"""What the page calls each, and what is seen where nothing is lost, if need be by the era of the client."""
UNASKED = "log messages over stdio only once the client sets a level"
LOSSES = (Loss("logs", "legacy", "modern", "stdio", UNASKED, [[], WISHED]),)
"""Over HTTP the servers speak both eras, and are spoken to in that of a client that can be asked something."""

DIRECT = [
    (client, server)
    for client, row in CLIENTS.items()
    for server, column in SERVERS.items()
    if row.era == column.era and row.how != "websocket" and not row.piped
]
"""What meets without a daemon, too, over HTTP: clients and servers of one era. No server has a WebSocket."""
HEEDLESS = Difference("logs", "log messages of every level, even where the client sets one", [EVERY, EVERY])
DIFFERENCES = {
    "python-1": HEEDLESS,
    "python-2-legacy": HEEDLESS,
    "typescript-1": HEEDLESS,
    "typescript-2-legacy": Difference("logs", "log messages of every level until the client sets one", [EVERY, WISHED]),
}
"""By server. Most leave it to the daemon which levels are told."""


def lost(feature: str, client: Client, server: Server) -> Loss | None:
    """Return what a feature is less there, if anything."""
    return next((loss for loss in LOSSES if loss[:3] == (feature, client.era, server.era)), None)


def expected(client: Client, server: Server, transport: str) -> dict[str, Any]:
    """Return the report of this client on this server, which is reached by this transport."""
    report: dict[str, Any] = {"version": VERSIONS[client.era]}
    for feature, (_, seen) in FEATURES.items():
        loss = lost(feature, client, server)
        whole = seen[client.era] if isinstance(seen, dict) else seen
        report[feature] = whole if loss is None or loss.transport != transport else loss.seen
    return report


def directly(client: str, server: str) -> dict[str, Any]:
    """Return the report of this client on this server without a daemon between them, of their names."""
    report = expected(CLIENTS[client], SERVERS[server], "http")
    del report["execute"]
    if (difference := DIFFERENCES.get(server)) is not None:
        report[difference.feature] = difference.seen
    return report


def lists() -> str:
    """Return the lists for the page: for each client what it sees of each server."""
    return "\n\n".join("\n".join(_of_client(name)) for name in CLIENTS)


def _of_client(client: str) -> Iterator[str]:
    yield f"### {CLIENTS[client].title}\n"
    for server, column in SERVERS.items():
        losses = [loss for feature in FEATURES if (loss := lost(feature, CLIENTS[client], column)) is not None]
        seen = ", but ".join(["everything", *(loss.text for loss in losses)])
        yield f"- {column.title}: {seen}{_without(client, server)}"


def _without(client: str, server: str) -> str:
    if (client, server) not in DIRECT:
        return ""
    difference = DIFFERENCES.get(server)
    return f". Without the daemon: {'the same' if difference is None else difference.text}"


def rewrite(text: str) -> str:
    """Return the page with the present lists. Raises ValueError if it has no place for one."""
    begin, end = "<!-- generated: matrix -->", "<!-- end: matrix -->"
    pieces = re.split(f"{begin}.*?{end}", text, flags=re.DOTALL)
    if len(pieces) != 2:
        raise ValueError(f"the matrix is there {len(pieces) - 1} times instead of once")
    return f"{begin}\n{lists()}\n{end}".join(pieces)


def main(arguments: list[str]) -> int:
    """Rewrite the page; return the exit code."""
    if arguments != ["--write"]:
        sys.stderr.write(USAGE)
        return 64
    page = Path(PAGE)
    page.write_text(rewrite(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
