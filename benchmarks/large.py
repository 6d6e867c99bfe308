"""Large answers: how long the official Python client waits for one through the daemon, and directly.

The servers are of the same SDK (`large_server`), one for each transport, and so is the client (`large_client`), which
has one session at each server and one at the door of each server at the daemon. It makes one call after the other, so
that what is compared stands side by side.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import ROOT, free_port, program
from benchmarks.running import Place, daemon, entry, until_ready
from benchmarks.table import Aim, Row, ratios, spread

MB: Final = 1_000_000
SIZES: Final = {MB: 5, 4 * MB: 3, 16 * MB: 1}
"""With how many times the rounds: what takes 20 ms is doubled by one turn of whatever else the machine does."""
LIMIT: Final = 32 * MB
"""What the daemon allows in this run: a text of 16 MB and what is around it are more than its default of 16 MiB."""
AIM: Final = Aim("<=", 2.0)
SERVER: Final = str(ROOT / "benchmarks" / "large_server.py")
CLIENT: Final = str(ROOT / "benchmarks" / "large_client.py")
KINDS: Final = {
    "json": ("Streamable HTTP, JSON", "http", "/mcp"),
    "events": ("Streamable HTTP, event stream", "http", "/mcp"),
    "sse": ("HTTP+SSE", "sse", "/sse"),
    "websocket": ("a WebSocket", "websocket", "/ws"),
    "stdio": ("stdio", "stdio", ""),
}
"""By the word of `large_server`: what it is called, the transport of the client, the path."""


@contextmanager
def _servers(python: Path, directory: Path) -> Iterator[dict[str, int]]:
    """Run all servers that have an address; their ports."""
    with ExitStack() as stack:
        ports = {}
        for kind in KINDS:
            if kind != "stdio":
                ports[kind] = port = free_port()
                command = [str(python), SERVER, kind, str(port)]
                stack.enter_context(program(command, port, directory / f"large-{kind}.log", end_s=5.0))
        yield ports


def run(directory: Path, python: Path | None, rounds: int, sizes: Mapping[int, int] = SIZES) -> list[Row]:
    """Measure; `python` has mcp 1.x with its extra `ws`: without one nothing is compared."""
    if python is None:
        return []
    piped = (str(python), SERVER, "stdio")
    with _servers(python, directory) as ports:
        where: dict[str, Any] = {
            kind: f"{'ws' if kind == 'websocket' else 'http'}://127.0.0.1:{port}{KINDS[kind][2]}"
            for kind, port in ports.items()
        }
        more = {"max_line_bytes": LIMIT, "idle_timeout_s": 0}
        entries = {kind: {"url": url, **more} for kind, url in where.items()}
        entries["stdio"] = entry(piped, **more)
        with daemon(Place(directory), entries) as ours:
            until_ready(ours.port)
            doors = [["http", f"http://127.0.0.1:{ours.port}/mcp/servers/{kind}"] for kind in KINDS]
            direct = [[KINDS[kind][1], where.get(kind, piped)] for kind in KINDS]
            repeated = [(size, times * rounds) for size, times in sizes.items()]
            asked = {"sizes": repeated, "pairs": [*zip(doors, direct, strict=True)]}
            command = [str(python), "-W", "ignore", CLIENT]
            done = subprocess.run(command, input=json.dumps(asked).encode(), stdout=subprocess.PIPE, check=True)
    took = json.loads(done.stdout)
    return [
        _row(f"an answer of {size // MB} MB, {KINDS[kind][0]}", rounds_of_size, place)
        for size, rounds_of_size in zip(sizes, took, strict=True)
        for place, kind in enumerate(KINDS)
    ]


def _row(what: str, rounds: Sequence[Sequence[tuple[float, float]]], place: int) -> Row:
    ours, direct = [each[place][0] for each in rounds], [each[place][1] for each in rounds]
    ratio = ratios(ours, direct)
    return Row(
        what=what,
        measured=f"{spread(ours)} s",
        compared=f"the same client, direct: {spread(direct)} s",
        ratio=str(ratio),
        aim=AIM,
        value=ratio.median,
    )
