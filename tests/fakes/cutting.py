"""A proxy before a daemon that cuts a connection after an event, once for each of some words in it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

PART_BYTES = 65536


class CuttingProxy:
    """`url` is that of the daemon by way of it; `left` are the words that were not seen yet."""

    def __init__(self, port: int, words: list[bytes]) -> None:
        self._port = port
        self.left = list(words)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._own = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._own}"

    def run(self) -> None:
        """Take connections until it is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                Thread(target=self._up, args=(client, server), daemon=True).start()
                Thread(target=self._down, args=(server, client), daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while part := client.recv(PART_BYTES):
                server.sendall(part.replace(b"127.0.0.1:%d" % self._own, b"127.0.0.1:%d" % self._port))
        _end(client, server)

    def _down(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while part := server.recv(PART_BYTES):
                end = self._cut(part)
                client.sendall(part[:end] if end else part)
                if end:
                    break
        _end(client, server)

    def _cut(self, part: bytes) -> int:
        """Return where the event ends after which the connection is cut; 0 if there is none in it."""
        for word in self.left:
            if (place := part.find(word)) >= 0 and (end := part.find(b"\n\n", place)) >= 0:
                self.left.remove(word)
                return end + 2
        return 0


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextmanager
def cutting(url: str, *words: bytes) -> Iterator[CuttingProxy]:
    """Run a proxy before the daemon at `url` beside the block."""
    proxy = CuttingProxy(int(url.rsplit(":", 1)[1]), list(words))
    Thread(target=proxy.run, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
