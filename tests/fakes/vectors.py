"""Where a test keeps vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import trio


class KeptVectors:
    """Keeps vectors in memory, and counts how often it was asked."""

    def __init__(self) -> None:
        self.vectors: dict[bytes, bytes] = {}
        self.loads = 0

    async def load_vectors(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        self.loads += 1
        await trio.lowlevel.checkpoint()
        return {digest: self.vectors[digest] for digest in digests if digest in self.vectors}

    def save_vectors(self, vectors: Mapping[bytes, bytes]) -> None:
        self.vectors.update(vectors)
