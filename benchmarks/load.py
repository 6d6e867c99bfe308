"""The load generator: raw sockets, one `epoll`, requests made beforehand, answers recognised by their length.

Runs as a program of its own (`python load.py`, a job as JSON on stdin, the outcome as JSON on stdout) and imports only
the standard library, so that it costs a few microseconds a request and never shares a process with what it measures.

Job: `port`, `seconds`, `upgrade` (text sent first on each connection and answered by an HTTP head, or ""), `setup` (a
list for each connection of base64 messages, each answered before the next one, or answered by nothing if it begins
with "!"), `requests` (base64, one for each connection). A closed loop: each connection has one request under way.
Outcome: `requests`, `seconds`, `cpu_s` (of the generator), `p50_ms`, `p99_ms`, `bytes` of one answer.
"""

from __future__ import annotations

import base64
import json
import select
import socket
import sys
import time
from typing import Any

CLOSE = b"connection: close\r\n"
"""What hypercorn adds to the last answer of a connection, by default the thousandth."""


LAST_CHUNK = b"\r\n0\r\n\r\n"
"""The end of an answer in chunks, which other proxies send: their answers are event streams."""

PING = b"\x89"


class Connection:
    """One connection with one request under way; every answer must say success, and be as long as the first, unless it
    is that of a search, which says how long it took.
    """

    def __init__(self, port: int, request: bytes, setup: list[str], upgrade: str) -> None:
        self.port = port
        self.request = request
        self.websocket = bool(upgrade)
        self.data = b""
        self.chunked = self.varies = False
        self.connect()
        self.sent_at = 0.0
        if upgrade:
            self.socket.sendall(upgrade.encode())
            head = self._until(b"\r\n\r\n")
            if b" 101 " not in head:
                raise SystemExit(f"no WebSocket: {head!r}")
        for message in setup:
            self.socket.sendall(base64.b64decode(message.removeprefix("!")))
            if not message.startswith("!"):
                self.whole_answer()
        self.expected, self.first = self._learn()

    def connect(self) -> None:
        """Open a socket."""
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def complete(self) -> bool:
        """Return whether `data` is a whole answer. Raises `SystemExit` if it is another one than the first."""
        if self.websocket and self.data[:1] == PING:
            self.data = self.data[2 + self.data[1] :]
        if self.data and not self.data.startswith(self.first):
            raise SystemExit(f"not an answer: {self.data[:2000]!r}")
        if self.chunked:
            return self.data.endswith(LAST_CHUNK)
        if self.varies:
            head, end, body = self.data.partition(b"\r\n\r\n")
            return bool(end) and len(body) >= _length_in(head)
        return len(self.data) == self.expected + (len(CLOSE) if CLOSE in self.data[: -len(CLOSE)] else 0)

    def _learn(self) -> tuple[int, bytes]:
        self.socket.sendall(self.request)
        answer = self.whole_answer()
        good = answer[:1] == b"\x81" if self.websocket else answer.startswith(b"HTTP/1.1 200")
        if not good or b'"error"' in answer or b'"isError":true' in answer:
            raise SystemExit(f"not an answer: {answer[:2000]!r}")
        self.varies = b'"search_time_ms"' in answer and not self.websocket
        size = 1 if self.chunked or self.varies else len(answer)  # the same answer may come in other chunks
        return size, answer[:12] if not self.websocket else answer[:2]

    def whole_answer(self) -> bytes:
        """Read one answer by its own length; slow, for the first ones only."""
        if not self.websocket:
            head = self._until(b"\r\n\r\n")
            if b"transfer-encoding: chunked" in head.lower():
                self.chunked = True
                return head + self._until(LAST_CHUNK)
            return head + self._exactly(_length_in(head))
        head = self._exactly(2)
        size = head[1] & 127
        if size >= 126:
            more = self._exactly(2 if size == 126 else 8)
            head, size = head + more, int.from_bytes(more, "big")
        body = self._exactly(size)
        return self.whole_answer() if head[:1] == PING else head + body

    def _until(self, mark: bytes) -> bytes:
        data = b""
        while not data.endswith(mark):
            data += self._exactly(1)
        return data

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise SystemExit(f"the connection was closed after {data!r}")
            data += part
        return data


def _length_in(head: bytes) -> int:
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    if not length:
        raise SystemExit(f"an answer without content-length: {head!r}")
    return int(length[0].split(b":")[1])


def _renew(poll: select.epoll, by_fd: dict[int, Connection], connection: Connection) -> None:
    poll.unregister(connection.socket.fileno())
    del by_fd[connection.socket.fileno()]
    connection.socket.close()
    connection.connect()
    poll.register(connection.socket.fileno(), select.EPOLLIN)
    by_fd[connection.socket.fileno()] = connection


def run(connections: list[Connection], seconds: float) -> dict[str, Any]:
    """Drive all connections for so long and return the outcome."""
    poll = select.epoll()
    by_fd = {connection.socket.fileno(): connection for connection in connections}
    clock = time.perf_counter
    latencies: list[float] = []
    begin = clock()
    cpu = time.process_time()
    for fd, connection in by_fd.items():
        poll.register(fd, select.EPOLLIN)
        connection.sent_at = clock()
        connection.socket.send(connection.request)
    end = begin + seconds
    now = begin
    while now < end:
        for fd, _ in poll.poll(5):
            connection = by_fd[fd]
            connection.data += connection.socket.recv(65536)
            if len(connection.data) < connection.expected or not connection.complete():
                continue
            now = clock()
            latencies.append(now - connection.sent_at)
            if len(connection.data) > connection.expected and not (connection.chunked or connection.varies):
                _renew(poll, by_fd, connection)
            connection.data = b""
            connection.sent_at = now
            connection.socket.send(connection.request)
        if clock() > end + 5:
            raise SystemExit("no answers any more")
    latencies.sort()
    return {
        "requests": len(latencies),
        "seconds": now - begin,
        "cpu_s": time.process_time() - cpu,
        "p50_ms": latencies[len(latencies) // 2] * 1000,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1000,
        "bytes": connections[0].expected,
    }


def main() -> None:
    """Read the job, run it, write the outcome."""
    job = json.load(sys.stdin)
    connections = [
        Connection(job["port"], base64.b64decode(request), setup, job["upgrade"])
        for request, setup in zip(job["requests"], job["setup"], strict=True)
    ]
    json.dump(run(connections, job["seconds"]), sys.stdout)


if __name__ == "__main__":
    main()
