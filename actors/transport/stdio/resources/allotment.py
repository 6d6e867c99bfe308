"""What one server may take of the machine, whether it took more, and how much memory all may have. Pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Enforcement = Literal["kernel", "watched", "not enforced"]
"""How a limit is kept: the kernel lets nobody over it, whoever is over it is replaced, or there is no way to."""
Controllers = frozenset[str]
"""Those of control groups that servers may have limits by: `memory`, `pids`, `cpu`."""
SHARE: Final = 20
MOST_RESERVE: Final = 512 << 20
"""Without a setting a twentieth of the memory stays free, and no more than that."""


class ProcessFigures(msgspec.Struct, frozen=True):
    """What all processes of one server take. `cpu_percent` is their part of one processor since the figures were taken
    before, or since it started: two busy processors are 200.
    """

    memory_bytes: int
    cpu_s: float
    cpu_percent: float
    processes: int = 1


class Allotment(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of all processes of one launch together, None where there is none; `name` is that of the launch.

    `files` are open ones of each process, `processors` a number of them that may be a fraction.
    """

    name: str = ""
    memory_bytes: int | None = None
    processes: int | None = None
    files: int | None = None
    processors: float | None = None

    @property
    def grouped(self) -> bool:
        """Whether the kernel could keep any of the limits by a control group."""
        return self.memory_bytes is not None or self.processes is not None or self.processors is not None

    @property
    def watchable(self) -> bool:
        """Whether it can be seen that the server is over a limit."""
        return self.memory_bytes is not None or self.processes is not None

    def excess(self, taken: ProcessFigures) -> str:
        """Say which limit a server is over, in words for its operator and for callers; empty if none."""
        if self.memory_bytes is not None and taken.memory_bytes > self.memory_bytes:
            return f"it used {size(taken.memory_bytes)} of memory, its limit is {size(self.memory_bytes)}"
        if self.processes is not None and taken.processes > self.processes:
            return f"it had {taken.processes} processes, its limit is {self.processes}"
        return ""

    def enforcement(self, controllers: Controllers) -> dict[str, Enforcement]:
        """Return how each of its limits is kept, by the name of the setting."""
        ways: dict[str, tuple[object, str, Enforcement]] = {
            "max_memory_mib": (self.memory_bytes, "memory", "watched"),
            "max_processes": (self.processes, "pids", "watched"),
            "max_open_files": (self.files, "", "kernel"),
            "max_processors": (self.processors, "cpu", "not enforced"),
        }
        return {
            name: "kernel" if controller in controllers else otherwise
            for name, (limit, controller, otherwise) in ways.items()
            if limit is not None
        }


def size(number: int) -> str:
    """Return a size as people say it: `2.1 GiB`, `300 MiB`."""
    mib = number / (1 << 20)
    return f"{mib:.0f} MiB" if mib < 1000 else f"{mib / 1024:.1f} GiB"


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
