"""G7: clients that send what is no HTTP, no WebSocket and no MCP: the daemon lives, and no answer says that it failed.

Openings that ended other daemons, each many times, and then requests of every kind with random parts changed, cut,
repeated or replaced by odd bytes. Each is sent over a connection of its own, which is closed for writing at once.
"""

from __future__ import annotations

import base64
import random
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count as numbers
from pathlib import Path
from typing import Final

from benchmarks.client import ACCEPT, Client, call, frame, initialize, posted, routing, upgrade
from benchmarks.goals.faulty import GROWTH, HEALTHY, faulty_daemon, unharmed
from benchmarks.goals.figure import Figure, count
from benchmarks.machine import memory
from tests.e2e.test_bad_input import OPENINGS
from tests.fuzz.grammars import Grammar

THREADS: Final = 8
WAIT_S: Final = 0.5
"""For an answer to what may be no request at all."""
RIGHT: Final = (b"HTTP/1.1 501 ", b"HTTP/1.1 505 ")
"""The answers to a transfer coding that nobody knows (RFC 9112 section 6.1), and to a version of HTTP that is not
spoken (RFC 9110 section 15.6.6), are not about the daemon."""
MAX_CHANGES: Final = 4
ECHO: Final = ("execute_mcp_tool", {"tool_path": f"{HEALTHY}:echo", "arguments": {"text": "it"}})
SEARCH: Final = ("discover_mcp_tools", {"query": "echo a text"})


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Send each opening 1,000 times, and mutations for an hour; three times, and for two seconds, in the small form."""
    times, seconds = (1000, 3600.0) if full else (3, 2.0)
    with faulty_daemon(directory, [], {}) as running:
        port = running.port
        openings = [make(port) for make in OPENINGS.values()] * times
        before = memory(running.process.pid).rss_mib
        with ThreadPoolExecutor(THREADS) as threads:
            failures = list(filter(None, threads.map(lambda parts: _send(port, parts), openings)))
            ends = time.monotonic() + seconds
            found = list(threads.map(lambda seed: _mutate(port, seed, ends), range(THREADS)))
        failures += [failure for _, some in found for failure in some]
        grown = memory(running.process.pid).rss_mib - before
        with Client(port) as client:
            client.call(ECHO)
        yield from unharmed(running, directory)
    sent = len(openings) + sum(number for number, _ in found)
    kinds = "".join(f", {kind.decode(errors='replace')}" for kind in sorted({each[9:12] for each in failures}))
    yield count(f"answers with a status of 500 or more{kinds}, to {sent:,} malformed inputs", len(failures))
    yield Figure("growth of memory", GROWTH, grown)


def _send(port: int, parts: Sequence[bytes]) -> bytes:
    """Send the parts, each once the one before was answered; return the answer if it says that the daemon failed."""
    said = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        for number, part in enumerate(parts):
            connection.sendall(part)
            if number < len(parts) - 1:
                said += connection.recv(65_536)
        connection.shutdown(socket.SHUT_WR)
        while data := connection.recv(65_536):
            said += data
    return said if said.startswith(b"HTTP/1.1 5") and not said.startswith(RIGHT) else b""


def _mutate(port: int, seed: int, ends: float) -> tuple[int, list[bytes]]:
    """Send changed requests until then; return how many, and the answers that say that the daemon failed."""
    luck = random.Random(seed)
    grammar, whole = Grammar(luck), _requests(port)
    failures: list[bytes] = []
    for number in numbers():
        if time.monotonic() > ends:
            return number, failures
        first, *rest = luck.choice(whole)
        if rest and luck.random() < 0.8:  # otherwise hardly a frame would come behind an opening that is one
            failure = _send(port, [first, *(_changed(grammar, part) for part in rest)])
        else:
            failure = _send(port, [_changed(grammar, first), *rest])
        if failure:
            failures.append(failure)
    raise AssertionError


def _changed(grammar: Grammar, data: bytes) -> bytes:
    for _ in range(grammar.random.randint(1, MAX_CHANGES)):
        before = data
        while data == before:
            data = grammar.spoilt(before) if before else b"\0"
    return data


def _requests(port: int) -> list[list[bytes]]:
    """Return requests of every kind as they should be, each with what follows its opening."""
    headers = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28"}
    posts = [posted(port, "/mcp", initialize(), ACCEPT)]
    for tool in (ECHO, SEARCH):
        posts.append(posted(port, "/mcp", call(tool, 1, "legacy"), ACCEPT))
        posts.append(posted(port, "/mcp", call(tool, 1, "modern"), {**headers, **routing(tool, "modern")}))
    pages = ("/mcp", "/api/status", "/metrics", "/healthz", "/", "/api/events?from=1", "/mcp/servers/healthy")
    gets = [f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n\r\n".encode() for path in pages]
    chunks = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n".encode()
    chunks += b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    frames = [base64.b64decode(frame(message)) for message in (initialize(), call(ECHO, 1, "legacy"))]
    return [*([each] for each in (*posts, *gets, chunks)), [upgrade(port).encode(), *frames]]
