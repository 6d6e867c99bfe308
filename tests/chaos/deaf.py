"""A client that asks for much and never reads."""

from __future__ import annotations

import base64
import json
import os
import socket

import trio

from benchmarks.client import call, initialize
from tests.chaos.wires import BROKEN, tear

QUESTIONS = 60
BIG = 200_000


def masked(message: object) -> bytes:
    """Return one text frame of a client, masked with zeros."""
    payload = json.dumps(message).encode()
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xff" + len(payload).to_bytes(8, "big")
    return b"\x81" + length + b"\0" * 4 + payload


async def deaf_client(port: int, token: str, user: str, seconds: float) -> None:
    """Open a WebSocket with next to no room, ask for big answers, read none for so long, and go."""
    connection = trio.socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lines = [
        *("GET /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"),
        *(f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}", "Sec-WebSocket-Version: 13"),
        *("Sec-WebSocket-Protocol: mcp", f"Authorization: Bearer {token}", "", ""),
    ]
    try:
        with trio.move_on_after(seconds):
            await connection.connect(("127.0.0.1", port))
            stream = trio.SocketStream(connection)
            await stream.send_all("\r\n".join(lines).encode())
            await stream.send_all(masked(initialize()))
            for number in range(QUESTIONS):
                text = f"{user}/deaf/{number} {'x' * BIG}"
                tool = ("execute_mcp_tool", {"tool_path": "mortal:echo", "arguments": {"text": text}})
                await stream.send_all(masked(call(tool, number + 1, "legacy")))
            await trio.sleep_forever()
    except BROKEN:
        pass  # the daemon has had enough
    finally:
        tear(connection)
