"""Calls that arrive whether or not earlier ones are answered, in a process of its own. Standard library only.

`python arrivals.py`, a job as JSON on stdin: `port`, `seconds`, `per_s` (how many calls arrive a second, evenly),
`requests` (base64, one for each connection: an HTTP request whose answer has a content-length). A call takes a
connection that is free; where none is, it waits here, which counts. The outcome as JSON on stdout, for each kind of
answer (`good`, `refused`, `other`): `count`, `p50_ms`, `p99_ms` and `max_ms` since the call arrived, `sent_p99_ms`
since it was sent; and `unanswered`, how many were still under way at the end, with an `example` of what was other.
"""

from __future__ import annotations

import base64
import json
import select
import socket
import sys
import time
from collections import deque
from typing import Any

GRACE_S = 5.0
REFUSALS = (b'"overloaded"', b"HTTP/1.1 429", b"HTTP/1.1 503")


class Connection:
    """One connection, with one call under way at most."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = request
        self.data = b""
        self.arrived_at = self.sent_at = 0.0

    def send(self, arrived_at: float) -> None:
        """Send the call that arrived then."""
        self.arrived_at, self.sent_at, self.data = arrived_at, time.perf_counter(), b""
        self.socket.send(self.request)

    def complete(self) -> bool:
        """Read what is there; return whether the answer is whole. Raises `SystemExit` if the connection ended."""
        part = self.socket.recv(65536)
        if not part:
            raise SystemExit(f"the connection was closed after {self.data!r}")
        self.data += part
        head, separator, body = self.data.partition(b"\r\n\r\n")
        if not separator:
            return False
        fields = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return not fields or len(body) >= int(fields[0].split(b":")[1])

    def kind(self) -> str:
        """Return what the answer is."""
        if any(mark in self.data for mark in REFUSALS):
            return "refused"
        good = (
            self.data.startswith(b"HTTP/1.1 200") and b'"error"' not in self.data and b'"isError":true' not in self.data
        )
        return "good" if good else "other"


def run(connections: list[Connection], per_s: float, seconds: float) -> dict[str, Any]:
    """Let the calls arrive, and return the outcome."""
    poll = select.epoll()
    by_fd = {each.socket.fileno(): each for each in connections}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    free, waiting = deque(connections), deque[float]()
    took: dict[str, list[tuple[float, float]]] = {"good": [], "refused": [], "other": []}
    example = ""
    begin = time.perf_counter()
    end, arrived = begin + seconds, 0
    while (now := time.perf_counter()) < end + (GRACE_S if len(free) < len(connections) else 0.0):
        while now < end and begin + arrived / per_s <= now:
            waiting.append(begin + arrived / per_s)
            arrived += 1
        if now >= end:
            waiting.clear()
        while waiting and free:
            free.popleft().send(waiting.popleft())
        for fd, _ in poll.poll(min(0.001, 0.5 / per_s)):
            connection = by_fd[fd]
            if connection.complete():
                at, kind = time.perf_counter(), connection.kind()
                if at <= end:
                    took[kind].append((at - connection.arrived_at, at - connection.sent_at))
                if kind == "other":
                    example = connection.data[-500:].decode(errors="replace")
                free.append(connection)
    under_way = len(connections) - len(free)
    return {
        **{kind: summary(pairs) for kind, pairs in took.items()},
        "unanswered": under_way,
        "seconds": seconds,
        "example": example,
    }


def summary(pairs: list[tuple[float, float]]) -> dict[str, float]:
    """Return how many there are and how long they took."""
    all_of_it, sent = sorted(pair[0] * 1000 for pair in pairs), sorted(pair[1] * 1000 for pair in pairs)
    if not pairs:
        return {"count": 0, "p50_ms": 0.0, "p99_ms": 0.0, "max_ms": 0.0, "sent_p99_ms": 0.0}
    at = len(pairs) * 99 // 100
    return {
        "count": len(pairs),
        "p50_ms": all_of_it[len(pairs) // 2],
        "p99_ms": all_of_it[at],
        "max_ms": all_of_it[-1],
        "sent_p99_ms": sent[at],
    }


def main() -> None:
    """Read the job, run it, write the outcome."""
    job = json.load(sys.stdin)
    connections = [Connection(job["port"], base64.b64decode(request)) for request in job["requests"]]
    json.dump(run(connections, job["per_s"], job["seconds"]), sys.stdout)


if __name__ == "__main__":
    main()
