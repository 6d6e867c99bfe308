"""What is started as a server, and within which bounds, as its entry says. Pure."""

from __future__ import annotations

import msgspec

from actors.transport.stdio.resources.allotment import Allotment
from actors.transport.stdio.sandbox.bubblewrap import Sandbox

_MIB = 1 << 20


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What to start. `env` is added to the few variables a server inherits; `cwd` is ours if it is empty.

    In a `sandbox` an empty one is a directory of its own.
    """

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    sandbox: Sandbox | None = None

    @property
    def denial(self) -> str:
        """What its sandbox denies in words, empty for none."""
        return self.sandbox.denial(self.cwd) if self.sandbox is not None else ""


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one process; the three steps of a stop add up to at most 5 s by default.

    A process that takes no byte for `write_timeout_s`, although there are some, is lost. What may be taken of the
    machine is for all processes of the server together, as much as there is for None.
    """

    max_line_bytes: int = 16 * 1024 * 1024
    max_lines_per_s: int = 10_000
    write_timeout_s: float = 10.0
    stop_eof_s: float = 2.0
    stop_term_s: float = 2.0
    reap_s: float = 1.0
    max_memory_mib: int | None = None
    max_processes: int | None = None
    max_open_files: int | None = None
    max_processors: float | None = None

    def allotment(self, launch: str) -> Allotment:
        """Return what a launch may take of the machine."""
        return Allotment(
            name=launch,
            memory_bytes=None if self.max_memory_mib is None else self.max_memory_mib * _MIB,
            processes=self.max_processes,
            files=self.max_open_files,
            processors=self.max_processors,
        )
