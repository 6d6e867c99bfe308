"""The object `memory` of a configuration: how much of the machine servers may take. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from actors.transport.stdio.resources.allotment import MemoryBounds
from supervisor.config.syntax.units import MIB, Mebibytes
from supervisor.config.syntax.values import Problem, read_members

MEMORY: Final = "memory"


class MemorySettings(Struct, frozen=True, kw_only=True):
    """How much memory servers may take together; see `docs/guides/budgets.md`."""

    limit_mib: Mebibytes | None = None
    """Memory that all local servers together may take, in MiB. Over it, those that were used longest ago sleep, and no
    other one starts. null: as much as there is."""
    reserve_mib: Annotated[int, Meta(ge=0, le=1_073_741_824)] | None = None
    """Memory that stays free, in MiB: of the machine, or of the container that the daemon is in. Where less is free,
    servers sleep and none starts; with half of it no call begins. null: a twentieth of all, at most 512; 0: nothing."""
    pressure_percent: Annotated[float, Meta(ge=0, le=100)] = 20.0
    """Servers sleep, too, if for so much of the last ten seconds somebody waited for memory (`some avg10` in
    `/proc/pressure/memory`). 0: that does not matter."""

    @property
    def bounds(self) -> MemoryBounds:
        """The same in bytes."""
        return MemoryBounds(
            limit_bytes=None if self.limit_mib is None else self.limit_mib * MIB,
            reserve_bytes=None if self.reserve_mib is None else self.reserve_mib * MIB,
            pressure_percent=self.pressure_percent,
        )


def read_memory(written: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return the members of the object. `problem` takes keys from `supervisor` inwards."""
    return read_members(MemorySettings, written, (MEMORY,), problem)
