"""How much memory there is, and how much of it servers may have. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

SHARE: Final = 20
MOST_RESERVE: Final = 512 << 20
"""Without a setting a twentieth of the memory stays free, and no more than that."""


class MemoryLook(msgspec.Struct, frozen=True, kw_only=True):
    """One look: bytes there are, and bytes to be had, both None where nobody can tell.

    `pressure`: for so many percent of the last ten seconds somebody waited for memory; None where the kernel does not
    tell.
    """

    total: int | None = None
    available: int | None = None
    pressure: float | None = None


class MemoryBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much all servers together may take, and how much has to stay free beside them, in bytes.

    None for the first: as much as there is; for the second: `SHARE`. `pressure_percent`: see `Memory.pressure`; 0 does
    not look at it.
    """

    limit_bytes: int | None = None
    reserve_bytes: int | None = None
    pressure_percent: float = 20.0

    def reserve_of(self, total: int | None) -> int:
        """Return how much has to stay free of so much memory."""
        if self.reserve_bytes is not None:
            return self.reserve_bytes
        return min((total or 0) // SHARE, MOST_RESERVE)
