"""How long the worst requests a client may send hold the loop: `python -m benchmarks.worst_requests [PART OF A NAME]`.

A daemon without servers runs in this loop beside a heartbeat of a millisecond. A thread sends each case on a fresh
connection, throws the answers away, and asks for `/healthz` on another one meanwhile. Columns: the longest time the
loop was held (by the clock, and in processor time, which does not count what else the machine does), and the worst
`/healthz`. `cases` can be used by other benchmarks; a case is bytes for a fresh connection.
"""

from __future__ import annotations

import base64
import os
import select
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from supervisor.config import Configuration, load
from supervisor.daemon import Daemon
from supervisor.datadir import open_data_dir
from supervisor.front.serve import open_sockets
from supervisor.pauses import keep_what_lives, switch_often

BODY_BYTES = 4 * 1024 * 1024
MESSAGE_BYTES = 1024 * 1024
BEAT_S = 0.001
CASE_S = 8.0
"""For one case; what is not answered then is left alone."""

QUIET_S = 0.5
"""All was sent and nothing more comes."""

HEAD = (
    "| request | loop held, ms | of that work, ms | `/healthz` p50, ms | worst, ms |\n| --- | --- | --- | --- | --- |"
)

_CALL = b'{"jsonrpc":"2.0","id":1,"method":"nowhere","params":'
_META = b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":'


class Case(msgspec.Struct, frozen=True):
    """What to send on a fresh connection: `opening` is answered with a head before `payload` goes."""

    name: str
    payload: bytes
    opening: bytes = b""


def cases(port: int = 3001) -> Iterator[Case]:
    """Return the front's worst inputs within its default limits."""
    yield from _bodies(port)
    yield from _messages(port)
    yield from _frames(port)
    yield from _framing(port)


def _filled(unit: bytes, before: bytes, after: bytes, size: int) -> bytes:
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def _texts(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield messages of a size that are much work for a decoder."""
    keys = b"{" + b",".join(b'"k%d":0' % number for number in range(size // 9)) + b"}"
    keys = keys[: size - 300].rpartition(b",")[0] + b"}"
    nested = b"[" * 400 + b"]" * 400
    yield "as many parameters as fit", _CALL + keys + b"}"
    yield "as many members as fit", b'{"jsonrpc":"2.0","id":1,"method":"nowhere",' + keys[1:]
    yield "modern, many parameters", _CALL + b'{"_meta":{' + _META + b"{}}," + keys[1:] + b"}"
    yield "modern, many capabilities", _CALL + b'{"_meta":{' + _META + keys + b"}}}"
    yield "nested too deep", _CALL + b"[" * (size // 2 - 50) + b"]" * (size // 2 - 50) + b"}"
    yield "nested 400 deep, again and again", _filled(nested + b",", _CALL + b'{"a":[', b"0]}}", size)
    yield "one string", _CALL + b'{"a":"' + b"x" * (size - 100) + b'"}}'
    yield "one string of escapes", _CALL + b'{"a":"' + b"\\u00e9" * ((size - 100) // 6) + b'"}}'
    yield "one string of backslashes", _CALL + b'{"a":"' + b"\\\\" * ((size - 100) // 2) + b'"}}'
    yield "a long id", b'{"jsonrpc":"2.0","method":"nowhere","id":"' + b"x" * (size - 100) + b'"}'
    yield "many ids", _filled(b'"id":1,', b'{"jsonrpc":"2.0",', b'"method":"nowhere"}', size)
    yield "a batch of numbers", _filled(b"0,", b"[", b"0]", size)
    yield (
        "a batch of 50 large messages",
        b"[" + b",".join([_CALL + b'{"a":"' + b"x" * (size // 51) + b'"}}'] * 50) + b"]",
    )
    yield "spaces", b" " * (size - 300) + _CALL + b"{}}"


def _bodies(port: int) -> Iterator[Case]:
    for name, text in _texts(BODY_BYTES):
        modern = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: nowhere\r\n" if name.startswith("modern") else b""
        yield Case(f"POST of 4 MiB: {name}", _post(port, text, modern))


def _messages(port: int) -> Iterator[Case]:
    for name, text in _texts(MESSAGE_BYTES - 1000):
        yield Case(f"WebSocket message of 1 MiB: {name}", frame(text), _upgrade(port, b"/mcp"))


def _frames(port: int) -> Iterator[Case]:
    request = frame(_CALL + b'{"_meta":{' + _META + b"{}}}}")
    for path in (b"/mcp", b"/api/events"):
        opening = _upgrade(port, path)
        at = path.decode()
        yield Case(f"{at}: 100,000 pings", frame(opcode=0x89) * 100_000, opening)
        yield Case(f"{at}: 100,000 empty fragments", frame(opcode=0x01) + frame(opcode=0x00) * 100_000, opening)
        yield Case(f"{at}: 20,000 empty messages", frame() * 20_000, opening)
        yield Case(f"{at}: 1 MiB in fragments of 128 bytes", _fragments(b"a" * MESSAGE_BYTES, 128), opening)
    yield Case("/mcp: 5,000 requests in one write", request * 5000, _upgrade(port, b"/mcp"))


def _framing(port: int) -> Iterator[Case]:
    host = b"Host: 127.0.0.1:%d\r\n" % port
    chunked = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield Case("20,000 header lines", b"GET /mcp HTTP/1.1\r\n" + host + b"a:\r\n" * 20_000 + b"\r\n")
    yield Case("4,000 header lines", b"GET /mcp HTTP/1.1\r\n" + host + b"a:\r\n" * 4_000 + b"\r\n")
    yield Case("20,000 trailer lines", b"POST /mcp HTTP/1.1\r\n" + host + chunked + b"0\r\n" + b"a:\r\n" * 20_000)
    yield Case("100,000 chunks of a byte", b"POST /mcp HTTP/1.1\r\n" + host + chunked + b"1\r\na\r\n" * 100_000)
    yield Case("2,000 requests sent ahead", (b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n") * 2000)


def _post(port: int, body: bytes, headers: bytes = b"") -> bytes:
    host = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % port
    return host + headers + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _upgrade(port: int, path: bytes) -> bytes:
    key = base64.b64encode(b"0123456789abcdef")
    head = b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" % port
    return head + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"


def frame(payload: bytes = b"", opcode: int = 0x81) -> bytes:
    """Return one frame of a client, masked with zeros."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        length = b"\xfe" + size.to_bytes(2, "big") if size < 65536 else b"\xff" + size.to_bytes(8, "big")
    return bytes([opcode]) + length + b"\0" * 4 + payload


def _fragments(payload: bytes, size: int) -> bytes:
    parts = [payload[start : start + size] for start in range(0, len(payload), size)]
    return frame(parts[0], 0x01) + b"".join(frame(part, 0x00) for part in parts[1:-1]) + frame(parts[-1], 0x80)


class Heartbeat:
    """Sleeps a millisecond again and again; `held_ms` is the longest it had to wait beyond that, `work_ms` the most
    processor time the loop's thread used in between."""

    def __init__(self) -> None:
        self.held_ms = self.work_ms = 0.0

    async def run(self) -> None:
        """Beat for ever."""
        while True:
            begun, worked = time.perf_counter(), time.thread_time()
            await trio.sleep(BEAT_S)
            self.held_ms = max(self.held_ms, (time.perf_counter() - begun - BEAT_S) * 1000)
            self.work_ms = max(self.work_ms, (time.thread_time() - worked) * 1000)

    def reset(self) -> None:
        """Forget what was."""
        self.held_ms = self.work_ms = 0.0


def send(case: Case, port: int) -> None:
    """Send one case and read what comes, until the connection is closed or the time is over."""
    with socket.create_connection(("127.0.0.1", port)) as connection, suppress(OSError):
        connection.settimeout(CASE_S)
        if case.opening:
            connection.sendall(case.opening)
            connection.recv(4096)
        connection.setblocking(False)
        _exchange(connection, memoryview(case.payload))


def _exchange(connection: socket.socket, data: memoryview) -> None:
    end = time.monotonic() + CASE_S
    while time.monotonic() < end:
        readable, writable, _ = select.select(
            [connection], [connection] if data else [], [], CASE_S if data else QUIET_S
        )
        if not (readable or writable):
            return
        if writable:
            data = data[connection.send(data[: 256 * 1024]) :]
        if readable and not connection.recv(65536):
            return


async def neighbour(port: int, waits_ms: list[float]) -> None:
    """Ask for `/healthz` again and again on one connection."""
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        while True:
            begun = time.perf_counter()
            await stream.send_all(request)
            if not await stream.receive_some(4096):
                return
            waits_ms.append((time.perf_counter() - begun) * 1000)
            await trio.sleep(0.005)


async def _measure(configuration: Configuration, directory: Path, wanted: str) -> None:
    switch_often()
    sockets = open_sockets("127.0.0.1:0", 5.0)
    port = sockets[0].getsockname()[1]
    heartbeat = Heartbeat()
    with open_data_dir(directory, {}) as data:
        daemon = Daemon(configuration, data, sockets)
        async with trio.open_nursery() as nursery:
            await nursery.start(daemon.run)
            nursery.start_soon(heartbeat.run)
            await trio.sleep(1.0)
            keep_what_lives()
            print(HEAD)
            for case in cases(port):
                if wanted in case.name:
                    await _one(case, port, heartbeat)
            daemon.closing.set()
            await trio.sleep(0.1)
            nursery.cancel_scope.cancel()


async def _one(case: Case, port: int, heartbeat: Heartbeat) -> None:
    waits_ms: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(neighbour, port, waits_ms)
        await trio.sleep(0.05)  # what made the case is no part of it
        heartbeat.reset()
        await trio.to_thread.run_sync(send, case, port)
        nursery.cancel_scope.cancel()
    waits_ms.sort()
    median = waits_ms[len(waits_ms) // 2]
    figures = (heartbeat.held_ms, heartbeat.work_ms, median, waits_ms[-1])
    print(f"| {case.name} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |", flush=True)


def main() -> None:
    """Measure the cases whose names contain the argument; all without one."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory(prefix="worst-requests-") as name:
        directory = Path(name)
        path = directory / "servers.json"
        path.write_text('{"mcpServers": {}}')
        trio.run(_measure, load(path, dict(os.environ)), directory / "data", wanted)


if __name__ == "__main__":
    main()
