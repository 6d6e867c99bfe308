"""How soon many subscribers know of one change of a resource, and what each of them costs the daemon.

All are subscribed to the same resource of one server; directly, the same ones are subscribed to that server itself. How
many there can be is up to the descriptors: clients get half of them. See `subscribers.py` for the subscribers.
"""

from __future__ import annotations

import base64
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from actors.protocol.agreement.versions import LATEST_LEGACY, LATEST_MODERN, Era
from benchmarks import client as mcp
from benchmarks.bridge import door, entries, servers
from benchmarks.bridge_server import MEMO
from benchmarks.machine import ROOT, memory, pause, until
from benchmarks.running import Place, daemon, until_ready
from benchmarks.table import Row, percentile, ratios

WRITE: mcp.Tool = ("write", {})
APART_S = 1.0
"""Between changes: longer than the least time between two notifications of the same."""
PING_S = 0.002
SPARE = 64
"""Descriptors that are kept for other things than subscribers."""


class Kind(msgspec.Struct, frozen=True):
    """How a subscriber listens, and how many of them are tried."""

    name: str
    era: Era
    websocket: bool = False
    most: int = 10_000


KINDS = (
    Kind("a WebSocket each", "legacy", websocket=True),
    Kind("a GET stream each, legacy", "legacy"),
    Kind("`subscriptions/listen` each, over HTTP", "modern", most=1000),
)


class Told(msgspec.Struct, frozen=True):
    """Of all changes: ms from each to its arrival at a subscriber, how many subscribers there were, and KiB of each.

    Beside them another client is answered pings: the slowest of each change, and of each pause before it, in ms.
    """

    p50_ms: list[float]
    p99_ms: list[float]
    count: int
    each_kib: float
    slowest_ms: list[float]
    before_ms: list[float]

    def __str__(self) -> str:
        middle, late = percentile(self.p50_ms, 0.5), percentile(self.p99_ms, 0.5)
        return f"p50 {middle:,.0f} ms, p99 {late:,.0f} ms"


class Subscribed(msgspec.Struct, frozen=True):
    """The process of the subscribers, of which there are `count`."""

    process: subprocess.Popen[bytes]
    count: int

    def ask(self, line: str) -> Any:
        """Say a line and return what it is answered with. Raises `RuntimeError` if the process has ended."""
        return _ask(self.process, line.encode())


def run(directory: Path, counts: Sequence[int], rounds: int) -> list[Row]:
    """Measure each kind of subscriber in each number that is possible, with so many changes."""
    rows: list[Row] = []
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    possible = (soft - SPARE) // 2 - SPARE
    with servers(directory) as ports:
        settings: dict[str, Any] = {"max_connections": 20_000, "max_sessions": 20_000, "websocket_ping_s": 3600}
        for kind in KINDS:
            for count in sorted({min(count, kind.most, possible) for count in counts}):
                place = Place(directory / f"{len(rows)}")
                place.directory.mkdir()
                with daemon(place, entries(ports), **settings) as ours:
                    until_ready(ours.port)
                    path = door(kind.era)
                    through = _told(kind, ours.port, path, ports[kind.era], count, rounds, ours.process.pid)
                direct = (
                    None if kind.websocket else _told(kind, ports[kind.era], "/mcp", ports[kind.era], count, rounds)
                )
                rows.append(_row(kind, through, direct))
    return rows


def _row(kind: Kind, through: Told, direct: Told | None) -> Row:
    return Row(
        what=f"one change, {through.count:,} subscribers, {kind.name}",
        measured=f"{through}; {through.each_kib:.0f} KiB each; others wait {_longest(through)}",
        compared=f"direct: {direct}" if direct else "",
        ratio=str(ratios(through.p99_ms, direct.p99_ms)) if direct else "",
    )


def _longest(told: Told) -> str:
    middle, before = percentile(told.slowest_ms, 0.5), percentile(told.before_ms, 0.5)
    return f"{middle:.0f} ms at most (without a change {before:.0f} ms)"


def _told(kind: Kind, port: int, path: str, server: int, count: int, rounds: int, pid: int = 0) -> Told:
    before = memory(pid).pss_mib if pid else 0.0
    middle, late, slowest_ms, quiet_ms = [], [], [], []
    with (
        opened({"port": port, "count": count, **_opening(kind, port, path)}) as subscribers,
        mcp.Client(server, kind.era) as writer,
        _pinging(port if pid else 0) as took_ms,
    ):
        each_kib = (memory(pid).pss_mib - before) * 1024 / subscribers.count if pid else 0.0
        for _ in range(rounds):
            took_ms.clear()
            pause(APART_S)
            subscribers.ask("begin")
            quiet_ms.append(max(took_ms, default=0.0))
            took_ms.clear()
            changed_at = writer.call(WRITE)["content"][0]["text"]
            late_ms = subscribers.ask(changed_at)["late_ms"]
            if len(late_ms) < subscribers.count:
                raise RuntimeError(f"{len(late_ms)} of {subscribers.count} subscribers were told")
            middle.append(percentile(late_ms, 0.5))
            late.append(percentile(late_ms, 0.99))
            if pid:
                _one_more(took_ms)
            slowest_ms.append(max(took_ms, default=0.0))
    return Told(middle, late, subscribers.count, each_kib, slowest_ms, quiet_ms)


def _one_more(took_ms: list[float]) -> None:
    """Wait for the ping that was under way."""
    pings = len(took_ms)
    until(lambda: len(took_ms) > pings, "a ping is answered")


@contextmanager
def _pinging(port: int) -> Iterator[list[float]]:
    """Ping the daemon again and again, in a thread: the list gets how long each took, in ms. Port 0: nobody does."""
    over = threading.Event()
    took_ms: list[float] = []

    def ping() -> None:
        with mcp.Client(port) as client:
            while not over.wait(PING_S):
                begin = time.perf_counter()
                client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, client.headers)
                took_ms.append((time.perf_counter() - begin) * 1000)

    thread = threading.Thread(target=ping)
    if port:
        thread.start()
    try:
        yield took_ms
    finally:
        over.set()
        if port:
            thread.join()


@contextmanager
def opened(order: dict[str, Any]) -> Iterator[Subscribed]:
    """Open subscribers, as `subscribers.py` wants them ordered, for the block."""
    command = [sys.executable, "-I", str(ROOT / "benchmarks" / "subscribers.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Subscribed(process, _ask(process, msgspec.json.encode(order))["open"])
    finally:
        process.kill()
        process.communicate()


def _ask(process: subprocess.Popen[bytes], line: bytes) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    if not (answer := process.stdout.readline()):
        raise RuntimeError("the subscribers have ended")
    return msgspec.json.decode(answer)


def _opening(kind: Kind, port: int, path: str) -> dict[str, Any]:
    """Return what a subscriber says, as `subscribers.py` wants it."""
    if kind.era == "modern":
        return {"upgrade": "", "setup": [], "last": _text(_listen(port, path))}
    subscribe = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": MEMO}}
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    if kind.websocket:
        setup = [mcp.frame(mcp.initialize()), "!" + mcp.frame(initialized), mcp.frame(subscribe)]
        return {"upgrade": mcp.upgrade(port, path), "setup": setup, "last": ""}
    headers = {**mcp.ACCEPT, "MCP-Protocol-Version": LATEST_LEGACY, "Mcp-Session-Id": "{session}"}
    posts = [mcp.posted(port, path, mcp.initialize(), mcp.ACCEPT)]
    posts += [mcp.posted(port, path, message, headers) for message in (initialized, subscribe)]
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *(f"{name}: {text}" for name, text in headers.items())]
    return {"upgrade": "", "setup": list(map(_text, posts)), "last": _text("\r\n".join([*lines, "", ""]).encode())}


def _listen(port: int, path: str) -> bytes:
    params = {"notifications": {"resourceSubscriptions": [MEMO]}, "_meta": mcp.said_each_time()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    headers = {**mcp.ACCEPT, "MCP-Protocol-Version": LATEST_MODERN, "Mcp-Method": "subscriptions/listen"}
    return mcp.posted(port, path, message, headers)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
