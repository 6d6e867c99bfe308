"""Sends what it is told to, in a process of its own, so that the loop that is measured does nothing for it.

One order a line on stdin, as JSON: `port`, `file` (its bytes are sent as they are), `websocket` (the bytes follow a
handshake, and one message is awaited) and `opening` (sent first; its answer is awaited, and then nothing in particular:
what comes is read until nothing more does). For each one line on stdout, as JSON: `bytes` (how many), `begins` and
`ends` of the answer.
Standard library only.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any

TIMEOUT_S = 60.0
SHOWN_BYTES = 600
FLOOD_S = 8.0
QUIET_S = 0.5
UPGRADE = (
    "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp\r\n\r\n"
)
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},'
    b'"clientInfo":{"name":"worst","version":"1"}}}'
)


def sent(order: dict[str, Any]) -> bytes:
    """Send one request on a connection of its own and return the answer."""
    with socket.create_connection(("127.0.0.1", order["port"]), timeout=TIMEOUT_S) as connection:
        if order["opening"] is not None:
            return flooded(connection, order["opening"].encode(), Path(order["file"]).read_bytes())
        reader = connection.makefile("rb")
        if order["websocket"]:
            connection.sendall(UPGRADE.format(port=order["port"]).encode())
            while reader.readline() not in (b"\r\n", b""):
                pass
            connection.sendall(b"\x81\xfe" + len(INITIALIZE).to_bytes(2, "big") + b"\0\0\0\0" + INITIALIZE)
            message(reader)
        connection.sendall(Path(order["file"]).read_bytes())
        return message(reader) if order["websocket"] else reader.read()


def flooded(connection: socket.socket, opening: bytes, data: bytes) -> bytes:
    """Send all there is while reading what comes; return the beginning of that."""
    if opening:
        connection.sendall(opening)
        connection.recv(4096)
    connection.setblocking(False)
    rest, beginning = memoryview(data), b""
    end = time.monotonic() + FLOOD_S
    while time.monotonic() < end:
        readable, writable, _ = select.select([connection], [connection] if rest else [], [], QUIET_S)
        if not (readable or writable):
            break
        if writable:
            rest = rest[connection.send(rest[: 256 * 1024]) :]
        if readable:
            part = connection.recv(65536)
            beginning += part[:SHOWN_BYTES]
            if not part:
                break
    return beginning


def message(reader: Any) -> bytes:
    """Read one WebSocket message of text; pings and the like are passed over (RFC 6455 section 5.2)."""
    while True:
        first, second = reader.read(2)
        size = second & 127
        if size > 125:
            size = int.from_bytes(reader.read(2 if size == 126 else 8), "big")
        data: bytes = reader.read(size)
        if first & 15 in (1, 8):
            return data


def main() -> None:
    """Follow orders until the input ends."""
    for line in sys.stdin:
        try:
            answer = sent(json.loads(line))
        except OSError as error:
            answer = f"nothing: {error}".encode()
        begins, ends = (part.decode(errors="replace") for part in (answer[:SHOWN_BYTES], answer[-SHOWN_BYTES:]))
        told = {"bytes": len(answer), "begins": begins, "ends": ends}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
