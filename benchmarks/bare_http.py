"""Requests over HTTP/1.1 read from a bare socket: for servers whose cost is close to what any server must cost."""

from __future__ import annotations

import trio


class Requests:
    """The requests of one connection, one after the other. What clients send is trusted."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._data = b""

    async def next(self) -> tuple[str, bytes] | None:
        """Return the head of a request, in lower case, and its body; None once the connection has ended."""
        while b"\r\n\r\n" not in self._data:
            if not (part := await self._stream.receive_some(65536)):
                return None
            self._data += part
        start, _, data = self._data.partition(b"\r\n\r\n")
        head = start.decode("latin-1").lower() + "\r\n"
        length = int(_field(head, "content-length") or 0)
        while len(data) < length:
            data += await self._stream.receive_some(65536)
        self._data = data[length:]
        return head, data[:length]


def _field(head: str, name: str) -> str:
    return head.partition(f"\r\n{name}:")[2].partition("\r\n")[0].strip()
