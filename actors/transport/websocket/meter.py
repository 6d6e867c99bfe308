"""The bytes of a WebSocket, counted: what a server sends without ever completing a message must not pile up."""

from __future__ import annotations

import trio


class Meter(trio.abc.Stream):
    """A stream that is broken once `limit` bytes came without a `reset`. `ended` is set when nothing more comes.

    `finished` is set by whoever reads it, when that is over; `failure` is then why, where nobody foresaw it.
    """

    def __init__(self, stream: trio.abc.Stream, limit: int) -> None:
        self.ended = trio.Event()
        self.finished = trio.Event()
        self.failure = ""
        self._stream = stream
        self._limit = limit
        self._count = 0

    @property
    def begun(self) -> bool:
        return self._count > 0

    def reset(self) -> None:
        """Begin to count anew: what came was of use."""
        self._count = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what comes. Raises `trio.BrokenResourceError` over the limit, and as the stream does."""
        try:
            data = bytes(await self._stream.receive_some(max_bytes))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.ended.set()
            raise
        self._count += len(data)
        if not data or self._count > self._limit:
            self.ended.set()
        if self._count > self._limit:
            raise trio.BrokenResourceError("too much without a message")
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self.ended.set()
        await self._stream.aclose()
