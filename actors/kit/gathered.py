"""Bytes that come in pieces of any size: gathered, and joined once. One buffer that grows is copied again and again."""

from __future__ import annotations

from functools import partial
from typing import Final

from actors.kit.decoding import decode_in_thread

PART_BYTES: Final = 64 * 1024
"""Smaller pieces become parts of that size: a piece of two bytes takes the room of fifty."""
LONG_BYTES: Final = 4 * 1024 * 1024
"""From that size on a thread joins them: below, that takes a millisecond, and the way to one as much."""


class Gathered:
    """What has come so far; `size` in bytes."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []
        self._part = bytearray()

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if len(piece) < PART_BYTES:
            self._part += piece
            if len(self._part) >= PART_BYTES:
                self._end_part()
        else:
            self._end_part()
            self._parts.append(piece)

    async def whole(self) -> bytes:
        """Return all of it. A checkpoint if it is much."""
        self._end_part()
        if self.size < LONG_BYTES or len(self._parts) == 1:
            return b"".join(self._parts)  # of one it is that one
        return await decode_in_thread(partial(b"".join, self._parts))

    def _end_part(self) -> None:
        if self._part:
            self._parts.append(bytes(self._part))
            self._part.clear()
