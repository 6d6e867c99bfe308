"""What comes in pieces is the same in whatever pieces it comes, and many small ones take little more room than it."""

from __future__ import annotations

import tracemalloc

import pytest

from actors.kit import decoding
from actors.kit.decoding import PART_BYTES, Gathered


@pytest.mark.parametrize("long_bytes", [1, decoding.LONG_BYTES])
@pytest.mark.parametrize(
    "sizes", [[], [0], [1], [PART_BYTES], [PART_BYTES - 1, 1, 7], [3, 2 * PART_BYTES, 5, PART_BYTES, 0, 1]], ids=str
)
async def test_what_was_gathered_is_what_came(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], long_bytes: int
) -> None:
    monkeypatch.setattr(decoding, "LONG_BYTES", long_bytes)
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    body = Gathered()
    for piece in pieces:
        body.add(piece)
    assert body.size == sum(sizes)
    assert await body.whole() == b"".join(pieces)


async def test_many_tiny_pieces_take_little_more_room_than_their_bytes() -> None:
    tracemalloc.start()
    try:
        body = Gathered()
        for _ in range(10_000):
            body.add(bytes(bytearray(b"xy")))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * body.size


async def test_a_large_piece_is_not_copied() -> None:
    piece, body = bytes(PART_BYTES), Gathered()
    body.add(piece)
    assert await body.whole() is piece
